"""The content scan inside the pipeline: what is found is asked about or refused, recorded, and never shown."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate import Change, FileChange, MountPath
from toolgate.consent.works import Scope
from toolgate.core.ports import Scan
from toolgate.core.result import Result
from toolgate.facade import Gate
from toolgate.secrets.scan import ContentScanner
from toolgate.storage.port import Filter

from .corpus import GITHUB, KEY_LINES, PAYLOADS, PRIVATE_KEY

SHELL = PAYLOADS["reverse-shell"][0]
SECRET_LINE = f"key = {GITHUB}\n"


def config(**more: Any) -> dict[str, Any]:
    maker = {"phase": "collaborate", "allow": ["fs.*", "t.*"]}
    return {"version": 1, "default_persona": "maker", "personas": {"maker": maker}} | more


@asynccontextmanager
async def opened(
    root: Path, tools: Callable[[Path], list[toolgate.Tool]] | None = None, **more: Any
) -> AsyncIterator[Gate]:
    made = tools(root) if tools else []
    async with toolgate.open(root, config(**more), "memory", tools=made) as gate:
        yield gate


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    return project


async def ask(gate: Gate, tool: str, args: dict[str, Any], **more: Any) -> Result:
    return await gate.call(tool, args, wait=False, **more)


async def bodies(gate: Gate, *kinds: str) -> list[dict[str, Any]]:
    return [json.loads(row.body) for row in await gate.events(Filter(kinds=kinds))]


def code(result: Result) -> str:
    return result.error.code.value if result.error else "ok"


def rules(result: Result) -> list[str]:
    return [one["rule"] for one in result.data["findings"]]


async def everything(gate: Gate) -> str:
    return "\n".join(f"{row}" for row in await gate.events(Filter()))


WRITERS: dict[str, tuple[str, dict[str, Any]]] = {
    "write": ("fs.write", {"path": "new.py", "content": SECRET_LINE}),
    "append": ("fs.append", {"path": "old.py", "text": SECRET_LINE}),
    "edit": ("fs.edit", {"path": "old.py", "find": "x = 1", "replace": SECRET_LINE.strip()}),
    "patch": ("fs.patch", {"diff": f"--- a/old.py\n+++ b/old.py\n@@ -1 +1,2 @@\n x = 1\n+{SECRET_LINE}"}),
    "save": ("fs.save", {"path": "scratch:a.txt", "content": SECRET_LINE}),
}


@pytest.mark.parametrize("writer", WRITERS)
async def test_a_secret_asks_whatever_writes_it_and_is_written_after_approval(
    root: Path, writer: str
) -> None:
    (root / "old.py").write_text("x = 1\n")
    tool, args = WRITERS[writer]
    async with opened(root) as gate:
        asked = await ask(gate, tool, args)
        assert code(asked) == "pending"
        assert rules(asked) == ["github-token"]
        assert (root / "old.py").read_text() == "x = 1\n"
        (question,) = await gate.approvals()
        assert "github-token at" in question.reason
        assert question.rule == "scan:secret"
        await gate.answer(question.id, "approve")
        done = await ask(gate, tool, args)
        assert done.ok, done.error
        assert rules(done) == ["github-token"]
        (started,) = await bodies(gate, "started")
        assert started["findings"] == done.data["findings"]
        assert GITHUB not in await everything(gate)
        assert GITHUB not in json.dumps(done.as_dict())


async def test_a_move_carries_what_was_there_and_asks_nothing_but_a_changed_mount_is_new(root: Path) -> None:
    (root / "old.py").write_text(SECRET_LINE)
    async with opened(root) as gate:
        moved = await ask(gate, "fs.move", {"path": "old.py", "new_path": "lib/new.py"})
        assert moved.ok
        assert moved.data["findings"] == []
        (root / ".toolgate/scratch/a.txt").write_text(SECRET_LINE)
        brought = await ask(gate, "fs.move", {"path": "scratch:a.txt", "new_path": "b.txt"})
        assert code(brought) == "pending"


async def test_what_was_there_before_and_is_not_touched_is_no_finding(root: Path) -> None:
    (root / "old.py").write_text(SECRET_LINE + "x = 1\n" + PRIVATE_KEY)
    async with opened(root) as gate:
        done = await ask(gate, "fs.edit", {"path": "old.py", "find": "x = 1", "replace": "x = 2"})
        assert done.ok
        assert done.data["findings"] == []
        removed = await ask(gate, "fs.edit", {"path": "old.py", "find": SECRET_LINE, "replace": ""})
        assert removed.ok
        assert GITHUB not in await everything(gate)


async def test_a_payload_is_refused_recorded_and_not_written(root: Path) -> None:
    async with opened(root) as gate:
        refused = await ask(gate, "fs.write", {"path": "run.sh", "content": f"# {GITHUB}\n{SHELL}\n"})
        assert code(refused) == "blocked_content"
        assert refused.error is not None
        assert "reverse-shell at run.sh:2:" in refused.error.message
        assert "scan:" in refused.error.fix
        assert rules(refused) == ["reverse-shell", "github-token"]
        assert not (root / "run.sh").exists()
        (denied,) = await bodies(gate, "denied")
        assert (denied["code"], denied["rule"]) == ("blocked_content", "scan:payload")
        assert denied["findings"] == refused.data["findings"]
        assert GITHUB not in await everything(gate)


async def test_a_grant_never_covers_a_call_with_a_finding_that_asks(root: Path) -> None:
    asking = {"rules": [{"name": "look", "persona": "maker", "tools": ["fs.write"], "decision": "ask"}]}
    async with opened(root, policy=asking) as gate:
        for content in ("plain\n", SECRET_LINE):  # also one that was given on a question with findings
            first = await ask(gate, "fs.write", {"path": "docs/a.md", "content": content})
            await gate.answer(first.data["question"], "approve", scope=Scope(paths=("docs/**",)))
            assert (await ask(gate, "fs.write", {"path": "docs/a.md", "content": content})).ok
        assert (await ask(gate, "fs.write", {"path": "docs/b.md", "content": "plain\n"})).ok
        asked = await ask(gate, "fs.write", {"path": "docs/c.md", "content": SECRET_LINE})
        assert code(asked) == "pending"
        (question,) = await gate.approvals()
        assert question.rule == "rule:look+scan:secret"


async def test_an_approval_without_findings_does_not_count_once_there_are_some(root: Path) -> None:
    asking = {"rules": [{"persona": "maker", "tools": ["fs.write"], "decision": "ask"}]}
    async with opened(root, policy=asking) as gate:
        call = ("fs.write", {"path": "a.md", "content": SECRET_LINE})
        real = gate.services.scanner

        class Blind:
            def scan(self, change: Change) -> Scan:
                return Scan()

        gate.services.scanner = Blind()
        asked = await ask(gate, *call)
        await gate.answer(asked.data["question"], "approve")
        gate.services.scanner = real
        assert code(await ask(gate, *call)) == "pending"
        assert not (root / "a.md").exists()


async def test_a_scanner_that_fails_lets_nothing_pass(root: Path) -> None:
    class Broken:
        def scan(self, change: Change) -> Scan:
            raise ValueError(change.files[0].after)

    async with opened(root) as gate:
        gate.services.scanner = Broken()
        refused = await ask(gate, "fs.write", {"path": "a.md", "content": "something private"})
        assert code(refused) == "blocked_content"
        assert "private" not in str(refused.error)
        assert not (root / "a.md").exists()


async def test_our_own_secrets_are_found_by_the_vault_that_holds_them(root: Path) -> None:
    class OneValue:
        def within(self, content: bytes) -> list[tuple[str, int, int]]:
            at = content.find(b"plain horse words")
            return [("db", at, at + 17)] if at >= 0 else []

    async with opened(root) as gate:
        gate.services.scanner.vault = OneValue()  # type: ignore[attr-defined]
        asked = await ask(gate, "fs.write", {"path": "a.md", "content": "it is plain horse words"})
        assert code(asked) == "pending"
        assert rules(asked) == ["vault"]
        assert asked.data["findings"][0]["excerpt"] == "the value of db"
        assert "horse" not in await everything(gate)


def planned(root: Path) -> list[toolgate.Tool]:
    def plan(path: MountPath, content: str) -> Change:
        return Change((FileChange(path, None, content.encode()),), findings=())

    @toolgate.tool("t.put", writes=["project"], plan=plan)
    async def put(change: Change) -> str:
        (root / change.files[0].path.relative).write_bytes(change.files[0].after or b"")
        return "put"

    return [put]


async def test_a_tool_of_somebody_else_passes_the_scan_too(root: Path) -> None:
    async with opened(root, planned) as gate:
        assert code(await ask(gate, "t.put", {"path": "a.sh", "content": SHELL})) == "blocked_content"
        assert code(await ask(gate, "t.put", {"path": "a.sh", "content": SECRET_LINE})) == "pending"
        assert (await ask(gate, "t.put", {"path": "a.sh", "content": "echo"})).ok


async def test_the_project_a_persona_and_a_rule_say_what_a_finding_means(root: Path) -> None:
    fixtures = {
        "name": "fixtures", "persona": "maker", "tools": ["fs.*"], "decision": "allow",
        "when": {"path": "tests/**", "findings": ["secret:github-token"]},
    }  # fmt: skip
    people = config()["personas"] | {
        "careful": {"phase": "collaborate", "allow": ["fs.*"], "scan": {"secret": "deny"}}
    }
    more = {"scan": {"hidden": "allow"}, "policy": {"rules": [fixtures]}, "personas": people}
    async with opened(root, **more) as gate:

        async def wrote(path: str, content: str, persona: str = "maker") -> str:
            return code(await ask(gate, "fs.write", {"path": path, "content": content}, persona=persona))

        assert await wrote("tests/a.py", SECRET_LINE) == "ok"
        assert await wrote("tests/b.py", PRIVATE_KEY) == "pending"
        assert await wrote("src/a.py", SECRET_LINE) == "pending"
        assert await wrote("src/b.py", "x\u202ey") == "ok"
        assert await wrote("src/c.py", SECRET_LINE, "careful") == "blocked_content"


async def test_a_finding_never_makes_a_decision_looser(root: Path) -> None:
    lenient = {
        "persona": "*", "tools": ["*"], "decision": "allow", "when": {"findings": ["secret", "payload", "hidden"]},
    }  # fmt: skip
    people = {"maker": {"phase": "observe"}}
    async with opened(root, personas=people, policy={"rules": [lenient]}) as gate:
        assert code(await ask(gate, "fs.write", {"path": "a.md", "content": "plain"})) == "not_allowed"
        assert code(await ask(gate, "fs.write", {"path": "a.md", "content": SECRET_LINE})) == "not_allowed"


async def test_undo_that_brings_a_secret_or_a_payload_back_asks_and_is_not_refused(root: Path) -> None:
    (root / "old.sh").write_text(SECRET_LINE + SHELL + "\n")
    async with opened(root) as gate:
        gone = await ask(gate, "fs.delete", {"path": "old.sh"})
        assert gone.ok
        assert GITHUB not in await everything(gate)
        assert gone.meta.event_id is not None
        asked = await gate.undo(gone.meta.event_id, wait=False)
        assert code(asked) == "pending"
        assert rules(asked) == ["reverse-shell", "github-token"]
        await gate.answer(asked.data["question"], "approve")
        back = await gate.undo(gone.meta.event_id, wait=False)
        assert back.ok, back.error
        assert (root / "old.sh").read_text() == SECRET_LINE + SHELL + "\n"


async def test_an_explanation_shows_what_a_finding_would_mean(root: Path) -> None:
    async with opened(root) as gate:
        explained = await gate.explain("fs.write", {"path": "a.md", "content": ""})
        assert "secret is ask, payload is deny, hidden is ask" in explained.lines[-1].why


def test_a_secret_is_hidden_where_it_stands_and_nothing_else_is() -> None:
    hide = ContentScanner().hide
    assert hide(f"a {GITHUB} b".encode()) == b"a [masked] b"
    assert hide(f"url = https://u:{GITHUB}@x.org\n".encode()).count(b"[masked]") == 1, "one in another is one"
    assert hide(f"+key = {GITHUB}\n same\n".encode()) == b"+key = [masked]\n same\n"
    margin = "".join(f"+{line}\n" for line in PRIVATE_KEY.splitlines()).encode()
    hidden = hide(margin)
    assert hidden.count(b"\n") == margin.count(b"\n")
    assert not any(line.encode() in hidden for line in KEY_LINES)
    plain = b"def main():\n    return tokens\n"
    assert hide(plain) is plain


@pytest.mark.parametrize(("tool", "args"), [
    ("fs.delete", {"path": "old.py"}), ("fs.move", {"path": "old.py", "new_path": "new.py"}),
    ("fs.write", {"path": "old.py", "content": "x = 1\n"}),
])  # fmt: skip
async def test_a_secret_that_goes_away_is_shown_in_the_question_and_kept_in_no_event(
    root: Path, tool: str, args: dict[str, Any]
) -> None:
    (root / "old.py").write_text(SECRET_LINE)
    rule = {"tools": ["fs.*"], "decision": "ask", "reason": "changes are looked at"}
    async with opened(root, policy={"rules": [rule]}) as gate:
        assert code(await ask(gate, tool, args)) == "pending"
        (question,) = await gate.approvals()
        assert tool == "fs.move" or f"-{SECRET_LINE}" in question.preview + "\n"
        assert GITHUB not in await everything(gate)
