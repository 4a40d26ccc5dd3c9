"""`toolgate policy`: is it right, do its examples hold, why is a call decided so, what would another policy say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from toolgate.core import wire
from toolgate.core.decision import Verdict
from toolgate.core.errors import NotFound, UnknownTool
from toolgate.core.paths import MountPath
from toolgate.facade import Gate
from toolgate.kits.terminal import arguments, failures, options, project, speech
from toolgate.kits.terminal.command import Argument, CommandGroup, Option
from toolgate.policy.globs import tool_glob
from toolgate.policy.policy import Policy
from toolgate.policy.simulation import (
    RecordedCall,
    render_examples,
    render_explanation,
    render_replay,
    replay,
    run_examples,
)
from toolgate.project import config as configuration
from toolgate.storage.port import Filter, Row

app = CommandGroup("Check, test, explain and replay the policy.")
_FIRST = ("asked", "denied", "started")
_BATCH = 5000


@app.command(epilog="Example: toolgate policy check --root ~/code/shop")
def check(root: options.Root = None, json: options.Json = False) -> None:
    """Load toolgate.yaml; say all that is wrong with file, line and fix, and which globs match no tool."""
    project.run(_check(root))


async def _check(root: Path | None) -> int:
    found = configuration.problems(project.locate(root))
    if found:
        return failures.report_all(found)
    async with project.any_gate(root) as gate:
        idle = list(idle_globs(gate))
        trusted = gate.policy.trusted
        counts = {"personas": len(gate.config.personas), "rules": len(gate.policy.all_rules)}
    if speech.finish({**counts, "trusted": trusted, "idle_globs": idle}):
        return failures.OK
    for where, glob in idle:
        speech.note(f"warning: {where}: `{glob}` matches no tool that is here now", "yellow")
    speech.say(f"{configuration.FILE} is right: {counts['personas']} personas, {counts['rules']} rules")
    if not trusted:
        speech.note(
            "the project is not trusted, so its plugins were not loaded and everything is denied", "yellow"
        )
    return failures.OK


def idle_globs(gate: Gate) -> Iterator[tuple[str, str]]:
    """Globs about tools that do not exist: a misspelling, or a tool that is not installed."""
    names = gate.tool_names()
    for where, globs in _tool_globs(gate.policy):
        for glob in globs:
            if not any(map(tool_glob(glob).matches, names)):
                yield where, glob


def _tool_globs(policy: Policy) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, spec in policy.parts.personas.items():
        yield f"personas.{name}.allow", spec.allow or ()
        yield f"personas.{name}.deny", spec.deny
    for rule in policy.all_rules:
        yield f"rule {rule.name}", rule.spec.tools or ()
    yield "limits.tool", tuple(policy.parts.limits.tool)


@app.command("test", epilog="Example: toolgate policy test")
def run_tests(root: options.Root = None, json: options.Json = False) -> None:
    """Run the examples written beside the rules; exit 1 if one of them fails."""
    project.run(_test(root))


async def _test(root: Path | None) -> int:
    async with project.any_gate(root) as gate:
        outcomes = run_examples(gate.policy, gate.facts_alone())
    failed = [outcome.where for outcome in outcomes if not outcome.passed]
    if not speech.finish({"passed": len(outcomes) - len(failed), "failed": failed}, ok=not failed):
        speech.put(speech.safe(render_examples(outcomes), lines=True), end="", whole=True)
    return 1 if failed else 0


@app.command(
    epilog="""Example: toolgate policy explain fs.write '{"path": "src/a.py", "content": ""}' --persona builder"""
)
def explain(
    tool: options.ToolName,
    args: Annotated[str, Argument(metavar="JSON", help="Arguments: JSON, @file, or - for stdin.")] = "",
    arg: Annotated[list[str] | None, Option("--arg", "-a", help="One argument: name=value.")] = None,
    persona: options.Persona = "",
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Show every line that policy considers for one call, and which decides. Runs nothing.

    Instead of a tool: the id of a call that was made, or the number of one of its events.
    """
    project.run(_explain(tool, arguments.read(args, arg or ()), persona, root))


async def _made(gate: Gate, ident: str) -> tuple[str, dict[str, Any], str]:
    """Tool, arguments and persona of a call that was made, given by its id or by the number of one of its events."""
    ident = await options.whole_id(gate.events, ident, "c")
    if ident.isdigit():
        ident = next((row.call for row in await gate.events(Filter(after=int(ident) - 1, limit=1))), ident)
    for row in await gate.events(Filter(call=ident, kinds=_FIRST, limit=1)):
        return row.tool, dict((await gate.whole(row)).get("args", {})), row.persona
    raise NotFound(f"no call {ident} is recorded", "give the tool and its arguments as they were")


