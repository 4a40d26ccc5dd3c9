"""A mask is never written in place of what it hides; a secret never into a file without a finding."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate import tool
from toolgate.facade import Gate

CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "ada",
    "personas": {"ada": {"phase": "contribute"}},
    "policy": {"rules": [{"name": "all", "persona": "*", "tools": ["fs.*", "t.*"], "decision": "allow"}]},
}
VALUE = "the-value-4711-of-it"


@tool("t.post", writes=["outside"])
async def post(text: str) -> str:
    """Send it away."""
    return text


@tool("t.say", reads=["system"])
async def say(text: str) -> str:
    """Say it again."""
    return text


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Gate]:
    async with toolgate.open(tmp_path, CONFIG, tools=[post, say]) as made:
        await made.set_secret("KEY", VALUE)
        yield made


@pytest.mark.parametrize("marker", ["[secret:KEY]", "[masked]", "[secret]"])
async def test_a_mask_is_not_written_into_a_file(gate: Gate, marker: str) -> None:
    done = await gate.call("fs.write", {"path": "a.txt", "content": f"key = {marker}\n"})
    assert done.error is not None
    assert done.error.code == "blocked_content"
    assert marker in done.error.message
    assert "masked when you read it" in done.error.fix
    assert not (gate.root / "a.txt").exists()


async def test_a_file_that_held_the_text_may_be_changed_around_it_and_moved(gate: Gate) -> None:
    (gate.root / "a.md").write_text("we write [masked] there\nold\n")
    done = await gate.call("fs.write", {"path": "a.md", "content": "we write [masked] there\nnew\n"})
    assert done.ok, done.error
    assert (await gate.call("fs.move", {"path": "a.md", "new_path": "b.md"})).ok
    twice = await gate.call("fs.write", {"path": "b.md", "content": "[masked] and [masked]\n"})
    assert twice.error is not None
    assert twice.error.code == "blocked_content"


async def test_an_undo_brings_back_what_was_there(gate: Gate) -> None:
    (gate.root / "a.md").write_text("we write [masked] there\n")
    gone = await gate.call("fs.write", {"path": "a.md", "content": "nothing\n"})
    assert (await gate.undo(gone.meta.call_id)).ok
    assert (gate.root / "a.md").read_text() == "we write [masked] there\n"


async def test_a_mask_is_not_sent_away_but_may_be_talked_about(gate: Gate) -> None:
    sent = await gate.call("t.post", {"text": "token [secret:KEY]"})
    assert sent.error is not None
    assert sent.error.code == "blocked_content"
    assert (await gate.call("t.say", {"text": "it said [secret:KEY]"})).ok


async def test_a_secret_in_a_file_is_a_finding_and_in_a_name_is_refused(gate: Gate) -> None:
    for content in (VALUE, VALUE[::-1], VALUE.encode().hex(), "\n".join(VALUE)):
        done = await gate.call("fs.write", {"path": "a.txt", "content": f"key = {content}\n"}, wait=False)
        assert done.data["findings"][0]["rule"] == "vault", content
        assert VALUE not in repr(done)
    named = await gate.call("fs.write", {"path": f"{VALUE}.txt", "content": "x\n"}, wait=False)
    assert named.error is not None
    assert named.error.code == "blocked_content"
    assert VALUE not in repr(named) + "".join([line async for line in gate.export()])


async def test_the_journal_says_which_secrets_were_set_and_verifies(gate: Gate) -> None:
    await gate.set_secret("KEY", VALUE + "2", hosts=["a.org"], reveal=True)
    await gate.remove_secret("KEY")
    rows = [line async for line in gate.export() if '"vaulted"' in line]
    assert len(rows) == 3
    assert all("KEY" in row and VALUE not in row for row in rows)
    assert (await gate.verify()).ok


async def test_a_running_gate_knows_at_its_next_call_what_another_process_set(
    gate: Gate, tmp_path: Path
) -> None:
    async with toolgate.open(tmp_path, CONFIG) as other:
        assert (await gate.call("t.say", {"text": "another-value-1"})).data == "another-value-1"
        await other.set_secret("LATER", "another-value-1")
        assert (await gate.call("t.say", {"text": "another-value-1"})).data == "[secret:LATER]"
        await other.remove_secret("LATER")
        assert (await gate.call("t.say", {"text": "another-value-1"})).data == "another-value-1"


async def test_a_secret_that_is_set_while_a_call_runs_is_not_in_its_result(tmp_path: Path) -> None:
    @tool("t.slow", reads=["system"])
    async def slow() -> str:
        """Take a while, and find out."""
        async with toolgate.open(tmp_path, CONFIG) as other:
            await other.set_secret("LATER", "another-value-1")
        await asyncio.sleep(0.55)
        return "another-value-1"

    async with toolgate.open(tmp_path, CONFIG, tools=[slow]) as gate:
        assert (await gate.call("t.slow")).data == "[secret:LATER]"


async def test_while_the_vault_cannot_be_read_nothing_runs_and_what_was_known_stays_masked(
    gate: Gate,
) -> None:
    assert gate.vault is not None
    kept = gate.vault.path.read_bytes()
    gate.vault.path.write_bytes(kept.replace(b"box", b"bax"))
    done = await gate.call("t.say", {"text": VALUE}, reason=VALUE)
    assert done.error is not None
    assert done.error.code == "unavailable"
    assert VALUE not in repr(done) + "".join([line async for line in gate.export()])
    gate.vault.path.write_bytes(kept)
    assert (await gate.call("t.say", {"text": VALUE})).data == "[secret:KEY]"


async def test_a_stored_result_is_masked_although_the_value_came_into_the_vault_later(gate: Gate) -> None:
    first = await gate.call("t.say", {"text": "another-value-1"}, key="k")
    assert first.data == "another-value-1"
    await gate.set_secret("LATER", "nother-value-1")
    again = await gate.call("t.say", {"text": "another-value-1"}, key="k")
    assert "another-value-1" not in repr(again)
