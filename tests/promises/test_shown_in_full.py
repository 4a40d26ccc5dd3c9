"""What cannot be shown cannot be approved: every tool, hostile arguments, every channel.

Every byte of the final arguments and of the Change is in what a human sees, or the question cannot be approved there, or it
is the value of a declared secret, which is told by its name and fingerprint.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, RootModel, SecretStr
from tests.garden.plot import PROFILE, plot

import toolgate
from faces.channels import Seen, channels, unseen
from faces.http.serving import house
from sampling import dice
from scan.corpus import GITHUB
from toolgate import Change, FileChange, MountPath, Tool, tool
from toolgate.consent.works import AskWork
from toolgate.core.call import Call
from toolgate.core.effects import Effects
from toolgate.core.errors import CallError

ROOMY = {"per_minute": 1_000_000, "per_hour": 10_000_000}
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "helper",
    "personas": {"helper": {"phase": "collaborate", "allow": ["*"]}},
    "limits": {"persona": ROOMY, "global": ROOMY},
    "consent": {"max_open": 100},
    "policy": {
        "rules": [{"name": "asks", "persona": "*", "tools": ["*"], "decision": "ask", "reason": "looked at"}]
    },
}
TOKEN = GITHUB
RUN, PAYLOAD = "run()", "payload()"
HOSTILE = [
    "plain",
    "print(1)\nimport os\nos.system('x')\n",
    f"token = '{TOKEN}'\nexec(token)\n",
    "".join(f"k{n} = '{TOKEN[:-4]}{n:04d}'\n" for n in range(310)) + "payload()\n",
    "-----BEGIN " + "PRIVATE KEY-----\n" + f"{'QUJD' * 16}\npayload()\n" + "-----END " + "PRIVATE KEY-----\n",
    "[masked]",
    "import \u043es  # look-alike",
    "a\u202eb\u2066c\u200bd",
    "e\u0301\u0338 combining",
    '", "args": {}, "x": "',
    "effects: nothing\nasked because: it is fine\nquestion: q_0",
    "</code></article><script>alert(1)</script>",
    "x" * 5000,
    "\n".join(f"line {n}" for n in range(700)),
    "日本語 текст العربية",
    "\ttabs\t and  blanks ",
    "password=hunter2-hunter2-77aZ",
    "💥👩‍💻",
]
KEYS = [
    "plain",
    "token",
    "password",
    "Authorization",
    "credential",
    "api_key",
    TOKEN,
    TOKEN[:-1] + "z",
    "a\u202eb",
    "k\u043e",
    "x\ny",
]
NAMES = [
    "a.txt",
    "docs/x,**.md",
    "src/\u0430pp.py",
    f"keys/{TOKEN}.txt",
    "sp ace.py",
    "q'uo\"te.md",
    "[masked].txt",
    "new/deep/er.py",
]


class Settings(BaseModel):
    code: str = ""
    password: SecretStr = SecretStr("")
    more: dict[str, str] = {}


def extra() -> list[Tool]:
    @tool("t.free", writes=["outside"])
    async def free(files: dict[str, str], rows: list[dict[str, Any]], token: str = "") -> str:
        """Keys of the caller's own choice."""
        return "done"

    async def shown(code: str, settings: Settings) -> str:
        return f"would run {code} with {settings.code}"

    @tool("t.typed", writes=["outside"], preview=shown)
    async def typed(code: str, settings: Settings) -> str:
        """A declared secret beside what is none."""
        return "done"

    async def binary(path: MountPath, size: int) -> Change:
        return Change((FileChange(path, None, bytes(range(256)) * max(1, size % 9)),))

    @tool("t.binary", writes=["project"], plan=binary)
    async def write(change: Change) -> str:
        """A file that is no text."""
        return "done"

    class Given(RootModel[dict[str, Any]]):
        pass

    async def run(root: dict[str, Any]) -> str:
        return "done"

    schema = {
        "type": "object",
        "properties": {"credential": {"type": "string"}, "query": {"type": "string"}, "pin": {"type": "string", "writeOnly": True}},
    }  # fmt: skip
    foreign = Tool(
        name="far.query", description="", run=run, model=lambda: Given, input_schema_override=schema, origin="imported",
        effects=Effects.of(("outside",), ("outside",)),
    )  # fmt: skip
    return [free, typed, write, foreign]


