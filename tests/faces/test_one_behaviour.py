"""One behaviour through every face: the same results, the same errors, the same things done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolgate.project import config, trust

from .faces import FACES, Face, Json

POLICY = """\
version: 1
default_persona: builder
personas:
  builder: {phase: contribute}
  reader: {phase: observe}
  hasty: {phase: observe, limits: {per_hour: 1}}
plugins: ["./tools.py"]
policy:
  rules:
    - {name: free, persona: [builder, reader], tools: [t.look, t.fail], decision: allow}
    - {name: reviewed, persona: builder, tools: [fs.write, t.send], decision: ask, reason: it is reviewed}
"""
TOOLS = '''\
from toolgate import tool

def toolset(services):
    @tool("t.look", reads=["system"])
    async def look(what: str, times: int = 1) -> dict:
        """Look at something."""
        return {"seen": what * times}

    @tool("t.fail", reads=["system"])
    async def fail() -> str:
        """Never works."""
        raise ValueError("it broke")

    @tool("t.send", writes=["internet"])
    async def send(text: str) -> str:
        """Send something away."""
        with open(SENT, "a") as file:
            file.write(text + "\\n")
        return text

    return [look, fail, send]
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    (place / "toolgate.yaml").write_text(POLICY)
    (place / "tools.py").write_text(f"SENT = {str(tmp_path / 'sent')!r}\n{TOOLS}")
    (place / "a.txt").write_text("hello\n")
    trust.trust(place, config.state_dir())
    return place


@pytest.fixture(params=list(FACES))
def face(request: pytest.FixtureRequest, root: Path) -> Iterator[Face]:
    with FACES[request.param](root) as made:
        yield made


def plain(result: Json) -> Json:
    """A result without what differs from run to run, and without what it cost: over MCP a text is sent as well."""
    assert set(result) == {"ok", "tool", "data", "error", "meta"}
    assert set(result["meta"]) == {"call_id", "event_id", "duration_ms", "tokens", "cached", "truncated"}
    meta = {name: result["meta"][name] for name in ("cached", "truncated")}
    error = result["error"]
    if error is not None:  # a fix may name the call
        error = error | {"fix": error["fix"].replace(result["meta"]["call_id"], "ID")}
    return {name: result[name] for name in ("ok", "tool", "data")} | {"error": error, "meta": meta}


CALLS: list[tuple[str, Any, str, str]] = [
    ("t.look", {"what": "ab", "times": 2}, "", ""),
    ("t/look", {"what": "ab"}, "reader", ""),
    ("t.lok", {}, "", "unknown_tool"),
    ("t.look", {}, "", "invalid_args"),
    ("t.look", {"what": "a", "other": 1}, "", "invalid_args"),
    ("t.fail", {}, "", "failed"),
    ("t.send", {"text": "x"}, "reader", "not_allowed"),
    ("fs.read", {"path": "../secret"}, "", "outside_mount"),
    ("fs.read", {"path": ".env"}, "", "blocked_path"),
    ("fs.read", {"path": "none.txt"}, "", "not_found"),
    ("fs.read", {"path": "a.txt"}, "", ""),
]


def test_every_face_gives_what_the_library_gives(face: Face, root: Path) -> None:
    with FACES["library"](root) as library:
        for tool, args, persona, code in CALLS:
            expected = plain(library.call(tool, args, persona=persona))
            assert (expected["error"] or {"code": ""})["code"] == code, tool
            if expected["error"] is not None:
                assert all(expected["error"][name] for name in ("code", "message", "fix"))
            assert plain(face.call(tool, args, persona=persona)) == expected, tool


def test_an_asked_call_is_pending_and_runs_once_after_its_approval(
    face: Face, root: Path, tmp_path: Path
) -> None:
    asked = face.call("t.send", {"text": "hello"})
    assert asked["error"]["code"] == "pending"
    question = asked["data"]["question"]
    assert face.call("t.send", {"text": "hello"})["data"]["question"] == question
    assert not (tmp_path / "sent").exists()
    assert face.answer(question, "approve") == {"ok": True}
    assert face.call("t.send", {"text": "hello"})["data"] == "hello"
    assert (tmp_path / "sent").read_text() == "hello\n"
    again = face.answer(question, "approve")
    assert (again["code"], bool(again["fix"])) == ("not_found", True)
    assert face.call("t.send", {"text": "hello"})["error"]["code"] == "pending"


def test_a_refusal_reaches_the_caller_with_its_reason(face: Face, tmp_path: Path) -> None:
    question = face.call("t.send", {"text": "hello"})["data"]["question"]
    assert face.answer(question, "deny", "not today") == {"ok": True}
    refused = face.call("t.send", {"text": "hello"})
    assert refused["error"]["code"] == "denied"
    assert refused["error"]["message"].startswith("Access denied by creator.")
    assert "not today" in refused["error"]["message"]
    assert not (tmp_path / "sent").exists()


@pytest.mark.parametrize("face", [name for name in FACES if name != "mcp"], indirect=True)  # MCP has no keys
def test_a_key_gives_the_stored_result_and_no_other_call(face: Face) -> None:
    first = face.call("t.look", {"what": "a"}, key="k")
    again = face.call("t.look", {"what": "a"}, key="k")
    assert (again["data"], again["meta"]["cached"]) == (first["data"], True)
    assert again["meta"]["call_id"] == first["meta"]["call_id"]
    assert face.call("t.look", {"what": "b"}, key="k")["error"]["code"] == "conflict"


def test_a_limit_says_when_to_come_back(face: Face) -> None:
    assert face.call("system.ping", {}, persona="hasty")["ok"]
    limited = face.call("system.ping", {}, persona="hasty")
    assert limited["error"]["code"] == "rate_limited"
    assert limited["data"]["retry_after_s"] > 0


def test_a_pause_stops_calls_and_lifting_it_twice_is_said(face: Face) -> None:
    assert face.pause("reader") == {"ok": True}
    assert face.call("t.look", {"what": "a"}, persona="reader")["error"]["code"] == "not_allowed"
    assert face.resume("reader") == {"ok": True}
    assert face.call("t.look", {"what": "a"}, persona="reader")["ok"]
    assert face.resume("reader")["code"] == "not_found"


def test_a_change_is_undone_exactly_and_once(face: Face, root: Path) -> None:
    change = {"path": "a.txt", "content": "changed\n"}
    assert face.answer(face.call("fs.write", change)["data"]["question"], "approve") == {"ok": True}
    done = face.call("fs.write", change)
    assert (root / "a.txt").read_text() == "changed\n"
    undone = face.undo(done["meta"]["event_id"])
    assert undone["ok"], undone
    assert (root / "a.txt").read_text() == "hello\n"
    assert face.undo(done["meta"]["event_id"])["error"]["code"] == "conflict"


def test_an_answer_to_nothing_is_the_same_error_everywhere(face: Face, root: Path) -> None:
    with FACES["library"](root) as library:
        assert face.answer("q_none", "approve") == library.answer("q_none", "approve")


def test_a_program_gives_the_same_and_its_change_waits_for_an_approval(face: Face, root: Path) -> None:
    ran = face.call("exec.python", {"code": "print(1)\noutput({'a': 2})\nraise SystemExit(3)"})
    wanted = ("stdout", "exit_code", "output", "limit", "proposal")
    assert ran["ok"]
    assert [ran["data"][name] for name in wanted] == ["1\n", 3, {"a": 2}, None, None]
    late = face.call("exec.python", {"code": "print('x', flush=True)\nwhile True: pass", "timeout_ms": 500})
    assert (late["error"]["code"], late["data"]["stdout"], late["data"]["limit"]) == (
        "timeout",
        "x\n",
        "time",
    )
    change = {"code": "open('/project/a.txt', 'w').write('bye\\n')", "project": "overlay"}
    asked = face.call("exec.python", change)
    assert asked["error"]["code"] == "pending"
    assert face.answer(asked["data"]["question"], "approve") == {"ok": True}
    proposal = face.call("exec.python", change)["data"]["proposal"]
    assert (proposal["state"], "+bye" in proposal["diff"]) == ("pending", True)
    assert (root / "a.txt").read_text() == "hello\n"
    assert face.answer(proposal["question"], "approve") == {"ok": True}
    applied = face.call("fs.apply", {"execution": proposal["execution"]})
    assert applied["data"]["files"][0]["path"] == "a.txt"
    assert (root / "a.txt").read_text() == "bye\n"
    assert face.undo(applied["meta"]["event_id"])["ok"]
    assert (root / "a.txt").read_text() == "hello\n"