async def _explain(tool: str, given: arguments.GivenArguments, persona: str, root: Path | None) -> None:
    async with project.any_gate(root) as gate:
        args = given.fit(await gate.find_tool(tool, ask_servers=bool(given.written)))
        if not args and (tool.startswith("c_") or tool.isdigit()):
            tool, args, persona = await _made(gate, tool)
        try:
            explanation = await gate.explain(tool, args, persona or None)
            raised = await gate.earned(explanation.facts.persona)
        except UnknownTool:
            if gate.policy.trusted:
                raise
            raise project.unknown(gate.root, tool) from None
    decision = explanation.decision
    data = {
        "decision": decision.verdict.value,
        "rule": decision.rule,
        "reason": decision.reason,
        "step": decision.step,
    }
    lines = [
        {"persona": line.persona, "step": line.step, "line": line.text, "verdict": line.verdict, "why": line.why,
         "decided": line.decided}
        for line in explanation.lines
    ]  # fmt: skip
    if speech.finish(data | {"lines": lines} | ({"adaptive": raised} if raised else {})):
        return
    speech.put(speech.safe(render_explanation(explanation), lines=True), end="", whole=True)
    if raised is not None:
        speech.say(f"limits raised by {raised['step']} of {raised['of']} steps: {raised['reason']}")
        for one in raised["limits"]:
            speech.say(f"  {one['limit']}: {one['now']:,} (says {one['says']:,}, at most {one['most']:,})")


@app.command("replay", epilog="Example: toolgate policy replay stricter.yaml --since 2026-01-31")
def replay_command(
    new: Annotated[Path, Argument(metavar="NEW.yaml", help="The policy to try.", path="existing")],
    since: Annotated[
        str, Option("--since", help="Only calls since then: 10m, 2h, or an ISO 8601 time.")
    ] = "",
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Run recorded calls against another policy and show what would be decided otherwise."""
    project.run(_replay(new, options.moment(since), root))


async def _replay(new: Path, since: int, root: Path | None) -> None:
    async with project.gate(root) as gate:
        policy = gate.tried(configuration.read(new, gate.config.brought))
        calls = [call async for call in _recorded(gate, since)]
        found = replay(calls, policy, gate.facts_alone(), gate.policy)
    differences = [
        {"event_id": item.call.seq, "kind": item.kind, "persona": item.call.persona, "tool": item.call.tool,
         "was": item.call.verdict, "now": item.decision.verdict if item.decision else None,
         "rule": item.decision.rule if item.decision else "", "problem": item.problem}
        for item in found.differences
    ]  # fmt: skip
    told = {"totals": dict(found.totals), "left_out": found.left_out, "differences": differences}
    if not speech.finish(told):
        speech.put(speech.safe(render_replay(found), lines=True), end="", whole=True)


async def _recorded(gate: Gate, since: int) -> AsyncIterator[RecordedCall]:
    """Every call once, as policy first decided it."""
    seen: set[str] = set()
    after, policy = 0, ""
    while rows := await gate.events(Filter(after=after, kinds=(*_FIRST, "configured"), limit=_BATCH)):
        after = rows[-1].seq
        for row in rows:
            if row.kind == "configured":
                policy = wire.loads_object(row.body)["policy"]
            if row.kind == "configured" or row.at < since or row.call in seen:
                continue
            try:
                body = await gate.whole(row)
            except NotFound as error:  # on a piece of the arguments nothing is decided
                speech.note(f"left out: {error.message}", "yellow")
                continue
            if "args" not in body:
                continue
            seen.add(row.call)
            yield _recorded_call(row, body, policy)


def _recorded_call(row: Row, body: Mapping[str, Any], policy: str) -> RecordedCall:
    verdict = {"asked": "ask", "denied": "deny"}.get(row.kind) or body["decision"]
    findings = tuple(f"{one['kind']}:{one['rule']}" for one in body.get("findings", ()) if "rule" in one)
    changed = tuple(MountPath(one["path"]) for one in body.get("change", ()))
    return RecordedCall(
        row.seq, row.at, row.persona, row.tool, body["args"], Verdict(verdict), body["rule"], findings, changed, policy
    )  # fmt: skip
