"""Success metrics and suggested calls: from the record, and without a model."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from agents.world import CART, Witness, call, calls, config, world
from gates import FixedClock
from toolgate import app
from toolgate.agents.suggest import suggest
from toolgate.features.agents.metrics import TARGETS
from toolgate.features.agents.pages import HIGH, plot
from toolgate.storage.memory import MemoryBackend


async def test_every_metric_of_the_document_is_measured_from_the_record(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text(CART)
    script = [
        calls(call("code.read", path="cart.py"), call("code.read", path="../outside.py"), call("code.read", path="none.py")),
        "cart.py line 6 divides by 10.",
        "I do not need to look.",
    ]  # fmt: skip
    limits = {"persona": {"per_minute": 4, "per_hour": 100}}
    async with world(script, tmp_path, limits=limits) as (gate, agents):
        for question, offset in (("why?", 0), ("and now?", 2)):
            assert (await agents.drive(await agents.start(question, offset=offset))).state == "done"
        for _ in range(3):
            await gate.call("code.list", {}, persona="ada")
        room = await agents.rooms.open("why?", ["ada"])
        await agents.rooms.judge(room.id, "right", "me")
        found = (await gate.call("ai.metrics", {"period": "all"}, persona="bob")).data
    told = {one["name"]: one for one in found["metrics"]}
    assert list(told) == list(TARGETS)
    assert (told["adoption"]["value"], told["adoption"]["of"], told["adoption"]["met"]) == (0.5, 2, False)
    assert (told["depth"]["value"], told["depth"]["met"]) == (3, True)
    assert (told["accuracy"]["value"], told["accuracy"]["of"]) == (1.0, 1)
    assert 0 < told["success_rate"]["value"] < 1
    assert told["response_ms"]["met"] is True
    assert told["limit_hits"]["value"] > 0
    assert (told["violations"]["value"], told["violations"]["met"]) == (0, True)
    assert found["attempted_violations"] == 1
    assert found["work"]["code_understanding"] == 1.0
    assert found["tools"] == [
        {"tool": "code.read", "calls": 3, "led_to_answer": pytest.approx(1 / 3, abs=1e-3)}
    ]


async def test_nothing_is_made_up_where_nothing_happened(tmp_path: Path) -> None:
    async with world([], tmp_path, witness=Witness()) as (gate, _):
        found = (await gate.call("ai.metrics", {}, persona="bob")).data
        refused = await gate.call("ai.metrics", {"period": "ever"}, persona="bob")
    assert {one["name"]: one["value"] for one in found["metrics"]} == dict.fromkeys(TARGETS) | {
        "violations": 0
    }
    assert refused.error is not None


ASKED = [
    ("Where is parse_config used?", "code.search", {"pattern": r"\bparse_config\b"}),
    ("show me where `Gate.call` is used", "code.search", {"pattern": r"\bGate\.call\b"}),
    ("Show me where CognitionLogger is used", "code.search", {"pattern": r"\bCognitionLogger\b"}),
    ("who calls total", "code.search", {"pattern": r"\btotal\b"}),
    ("find all usages of \"a b\"", "code.search", {"pattern": r"a\ b"}),
    ("who changed src/app.py last?", "code.log", {"path": "src/app.py", "limit": 1}),
    ("who last changed cart.py", "code.log", {"path": "cart.py", "limit": 1}),
    ("who wrote cart.py", "code.blame", {"path": "cart.py"}),
    ("what is in README.md", "code.read", {"path": "README.md"}),
    ("list all python files", "code.list", {"pattern": "**/*.py"}),
    ("what changed?", "code.diff", {}),
    ("show the last commits", "code.log", {"limit": 10}),
    ("Where is CognitionLogger used in the system?", "code.search", {"pattern": r"\bCognitionLogger\b"}),
    ("where's parse_config used", "code.search", {"pattern": r"\bparse_config\b"}),
    ("Could you show me where the function total is called in our project?", "code.search", {"pattern": r"\btotal\b"}),
    ("who touched the file src/app.py last?", "code.log", {"path": "src/app.py", "limit": 1}),
    ("who changed the class Cart last", "code.search", {"pattern": r"\bCart\b"}),
    ("show me README.md", "code.read", {"path": "README.md"}),
    ("search for TODO", "code.search", {"pattern": r"\bTODO\b"}),
    ("list files in src", "code.list", {"directory": "src"}),
    ("what is in src/", "code.list", {"directory": "src"}),
    ("what does src/cart.py do?", "code.read", {"path": "src/cart.py"}),
    ("what calls total()", "code.search", {"pattern": r"\btotal\b"}),
    ("show me all usages of `Cart.total`", "code.search", {"pattern": r"\bCart\.total\b"}),
    ("how do we use total anywhere in the code?", "code.search", {"pattern": r"\btotal\b"}),
    ("which tests cover total", "code.search", {"pattern": r"\btotal\b", "file_pattern": "*test*"}),
    ("search TODO in src/", "code.search", {"pattern": r"\bTODO\b", "paths": ["src/"]}),
    ("who edited cart.py most recently", "code.log", {"path": "cart.py", "limit": 1}),
    ("what changed in cart.py recently", "code.log", {"path": "cart.py"}),
    ("what has changed in cart.py", "code.diff", {"paths": ["cart.py"]}),
    ("what changed in the last commit?", "code.show", {"commit": "HEAD"}),
    ("what did commit abc1234 change", "code.show", {"commit": "abc1234"}),
    ("what changed since yesterday", "code.log", {"since": "2 days ago"}),
    ("who wrote line 10 of cart.py?", "code.blame", {"path": "cart.py", "start_line": 10, "end_line": 10}),
    ("show me lines 1 to 3 of cart.py, please", "code.read", {"path": "cart.py", "start_line": 1, "end_line": 3}),
    ("list the files", "code.list", {}),
]  # fmt: skip


@pytest.mark.parametrize(("question", "tool", "args"), ASKED)
def test_a_plain_question_becomes_a_call(question: str, tool: str, args: dict[str, object]) -> None:
    first = suggest(question)[0]
    assert (first.tool, first.args) == (tool, args)


@pytest.mark.parametrize(
    "question",
    ["", "hello", "delete everything", "rm -rf /", "?" * 5000, "where " * 200, "who changed " + "a" * 400],
)
def test_other_questions_get_nothing_that_changes_anything(question: str) -> None:
    assert all(one.tool.split(".")[0] in ("code", "events", "tools") for one in suggest(question))


async def test_every_suggested_call_fits_its_tool_and_the_personas_rights(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text(CART)
    async with world([], tmp_path) as (gate, _):
        for question, tool, _ in ASKED:
            found = (await gate.call("ai.suggest", {"question": question}, persona="bob")).data["calls"]
            assert found[0]["tool"] == tool
            for one in found:
                result = await gate.call(one["tool"], one["args"], persona="human")
                assert result.error is None or result.error.code != "invalid_args", (one, result.error)
    personas = {"ada": {"phase": "observe", "deny": ["code.search"]}}
    async with world([], tmp_path, personas=personas) as (gate, _):
        found = (await gate.call("ai.suggest", {"question": "where is total used"}, persona="ada")).data
    assert found == {"calls": []}


def test_the_command_prints_calls_that_can_be_made(capfd: pytest.CaptureFixture[str]) -> None:
    from toolgate.faces.cli.main import main

    main(["suggest", "who changed src/app.py last?", "--json"])
    assert json.loads(capfd.readouterr().out)["data"][0]["tool"] == "code.log"
    main(["suggest", "where is $HOME used"])
    assert shlex.split(capfd.readouterr().out.splitlines()[1])[3] == json.dumps({"pattern": r"\$HOME"})


def test_stats_shows_the_metrics_with_their_targets(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from toolgate.faces.cli.main import main

    main(["init", str(tmp_path)])
    capfd.readouterr()
    main(["stats", "--metrics", "--root", str(tmp_path), "--json"])
    assert [one["name"] for one in json.loads(capfd.readouterr().out)["data"]["metrics"]] == list(TARGETS)
    main(["stats", "--metrics", "--root", str(tmp_path)])
    assert "adoption" in capfd.readouterr().out


async def test_the_plot_counts_each_call_in_the_bar_of_its_time(tmp_path: Path) -> None:
    clock = FixedClock()
    async with app.open(tmp_path, config(), MemoryBackend(), tools=Witness().tools(), clock=clock) as gate:
        for number in range(3):
            assert (await gate.call("t.look", {"x": str(number)}, persona="ada")).ok
        clock.advance(40 * 60)
        assert (await gate.call("t.look", {"x": "late"}, persona="ada")).ok
        assert not (await gate.call("t.act", {"x": "no"}, persona="bob", wait=False)).ok
        assert not (await gate.call("code.read", {"path": "../x"}, persona="ada")).ok
        clock.advance(60)
        drawn = await plot(gate, "1hour", "ada")
        assert [(bar.worked, bar.refused) for bar in drawn.bars if bar.total] == [(3, 0), (1, 1)]
        assert sum(bar.total for bar in drawn.bars) == 5
        assert {one.kind for one in drawn.rects} == {"worked", "refused"}
        assert max(one.height for one in drawn.rects) == HIGH
        assert "5 calls: 4 worked, 0 failed, 1 refused" in drawn.told
        clock.advance(7200)
        assert (await plot(gate, "1hour", "")).rects == []
