"""Masking is no tool for hiding: however a caller dresses a payload up as a secret, whoever approves sees it.

Each way below made a part of a question unreadable once, or could have. The payload is looked for in the question itself
(`gate.approvals()`); what every channel makes of it is tests/promises/test_shown_in_full.py.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, RootModel, SecretStr

import toolgate
from scan.corpus import GITHUB
from toolgate import Change, FileChange, MountPath, Tool, tool
from toolgate.core.effects import Effects
from toolgate.storage.port import Filter

PAYLOAD = "payload_that_runs()"
TOKEN = GITHUB[:-2]
GIVEN = "x1y2z3"
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "maker",
    "personas": {"maker": {"phase": "collaborate", "allow": ["*"]}},
    "consent": {"max_open": 100},
    "policy": {"rules": [{"name": "asks", "persona": "*", "tools": ["*"], "decision": "ask", "reason": "looked at"}]},
}  # fmt: skip


def tokens(count: int) -> str:
    return "".join(f"k{n} = '{TOKEN[:-4]}{n:04d}xy'\n" for n in range(count))


def diff(path: str, added: str, after: str = "") -> str:
    size = 1 + bool(after)
    tail = f" {after}\n" if after else ""
    return f"--- a/{path}\n+++ b/{path}\n@@ -1,{size} +1,{size + 1} @@\n first\n+{added}\n{tail}"


class Connection(BaseModel):
    password: SecretStr = SecretStr("")
    script: str = ""
    headers: dict[str, str] = {}


class Given(RootModel[dict[str, Any]]):
    pass


def tools() -> list[Tool]:
    @tool("t.run", writes=["outside"])
    async def run(files: dict[str, Any], code: str = "") -> str:
        """Free keys."""
        return "done"

    async def shown(secret: SecretStr, code: str) -> str:
        return f"run {code}"

    @tool("t.login", writes=["outside"], preview=shown)
    async def login(secret: SecretStr, code: str) -> str:
        """A declared secret beside a program."""
        return "done"

    @tool("t.connect", writes=["outside"])
    async def connect(connection: Connection, hooks: list[Connection] = []) -> str:  # noqa: B006
        """Declared secrets inside of other things."""
        return "done"

    @tool("t.named", writes=["outside"])
    async def named(token: str = "", api_key: Any = None, authorization: dict[str, str] | None = None) -> str:
        """Called like secrets."""
        return "done"

    async def far(root: dict[str, Any]) -> str:
        return "done"

    schema = {
        "type": "object",
        "properties": {"credential": {"type": "string"}, "auth": {"type": "object"}, "cookies": {"type": "array"}},
    }  # fmt: skip
    foreign = Tool(
        name="far.query", description="", run=far, model=lambda: Given, input_schema_override=schema, origin="imported",
        effects=Effects.of(("outside",), ("outside",)),
    )  # fmt: skip
    password, text = {"type": "string", "format": "password"}, {"type": "string"}
    secret = {"properties": {"kind": {"const": "secret"}, "value": password}}
    script = {"properties": {"kind": {"const": "script"}, "value": text}}
    choice = {
        "type": "object",
        "$defs": {"words": {"type": "array", "items": text}},
        "properties": {
            "files": {"type": "object", "patternProperties": {"[.]key$": password}, "additionalProperties": text},
            "step": {"oneOf": [secret, script]},
            "run": {"anyOf": [password, {"type": "object", "properties": {"code": text}}]},
            "argv": {"anyOf": [password, {"$ref": "#/$defs/words"}]},
            "when": {"type": "object", "if": {"properties": {"kind": {"const": "secret"}}}, "then": {"properties": {"value": password}}},
            "keyed": {"anyOf": [{"required": ["key"], "additionalProperties": password}, {"additionalProperties": text}]},
            "shut": {"anyOf": [{"properties": {"a": password}, "additionalProperties": False}, {"additionalProperties": text}]},
        },
    }  # fmt: skip
    chosen = Tool(
        name="far.choose", description="", run=far, model=lambda: Given, input_schema_override=choice, origin="imported",
        effects=Effects.of(("outside",), ("outside",)),
    )  # fmt: skip
    return [run, login, connect, named, foreign, chosen]


def free(key: str) -> tuple[str, dict[str, Any]]:
    return "t.run", {"files": {key: PAYLOAD}, "code": f"exec(open({key!r}).read())"}


WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"a free key called {key}": free(key) for key in (
        "token", "password", "API_KEY", "apiKey", "Authorization", "my-secret", "cookies", "private_key", "x_credential", "bearer",
    )},
    "a free key that is a token": free(TOKEN + "xy"),
    "two free keys that look alike once masked": (
        "t.run", {"files": {TOKEN + "ab": PAYLOAD, TOKEN + "cd": "harmless"}}),
    "the same the other way round": ("t.run", {"files": {TOKEN + "ab": "harmless", TOKEN + "cd": PAYLOAD}}),
    "a free key three levels down": ("t.run", {"files": {"a": {"b": {"token": {"c": PAYLOAD}}}}}),
    "a free key in a list": ("t.run", {"files": {"a": [{"password": PAYLOAD}]}}),
    "exec.python with a file called token": (
        "exec.python", {"code": "exec(open('token').read())", "files": {"token": PAYLOAD}}),
    "exec.javascript with a file called secret": (
        "exec.javascript", {"code": "import './secret'", "files": {"secret": PAYLOAD}}),
    "an argument of an imported tool called credential": ("far.query", {"credential": PAYLOAD}),
    "an object of an imported tool called auth": ("far.query", {"auth": {"x": PAYLOAD}}),
    "a list of an imported tool called cookies": ("far.query", {"cookies": [PAYLOAD]}),
    "an argument that the imported schema does not name": ("far.query", {"token": PAYLOAD}),
    "a key beside a pattern of secret ones": ("far.choose", {"files": {"main.py": PAYLOAD, "a.key": "x1y2"}}),
    "another alternative by its constant": ("far.choose", {"step": {"kind": "script", "value": PAYLOAD}}),
    "an object where a secret may stand": ("far.choose", {"run": {"code": PAYLOAD}}),
    "a list where a secret may stand": ("far.choose", {"argv": ["sh", PAYLOAD]}),
    "what would be secret under a condition": ("far.choose", {"when": {"kind": "script", "value": PAYLOAD}}),
    "an alternative without the key of the secret one": ("far.choose", {"keyed": {"x": PAYLOAD}}),
    "an alternative with keys that the secret one lacks": ("far.choose", {"shut": {"a": PAYLOAD, "b": ""}}),
    "an argument called token": ("t.named", {"token": PAYLOAD}),
    "an object called authorization": ("t.named", {"authorization": {"x": PAYLOAD}}),
    "anything called api_key": ("t.named", {"api_key": [{"x": [PAYLOAD]}]}),
    "a secret that is a part of the program": ("t.login", {"secret": PAYLOAD, "code": f"a(); {PAYLOAD}"}),
    "a secret that is all of the program": ("t.login", {"secret": PAYLOAD, "code": PAYLOAD}),
    "what stands beside a declared secret": ("t.connect", {"connection": {"password": GIVEN, "script": PAYLOAD}}),
    "a free key beside a declared secret": (
        "t.connect", {"connection": {"password": GIVEN, "headers": {"token": PAYLOAD}}}),
    "beside a declared secret in a list": (
        "t.connect", {"connection": {}, "hooks": [{"password": PAYLOAD, "script": PAYLOAD}]}),
    "301 tokens in the new content": ("fs.write", {"path": "new.txt", "content": tokens(301) + PAYLOAD}),
    "1,500 tokens in the new content": ("fs.write", {"path": "new.txt", "content": PAYLOAD + "\n" + tokens(1500)}),
    "301 tokens in the file as it was": ("fs.write", {"path": "many.txt", "content": PAYLOAD}),
    "301 tokens in another file of the patch": (
        "fs.patch", {"diff": diff("many.txt", "x", tokens(1).strip()) + diff("main.py", PAYLOAD)}),
    "301 tokens in a file that is edited": ("fs.edit", {"path": "many.txt", "find": "first", "replace": PAYLOAD}),
    "301 tokens in a file that is added to": ("fs.append", {"path": "many.txt", "text": PAYLOAD}),
    "301 tokens beside a scratch file": ("fs.save", {"path": "scratch:a.txt", "content": tokens(301) + PAYLOAD}),
    "a payload assigned to a name like a secret": (
        "fs.write", {"path": "new.py", "content": f"password = \"{PAYLOAD}\"\n"}),
    "a payload in base64 assigned to a token": (
        "fs.write", {"path": "new.py", "content": f"api_token = '{base64.b64encode(PAYLOAD.encode() * 2).decode()}'"}),
    "a payload in a private key": (
        "fs.write", {"path": "new.txt", "content": "-----BEGIN " + f"PRIVATE KEY-----\n{'QUJD' * 16}\n{PAYLOAD}\n-----END " + "PRIVATE KEY-----\n"}),
    "a payload as the password of an address": (
        "fs.write", {"path": "new.sh", "content": f"curl https://u:{PAYLOAD}@x.example/\n"}),
    "the file of a name that is a token": ("fs.write", {"path": f"{TOKEN}xy.py", "content": f"'{TOKEN}xy'\n{PAYLOAD}"}),
    "the value of an edit that is a token elsewhere": (
        "fs.edit", {"path": "main.py", "find": "first", "replace": f"password = '{PAYLOAD}'"}),
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "many.txt").write_text("first\n" + tokens(301))
    (project / "main.py").write_text("first\n")
    return project


@pytest.mark.sample(16)
@pytest.mark.parametrize("way", WAYS)
async def test_whoever_approves_sees_the_payload(root: Path, way: str) -> None:
    name, args = WAYS[way]
    async with toolgate.open(root, CONFIG, "memory", tools=tools()) as gate:
        result = await gate.call(name, args, wait=False)
        assert result.error is not None
        assert result.error.code.value == "pending", result.error
        (question,) = await gate.approvals()
        told = json.dumps(dict(question.args)) + question.preview
        wanted = base64.b64encode(PAYLOAD.encode() * 2).decode() if "base64" in way else PAYLOAD
        assert wanted in told
        if path := args.get("path"):
            assert path in question.preview, "names of files are never masked"


async def test_what_a_schema_declares_secret_in_the_alternative_at_hand_is_shown_by_its_name(
    root: Path,
) -> None:
    args = {"files": {"a.key": PAYLOAD}, "step": {"kind": "secret", "value": PAYLOAD}, "run": PAYLOAD, "argv": PAYLOAD,
            "when": {"kind": "secret", "value": PAYLOAD}, "keyed": {"key": PAYLOAD}, "shut": {"a": PAYLOAD}}  # fmt: skip
    async with toolgate.open(root, CONFIG, "memory", tools=tools()) as gate:
        await gate.call("far.choose", args, wait=False)
        (question,) = await gate.approvals()
        told = json.dumps(dict(question.args))
        assert PAYLOAD not in told
        assert told.count("fingerprint") == len(args)


async def test_a_caller_cannot_keep_a_program_out_of_the_journal_by_the_names_it_chooses(root: Path) -> None:
    allowed = CONFIG | {
        "policy": {"rules": [{"name": "all", "persona": "*", "tools": ["*"], "decision": "allow"}]}
    }
    async with toolgate.open(root, allowed, "memory", tools=tools()) as gate:
        for name, args in (free("token"), ("far.query", {"auth": {}, "more": {"token": PAYLOAD}})):
            await gate.call(name, args)
            (row,) = await gate.events(Filter(tool=name, kinds=("started",)))
            assert PAYLOAD in row.body


async def test_the_journal_keeps_nothing_of_what_looks_like_a_secret(root: Path) -> None:
    async with toolgate.open(root, CONFIG, "memory", tools=tools()) as gate:
        secret = TOKEN + "xy"
        calls: list[tuple[str, dict[str, Any]]] = [
            ("fs.write", {"path": "new.txt", "content": f"k = {secret}\n"}),
            ("fs.patch", {"diff": diff("main.py", f"k = {secret}")}),
            ("fs.edit", {"path": "main.py", "find": "first", "replace": secret}),
            ("t.named", {"token": secret, "api_key": {"x": secret}}),
            ("t.connect", {"connection": {"password": secret}}),
            ("far.query", {"credential": secret}),
        ]
        for name, args in calls:
            await gate.call(name, args, wait=False)
        told = "".join([line async for line in gate.export()])
        assert secret not in told
        assert len(await gate.approvals()) == len(calls)


Make = Callable[[str], dict[str, Any]]


@pytest.mark.parametrize("make", [
    lambda value: {"files": {value: "a", base64.b64encode(value.encode()).decode(): PAYLOAD}},
    lambda value: {"files": {value[::-1]: PAYLOAD, value: "a"}},
    lambda value: {"files": {"a": [value, {value: PAYLOAD}]}},
])  # fmt: skip
async def test_keys_that_are_values_of_the_vault_hide_nothing(root: Path, make: Make) -> None:
    async with toolgate.open(root, CONFIG, tools=tools()) as gate:
        assert gate.vault is not None
        value = "correct-horse-battery-77"
        gate.vault.set("DOOR", value)
        result = await gate.call("t.run", make(value), wait=False)
        (question,) = await gate.approvals()
        told = json.dumps(dict(question.args))
        assert PAYLOAD in told, result.error
        assert value not in told
        assert set(question.secrets) == {"DOOR"}
        assert len(question.secrets["DOOR"]) == 12


VALUE = "production-db-77"


@pytest.fixture
def vaulted(root: Path) -> Path:
    (root / VALUE).mkdir()
    (root / VALUE / "a.txt").write_text("a\n")
    (root / "kept.txt").write_text(f"key = {VALUE}\nrest\n")
    return root


@pytest.mark.parametrize(("name", "args"), [
    ("fs.write", {"path": f"{VALUE}/a.txt", "content": "b\n"}),
    ("fs.delete", {"path": f"{VALUE}/a.txt"}),
    ("fs.edit", {"path": f"{VALUE}/a.txt", "find": "a", "replace": "b"}),
    ("fs.append", {"path": f"{VALUE}/a.txt", "text": "b"}),
    ("fs.move", {"path": f"{VALUE}/a.txt", "new_path": "b.txt"}),
    ("t.at", {"path": f"{VALUE}/a.txt", "note": "x"}),
    ("t.at", {"path": f"{VALUE}/a.txt", "note": VALUE}),
])  # fmt: skip
async def test_a_path_is_shown_also_where_a_value_of_the_vault_stands_in_it(
    vaulted: Path, name: str, args: dict[str, Any]
) -> None:
    @tool("t.at", writes=["outside"])
    async def at(path: MountPath, note: str) -> str:
        """Nothing but its arguments says which file it is about."""
        return "done"

    async with toolgate.open(vaulted, CONFIG, tools=[at]) as gate:
        assert gate.vault is not None
        gate.vault.set("DOOR", VALUE)
        await gate.call(name, args, wait=False)
        (question,) = await gate.approvals()
        assert question.args["path"] == f"project:{VALUE}/a.txt"
        assert question.args.get("note") in (None, "x", "[secret:DOOR]")
        journal = "".join([line async for line in gate.export()])
        assert f'"path":"project:{VALUE}' not in journal, "the journal keeps no value of the vault"


FORMS: dict[str, bytes] = {
    "backwards": VALUE[::-1].encode(),
    "in base64": base64.b64encode(VALUE.encode()),
    "in hexadecimal": VALUE.encode().hex().encode(),
    "over two lines": f"{VALUE[:5]}\n{VALUE[5:]}".encode(),
    "with blanks between": " ".join(VALUE).encode(),
    "as escapes": "".join(f"\\x{ord(char):02x}" for char in VALUE).encode(),
}


@pytest.mark.parametrize("form", FORMS)
async def test_a_value_in_another_form_does_not_pass_for_the_value(vaulted: Path, form: str) -> None:
    async def plan(path: MountPath) -> Change:
        before = (vaulted / path.relative).read_bytes()
        return Change((FileChange(path, before, before.replace(VALUE.encode(), FORMS[form])),))

    @tool("t.turn", writes=["project"], plan=plan)
    async def turn(change: Change) -> str:
        """What a program that was given the secret may make of a file."""
        return "done"

    async with toolgate.open(vaulted, CONFIG, tools=[turn]) as gate:
        assert gate.vault is not None
        gate.vault.set("DOOR", VALUE)
        await gate.call("t.turn", {"path": "kept.txt"}, wait=False)
        (question,) = await gate.approvals()
        assert "-key = [secret:DOOR]\n" in question.preview, question.preview
        assert "+key = [secret:DOOR]⟨in another form, fingerprint " in question.preview
        assert set(question.secrets) == {"DOOR"}


async def test_a_part_of_a_value_does_not_pass_for_the_value(vaulted: Path) -> None:
    async with toolgate.open(vaulted, CONFIG, tools=tools()) as gate:
        assert gate.vault is not None
        gate.vault.set("DOOR", VALUE)
        await gate.call("t.run", {"files": {"a": VALUE[:5], "b": VALUE[5:], "c": VALUE}}, wait=False)
        (question,) = await gate.approvals()
        a, b, c = question.args["files"].values()
        assert c == "[secret:DOOR]"
        assert a.startswith("[secret:DOOR]⟨in another form")
        assert b.startswith("[secret:DOOR]⟨in another form")
        assert a != b
