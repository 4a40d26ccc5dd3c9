"""Models through the real SDKs, against a local server: whole investigations, errors, drops, stalls, keys, prices."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from agents.model_server import Answer, ModelServer, model_server
from agents.world import CART
from toolgate import app
from toolgate.agents.models import ModelSettings, ModelUsage, priced
from toolgate.core.errors import Conflict
from toolgate.facade import Gate
from toolgate.storage.memory import MemoryBackend

KINDS = [
    "openai",
    "anthropic",
    "openai-responses over openai",
    "xml over openai",
    "xml over anthropic",
    "leaked over openai",
]
NATIVE = KINDS[:3]


def settings(server: ModelServer, kind: str, **more: Any) -> dict[str, Any]:
    sdk = kind.rpartition(" ")[2]
    made = {
        "kind": sdk,
        "model": {"openai": "gpt-4o-mini", "anthropic": "claude-haiku-4-5"}[sdk],
        "base_url": server.openai if sdk == "openai" else server.url,
        "retries": 1,
        "timeout_s": 10.0,
    }
    return made | ({"wire": kind.split()[0]} if " over " in kind else {}) | more


def opened(root: Path, spec: dict[str, Any], **more: Any) -> Any:
    config = {
        "version": 1,
        "default_persona": "ada",
        "personas": {"ada": {"phase": "observe"}},
        "models": {"m": spec},
    }
    return app.open(root, config | more, MemoryBackend())


async def ask(gate: Gate, question: str = "why is the discount wrong?") -> Any:
    agents = gate.feature("agents")
    return await agents.drive(await agents.start(question))


def wanting(kind: str, *calls: tuple[str, dict[str, Any]]) -> Answer:
    if kind in NATIVE:
        return Answer(calls=[(name.replace(".", "_"), args) for name, args in calls])
    if kind.startswith("leaked"):
        return Answer("\n".join(json.dumps({"name": name, "arguments": args}) for name, args in calls))
    return Answer(
        "".join(
            f"<tool_call>{json.dumps({'tool': name, 'params': args})}</tool_call>" for name, args in calls
        )
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_a_whole_investigation_through_the_real_client(tmp_path: Path, kind: str) -> None:
    (tmp_path / "cart.py").write_text(CART)
    script = [
        wanting(kind, ("code.search", {"pattern": "def total"})),
        wanting(kind, ("code.read", {"path": "cart.py"}), ("fs.delete", {"path": "cart.py"})),
        Answer("It divides by 10."),
    ]
    with model_server(*script) as server:
        async with opened(tmp_path, settings(server, kind)) as gate:
            run = await ask(gate)
            tools = [row.tool for row in await gate.events() if row.kind in ("committed", "denied")]
    assert (run.state, run.answer) == ("done", "It divides by 10.")
    assert sorted(tools) == ["code.read", "code.search", "fs.delete"]
    assert (tmp_path / "cart.py").exists()
    assert "discount / 10" in str(server.requests[-1])
    assert run.spent["tokens"] == 3 * 18
    assert run.spent["usd"] > 0
    assert server.left == 0


@pytest.mark.parametrize("kind", NATIVE)
async def test_a_stream_that_breaks_off_is_asked_for_again_and_calls_nothing(
    tmp_path: Path, kind: str
) -> None:
    broken = Answer(calls=[("fs_delete", {"path": "cart.py"})], drop=3)
    with model_server(broken, Answer("All is well.")) as server:
        async with opened(tmp_path, settings(server, kind)) as gate:
            run = await ask(gate)
            assert not [row for row in await gate.events() if row.tool]
    assert (run.state, run.answer) == ("done", "All is well.")


@pytest.mark.parametrize("kind", NATIVE)
@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([Answer(status=401, error="bad key")], "refused the key"),
        ([Answer(status=500)] * 2, "trouble of its own"),
        ([Answer(drop=0)] * 8, "broke 2 times"),
        ([Answer(status=404, error="no such model")], "refused the request"),
        ([Answer(status=429, error="slow down", headers={"retry-after-ms": "1"})] * 2, "too often"),
        ([Answer(body="<html>hello</html>")] * 9, "broke 2 times"),
        ([Answer(body="data: {broken\n\n")] * 9, "m"),
        ([Answer(body='data: "a word"\n\ndata: [DONE]\n\n')] * 9, "m"),
        ([Answer(body='data: {"choices": 5, "type": 7}\n\ndata: [DONE]\n\n')] * 9, "m"),
        (
            [
                Answer(
                    body='event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}\n\n'
                )
            ]
            * 9,
            "busy",
        ),
    ],
)
async def test_a_model_that_fails_ends_the_run_with_its_reason(
    tmp_path: Path, kind: str, answers: list[Answer], said: str
) -> None:
    with model_server(*answers) as server:
        async with opened(tmp_path, settings(server, kind)) as gate:
            run = await ask(gate)
    assert run.state == "failed"
    assert said in run.reason
    assert "toolgate itself" not in run.reason


@pytest.mark.parametrize("kind", NATIVE)
async def test_a_model_that_stalls_is_given_up_in_time(tmp_path: Path, kind: str) -> None:
    never = threading.Event()
    with model_server(Answer("never", stall=never)) as server:
        async with opened(tmp_path, settings(server, kind, timeout_s=0.3, retries=0)) as gate:
            run = await ask(gate)
        never.set()
    assert run.state == "failed"
    assert "0.3 s" in run.reason or "broke" in run.reason


async def test_an_interrupted_request_leaves_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    stalled = threading.Event()
    with model_server(Answer("late", stall=stalled), Answer("Here it is.")) as server:
        async with opened(tmp_path, settings(server, "openai")) as gate:
            agents = gate.feature("agents")
            run = await agents.start("where is it?")
            task = asyncio.create_task(agents.drive(run))
            async with asyncio.timeout(10):
                while not server.requests:
                    await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await agents.store.get(run.id)).state == "waiting"
            stalled.set()
            assert (await agents.resume(run.id)).answer == "Here it is."


@pytest.mark.parametrize("kind", NATIVE)
async def test_a_run_whose_model_was_out_of_reach_goes_on_where_it_was(tmp_path: Path, kind: str) -> None:
    (tmp_path / "cart.py").write_text(CART)
    busy = Answer(status=429, headers={"retry-after-ms": "1"})
    read = wanting(kind, ("code.read", {"path": "cart.py"}))
    with model_server(read, busy, busy, Answer("It divides by 10.")) as server:
        async with opened(tmp_path, settings(server, kind)) as gate:
            run = await ask(gate)
            assert (run.state, run.spent["calls"]) == ("failed", 1)
            run = await gate.feature("agents").resume(run.id)
            assert (run.state, run.answer, run.spent["calls"]) == ("done", "It divides by 10.", 1)
            with pytest.raises(Conflict, match="has ended: done"):
                await gate.feature("agents").resume(run.id)


@pytest.mark.parametrize("kind", NATIVE)
async def test_a_model_that_says_nothing_is_asked_again_and_not_taken_for_done(
    tmp_path: Path, kind: str
) -> None:
    with model_server(Answer(""), Answer("Here it is.")) as server:
        async with opened(tmp_path, settings(server, kind)) as gate:
            assert (await ask(gate)).answer == "Here it is."
        assert "Your reply was empty" in str(server.requests[1])
    with model_server(*[Answer("", thinking="hm")] * 3) as server:
        async with opened(tmp_path, settings(server, kind)) as gate:
            run = await ask(gate)
    assert run.state == "stopped"
    assert "they were empty" in run.reason


async def test_a_key_is_looked_up_by_name_and_sent_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", "value-of-the-key")
    with model_server(Answer("hello")) as server:
        async with opened(tmp_path, settings(server, "openai", key="THE_KEY")) as gate:
            run = await ask(gate)
    assert server.headers[0]["authorization"] == "Bearer value-of-the-key"
    assert "value-of-the-key" not in str(run.shown())
    with model_server() as server:
        async with opened(tmp_path, settings(server, "openai", key="NO_SUCH_KEY")) as gate:
            run = await ask(gate)
    assert run.state == "failed"
    assert "NO_SUCH_KEY" in run.reason
    assert not server.requests


async def test_tokens_are_estimated_where_a_server_does_not_count_them(tmp_path: Path) -> None:
    with model_server(Answer("hello " * 40, usage=(0, 0))) as server:
        async with opened(tmp_path, settings(server, "openai")) as gate:
            run = await ask(gate)
    assert run.spent["tokens"] > 60


def test_a_price_is_the_owners_figure_or_the_lists_or_unknown() -> None:
    usage = ModelUsage(1_000_000, 1_000_000)
    assert priced("openai", ModelSettings("x", usd_per_million=(1.0, 2.0)), usage) == 3.0
    listed = priced("openai", ModelSettings("gpt-4o-mini"), usage)
    assert listed is not None
    assert listed > 0
    assert priced("openai", ModelSettings("no-such-model-at-all"), usage) is None


@pytest.mark.parametrize("kind", NATIVE)
async def test_a_key_that_a_provider_repeats_is_neither_in_the_ledger_nor_in_the_run(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "the-word-of-" + "the-house-" * 3
    monkeypatch.setenv("PROVIDER_KEY", key)
    padding = "x " * 220  # so that the key lies across the place where the text is cut
    answer = Answer(status=401, error=f"bad {key} {padding} {key}")
    with model_server(answer) as server:
        async with opened(tmp_path, settings(server, kind, key="PROVIDER_KEY")) as gate:
            run = await ask(gate)
            kept = await gate.feature("agents").store.get(run.id)
            told = " ".join(row.body for row in await gate.events())
    assert "[key]" in kept.reason
    assert "refused the key" in told
    assert "the-word" not in kept.reason + told


async def test_a_secret_of_the_vault_in_an_error_is_recorded_by_its_name(tmp_path: Path) -> None:
    value = "the-word-of-" + "the-house-" * 3
    with model_server(Answer(status=404, error=f"no such thing as {value}")) as server:
        config = {
            "version": 1, "default_persona": "ada", "personas": {"ada": {"phase": "observe"}},
            "models": {"m": settings(server, "openai")},
        }  # fmt: skip
        async with app.open(tmp_path, config) as gate:
            await gate.set_secret("HOUSE", value)
            run = await ask(gate)
            kept = await gate.feature("agents").store.get(run.id)
            await gate.note("agents", f"it said {value}", {"why": [value]})
            told = " ".join(row.body for row in await gate.events())
    assert "refused the request" in kept.reason
    assert value not in kept.reason + told


@pytest.mark.parametrize("kind", NATIVE)
async def test_a_call_that_came_as_text_is_the_answer_and_the_reason_says_what_to_do(
    tmp_path: Path, kind: str
) -> None:
    for text, told in (
        ('<tool_call>{"name": "code.list", "args": {}}</tool_call>', True),
        ('{"name": "code_list", "arguments": {}}', True),
        ("It is `<tool_call>{}</tool_call>`, or {'name': 'code_list'}.", False),
    ):
        with model_server(Answer(text)) as server:
            async with opened(tmp_path, settings(server, kind)) as gate:
                run = await ask(gate)
        assert (run.state, run.answer, run.spent["calls"]) == ("done", text, 0)
        assert ("`wire: leaked`" in run.reason) is told