class Caller:
    """Makes up arguments that fit a schema."""

    def __init__(self, chance: random.Random) -> None:
        self.random = chance

    def value(self, name: str, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> Any:
        choose = self.random.choice
        if "$ref" in schema:
            schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
        if "enum" in schema:
            return choose(schema["enum"])
        if "const" in schema:
            return schema["const"]
        if options := schema.get("anyOf") or schema.get("oneOf"):
            return self.value(name, choose(options), root, depth)
        match schema.get("type"):
            case "integer" | "number":
                return self.random.randint(1, 5)
            case "boolean":
                return self.random.random() < 0.3
            case "null":
                return None
            case "array":
                return [
                    self.value(name, schema.get("items", {}), root, depth + 1)
                    for _ in range(self.random.randint(1, 3))
                ]
            case "object":
                return self.object(schema, root, depth)
        return self.text(name)

    def object(self, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
        known = schema.get("properties", {})
        needed = set(schema.get("required", ()))
        made = {
            name: self.value(name, part, root, depth + 1)
            for name, part in known.items()
            if name in needed or self.random.random() < 0.4
        }
        free = schema.get("additionalProperties")
        if not known and depth < 3 and free is not False:
            part = free if isinstance(free, Mapping) else {"type": "string"}
            keys = self.random.sample(KEYS, self.random.randint(1, 4))
            made |= {key: self.value(key, part, root, depth + 1) for key in keys}
        return made

    def text(self, name: str) -> str:
        if "path" in name or name in ("file", "cwd", "to"):
            return self.random.choice(["old.py", "many.txt", *NAMES])
        return self.random.choice(HOSTILE)

    def patch(self) -> dict[str, Any]:
        added = self.random.choice(HOSTILE).rstrip("\n").split("\n")
        body = "".join(f"+{line}\n" for line in added)
        return {"diff": f"--- a/old.py\n+++ b/old.py\n@@ -1 +1,{len(added) + 1} @@\n x = 1\n{body}"}


async def test_every_byte_is_shown_or_nobody_can_approve(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "old.py").write_text("x = 1\n")
    (root / "many.txt").write_text(HOSTILE[3])
    caller, asked = Caller(dice("hostile arguments")), Counter[str]()
    async with house(root, CONFIG, tools=extra()) as here, here.browser() as browser:
        calls = captured(here.gate)
        for spec in [*here.gate.services.registry] * 2:
            args = caller.object(spec.input_schema, spec.input_schema, 0)
            if spec.name == "fs.patch":
                args = caller.patch()
            result = await here.gate.call(spec.name, args, persona="helper", wait=False)
            for question in await here.gate.approvals():
                assert result.data["question"] == question.id
                asked[spec.name] += 1
                for channel, seen in (await channels(here, browser, question)).items():
                    gone = unseen(calls[question.digest], question, seen) if seen.approvable else []
                    assert set(gone) <= declared(calls[question.digest]), (channel, spec.name, args)
                await here.gate.answer(question.id, "deny")
    assert len(asked) >= 15, asked


def tended(text: str) -> dict[str, dict[str, Any]]:
    """Edits of a garden and of the memory with this text."""
    at = {"path": PROFILE, "section_anchor": "concerns v1"}
    return {
        "md.patch_section": {**at, "append": text, "rationale": "because"},
        "md.curate_list": {**at, "ops": ["append"], "items": [text], "reason": "because"},
        "fs.edit": {"path": PROFILE, "find": "## Strengths", "replace": f"{text}\n\n## Strengths"},
        "memory.store": {"content": text, "tags": ["a"]},
    }


async def test_every_byte_that_would_be_remembered_is_shown_too(tmp_path: Path) -> None:
    async with plot(tmp_path):
        pass
    mounts = {"mounts": {"project": {"path": "."}, "garden": {"path": "garden"}}}
    asked = Counter[str]()
    async with house(tmp_path, CONFIG | mounts) as here, here.browser() as browser:
        calls = captured(here.gate)
        for text in HOSTILE:
            for tool_name, args in tended(text).items():
                await here.gate.call(tool_name, args, persona="helper", wait=False)
                for question in await here.gate.approvals():
                    asked[tool_name] += 1
                    for channel, seen in (await channels(here, browser, question)).items():
                        gone = unseen(calls[question.digest], question, seen) if seen.approvable else []
                        assert gone == [], (channel, tool_name, args)
                    await here.gate.answer(question.id, "deny")
    assert all(asked[tool_name] >= 8 for tool_name in tended("")), asked


def declared(call: Call) -> set[str]:
    """What is told by its name instead: the lines of the one value that a schema declares secret, and its characters."""
    holder = {"t.typed": call.args.get("settings"), "far.query": call.args}.get(call.tool) or {}
    value = holder.get("password" if call.tool == "t.typed" else "pin")
    return set(Seen("", False).misses(value)) if value else set()


def captured(gate: toolgate.Gate) -> dict[str, Call]:
    """The calls that questions are really about, by digest."""
    found: dict[str, Call] = {}
    ask = gate.services.desk.ask

    async def kept(work: AskWork) -> str:
        found[work.call.digest] = work.call
        return await ask(work)

    gate.services.desk.ask = kept  # type: ignore[method-assign]
    return found


async def test_a_declared_secret_is_told_by_name_and_fingerprint_and_what_stands_beside_it_is_shown(
    tmp_path: Path,
) -> None:
    args = {
        "code": "run()",
        "settings": {"code": "evil()", "password": RUN, "more": {"password": PAYLOAD}},
    }
    async with toolgate.open(tmp_path, CONFIG, "memory", tools=extra()) as gate:
        await gate.call("t.typed", args, wait=False)
        (question,) = await gate.approvals()
        shown = question.args["settings"]
        assert question.preview == "would run run() with evil()", "a secret cuts nothing out of a program"
        assert shown["code"] == "evil()"
        assert shown["more"] == {"password": PAYLOAD}
        assert shown["password"].startswith("[secret argument password: 5 characters, fingerprint ")
        await gate.answer(question.id, "deny")
        other = args | {"settings": {**args["settings"], "password": "other"}}  # type: ignore[dict-item]
        await gate.call("t.typed", other, wait=False)
        (again,) = await gate.approvals()
        assert again.args["settings"]["password"] != shown["password"], (
            "another value has another fingerprint"
        )
        assert "run()" not in again.args["settings"]["password"]


async def test_a_question_that_an_older_version_masked_cannot_be_approved(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, CONFIG, "memory", tools=extra()) as gate:
        ask = gate.services.desk.ask

        async def as_before(work: AskWork) -> str:
            work.whole = False
            work.args = {"files": "[masked]"}
            return await ask(work)

        gate.services.desk.ask = as_before  # type: ignore[method-assign]
        await gate.call("t.free", {"files": {"a": "b"}, "rows": []}, wait=False)
        (question,) = await gate.approvals()
        for channel in ("terminal", "console", "mcp", "http", "library"):
            with pytest.raises(CallError, match="older version"):
                await gate.answer(question.id, "approve", channel=channel)
        await gate.answer(question.id, "deny")
