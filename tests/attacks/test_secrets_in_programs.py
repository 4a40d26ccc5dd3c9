"""Thirty secrets, every way to write each, every way out of a program: none gets through to anybody."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import toolgate
from sampling import sampled
from toolgate.facade import Gate
from vault.corpus import VALUES

from .test_secrets import CONFIG, FORMS, assert_none, ledger_of

OUT = {
    "exec.python": """
import json, os, sys
forms = json.loads(bytes(byte ^ 7 for byte in sys.stdin.buffer.read()))
for number, text in enumerate(forms):
    os.write(1, text.encode("utf-8", "surrogatepass") + b"\\n")
    os.write(2, text.encode("utf-8", "surrogatepass") + b"\\n")
    output({text: [text]})
    open(f"left-{number % 20}.txt", "ab").write(text.encode("utf-8", "surrogatepass") + b"\\n")
for text in forms[:20]:
    try:
        open(f"named-{text}".replace("/", "_")[:100], "w").close()
    except (OSError, ValueError):
        pass
raise RuntimeError(" | ".join(forms))
""",
    "exec.javascript": """
const raw = new Uint8Array(await new Response(Deno.stdin.readable).arrayBuffer());
const forms = JSON.parse(new TextDecoder().decode(raw.map((byte) => byte ^ 7)));
for (const [number, text] of forms.entries()) {
  const bytes = new TextEncoder().encode(text + "\\n");
  Deno.stdout.writeSync(bytes);
  Deno.stderr.writeSync(bytes);
  output({[text]: [text]});
  Deno.writeTextFileSync(`left-${number % 20}.txt`, text + "\\n", {append: true});
}
throw new Error(forms.join(" | "));
""",
}
"""Each is given the forms in a way that nobody takes for one of them, and says them by itself: no helper masks them."""
ALLOWED = {
    "rules": [{"name": "all", "persona": "*", "tools": ["exec.*", "fs.*", "code.*"], "decision": "allow"}]
}


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Gate]:
    root = tmp_path / "project"
    root.mkdir()
    async with toolgate.open(root, CONFIG | {"policy": ALLOWED}) as made:
        assert made.vault is not None
        for name, value in VALUES.items():
            made.vault.set(name, value)
        yield made


def hidden(forms: list[str]) -> str:
    return "".join(chr(byte ^ 7) for byte in json.dumps(forms).encode())


@pytest.mark.parametrize("tool", OUT)
async def test_no_way_out_of_a_program_tells_a_secret(gate: Gate, tool: str) -> None:
    names = list(VALUES) if tool == "exec.python" else list(VALUES)[::6]  # the same walls and the same gate
    for name in sampled(names, 6, tool):
        forms = list(FORMS[name].values())
        result = await gate.call(tool, {"code": OUT[tool], "stdin": hidden(forms)}, conversation="talk")
        assert result.ok, result.error
        assert result.data["exit_code"] == 1  # it said everything and raised
        assert len(result.data["files"]) >= 20
        assert len(result.data["outputs"]) == len(forms)
        assert_none(json.dumps(asdict(result), default=str), [name])
        read = await gate.call("fs.read", {"path": result.data["files"][0]["path"]})
        assert_none(json.dumps(read.data, default=str), [name])
    assert_none(await ledger_of(gate))
    for trace in await gate.traces.failures("talk", 100):
        assert_none(json.dumps(_told(trace)))
    assert_none(_on_disk(gate.root / ".toolgate"))


async def test_the_real_value_never_enters_a_program_that_was_given_a_secret(gate: Gate) -> None:
    name, value = next(iter(VALUES.items()))
    look = """
import ctypes, os, re
held = get_secret(NAME)
found = []
for line in open("/proc/self/maps"):
    start, end, kind = re.match(r"(\\w+)-(\\w+) (\\S+)", line).groups()
    if kind == "rw-p":
        found.append(ctypes.string_at(int(start, 16), int(end, 16) - int(start, 16)))
needle = bytes(int(part) for part in os.read(0, 4096).split())[::-1]
placed = held.encode()
print("IN MEMORY" if any(needle in part for part in found) else "nowhere", any(placed in part for part in found))
""".replace("NAME", repr(name))
    backwards = " ".join(str(byte) for byte in value.encode()[::-1])
    result = await gate.call("exec.python", {"code": look, "secrets": [name], "stdin": backwards})
    assert result.ok, result.error
    # the placeholder lies there, so the search finds what there is; what is searched for is read after the copies are made
    assert result.data["stdout"] == "nowhere True\n", result.data


def _told(trace: Any) -> dict[str, Any]:
    return {
        name: getattr(trace, name)
        for name in ("code", "stdout", "stderr", "llm_reasoning", "trigger_message")
    }


def _on_disk(directory: Path) -> str:
    return "\n".join(
        part.read_bytes().decode("latin-1") + str(part) for part in directory.rglob("*") if part.is_file()
    )
