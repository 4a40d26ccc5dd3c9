"""The tool section of a prompt: the persona's real rights, within its budget, the same to the byte."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from agents.world import world
from toolgate.agents import wires
from toolgate.agents.prompt import CHARS_A_TOKEN, GUIDELINES, RULES


async def section(root: Path, name: str, persona: str = "ada", budget: int = 20_000, **more: object) -> str:
    async with world([], root, **more) as (gate, _):
        return wires.wire(name).prompt(gate.tools(persona), budget)


async def test_only_what_policy_allows_or_asks_about_is_described(tmp_path: Path) -> None:
    personas = {"ada": {"phase": "observe", "allow": ["t.*"], "deny": ["code.blame"]}}
    rules = [{"tools": ["t.act"], "decision": "ask", "reason": "outside"}]
    text = await section(tmp_path, "xml", personas=personas, policy={"rules": rules})
    listed = [line.split("(")[0] for line in text.splitlines() if line.startswith("- ")]
    assert "- code.read" in listed
    assert not {"- code.blame", "- fs.write", "- fs.delete"} & set(listed)
    assert "- t.act(x?) (asks) - Do something outside." in text
    assert "- t.look(x?) - Look at something." in text


async def test_every_example_is_read_back_as_the_call_that_it_shows(tmp_path: Path) -> None:
    for name in ("xml", "manifest", "leaked"):
        async with world([], tmp_path) as (gate, _):
            specs = gate.tools("ada")
            text = wires.wire(name).prompt(specs, 50_000)
        examples = [line.partition("Example: ")[2] for line in text.splitlines() if "  Example: " in line]
        assert len(examples) == len(specs)
        for spec, example in zip(sorted(specs, key=lambda one: one.name), examples, strict=True):
            parsed = wires.parse(example, name, specs)
            assert [call.name for call in parsed.calls] == [spec.name], (parsed.errors, example)


async def test_the_budget_holds_and_nothing_is_left_out_silently(tmp_path: Path) -> None:
    async with world([], tmp_path) as (gate, _):
        specs = gate.tools("ada")
    for name in wires.FORMATS:
        for budget in (400, 700, 1500, 4000):
            text = wires.wire(name).prompt(specs, budget)
            assert len(text) <= budget * CHARS_A_TOKEN
            listed = sum(line.startswith("- ") and "(" in line for line in text.splitlines())
            assert listed == len(specs) or "more: call tools.list" in text


async def test_the_manifest_has_its_six_rules_and_the_others_the_guidelines(tmp_path: Path) -> None:
    assert RULES in await section(tmp_path, "manifest")
    assert GUIDELINES in await section(tmp_path, "xml")
    assert [line[:2] for line in RULES.splitlines()[1:]] == ["1.", "2.", "3.", "4.", "5.", "6."]


def test_it_is_the_same_to_the_byte_in_every_process() -> None:
    program = (
        "import hashlib; from toolgate.agents import wires\n"
        "tools = [{'name': n, 'description': 'd', 'input_schema': {'type': 'object', 'properties': {k: {'enum': ['x', 'y']} "
        "for k in 'cab'}, 'required': ['b', 'a']}} for n in ('z.z', 'a.a')]\n"
        "print(hashlib.sha256(''.join(wires.wire(f).prompt(tools) for f in wires.FORMATS).encode()).hexdigest())"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True)
        for seed in ("1", "2")
    ]  # fmt: skip
    assert runs[0].stdout == runs[1].stdout
