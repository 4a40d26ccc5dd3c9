"""A server's tools as tools of the gate: same policy, limits, consent and ledger as any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, RootModel, model_validator

from toolgate.core.context import Context
from toolgate.core.effects import Effects
from toolgate.core.errors import InvalidArgs, NotAllowed
from toolgate.core.tool import Risk, Tool
from toolgate.features.servers.call_errors import why_held
from toolgate.features.servers.config import ServerSpec
from toolgate.features.servers.definitions import Definition
from toolgate.features.servers.results import defused
from toolgate.features.servers.schema import Checker, Unusable
from toolgate.features.servers.server import Server
from toolgate.policy.globs import text_glob

Held = Callable[[], str]
"""Why a tool may not be called just now; empty if it may."""
MAX_SHOWN = 600


def enters(spec: ServerSpec, name: str) -> bool:
    """Whether the server's tool of this name is wanted at all."""
    if any(text_glob(glob).matches(name) for glob in spec.deny):
        return False
    return spec.allow is None or any(text_glob(glob).matches(name) for glob in spec.allow)


def counts_as_reading(spec: ServerSpec, definition: Definition) -> bool:
    if isinstance(spec.read_only, tuple):
        return any(text_glob(glob).matches(definition.name) for glob in spec.read_only)
    return spec.read_only == "annotated" and definition.says_read_only


def imported(server: Server, local: str, definition: Definition, held: Held) -> Tool:
    """A tool whose definition a human has approved."""
    reads = counts_as_reading(server.spec, definition)
    schema = definition.input_schema
    checker = Checker(schema)

    def check(args: Mapping[str, Any]) -> None:
        _refuse_held(server, held)
        _check_args(f"{server.name}.{local}", checker, args)

    async def run(root: dict[str, Any], context: Context) -> dict[str, Any]:
        return await server.call(definition, root, context, not reads, held)

    async def preview(root: dict[str, Any]) -> str:
        _refuse_held(server, held)
        return _question(server, definition)

    async def reconcile(root: dict[str, Any], context: Context) -> tuple[bool | None, str]:
        return server.fate(context.call_id)

    return Tool(
        name=f"{server.name}.{local}",
        description=_description(server, definition),
        run=run,
        preview=preview,
        reconcile=reconcile,
        args=_arguments(check),
        input_schema_override=schema,
        effects=Effects.of(("outside",), () if reads else ("outside",)),
        risk=_risk(definition, reads),
        phase=server.spec.phase,
        timeout=server.spec.timeout_s + 2 * server.spec.start_timeout_s + 10,
        aliases=(f"mcp__{server.name}__{local}",),
        origin="imported",
        summarize=_summary,
    )


def stub(server: Server, local: str, held: Held) -> Tool:
    """A tool that nobody has approved. Not a word of the server's reaches a model before."""

    def check(args: Mapping[str, Any]) -> None:
        _refuse_held(server, held)

    async def run(root: dict[str, Any]) -> None:
        _refuse_held(server, held)
        raise NotAllowed(*why_held(server.name, "it was approved just now; call again"))

    return Tool(
        name=f"{server.name}.{local}",
        description=f"Held: no human has approved yet what the server {server.name} says this tool does.",
        run=run,
        args=_arguments(check),
        input_schema_override={"type": "object"},
        effects=Effects.of(("outside",), ("outside",)),
        risk="high",
        phase=server.spec.phase,
        aliases=(f"mcp__{server.name}__{local}",),
        origin="imported",
    )


def _arguments(check: Callable[[Mapping[str, Any]], None]) -> type[BaseModel]:
    class Arguments(RootModel[dict[str, Any]]):
        @model_validator(mode="after")
        def _fits(self) -> Arguments:
            check(self.root)
            return self

    return Arguments


def _refuse_held(server: Server, held: Held) -> None:
    if why := held():
        raise NotAllowed(*why_held(server.name, why), data={"rule": "hard:held", "server": server.name})


def _check_args(name: str, checker: Checker, args: Mapping[str, Any]) -> None:
    try:
        problems = checker.problems(dict(args))
    except Unusable as error:
        raise InvalidArgs(
            f"the arguments of {name} cannot be checked: its schema {error}", "send less at once"
        ) from None
    if problems:
        raise InvalidArgs(
            f"the arguments of {name} do not fit: {'; '.join(problems)}",
            f"`toolgate tools {name}` shows its schema",
            data={"problems": problems},
        )


def _description(server: Server, definition: Definition) -> str:
    return defused(definition.description) or f"A tool of the server {server.name}."


def _question(server: Server, definition: Definition) -> str:
    """What a human reads beside the arguments: whose tool it is, and what that server says of it."""
    claims = [
        words
        for name, words in (("readOnlyHint", "only reads"), ("destructiveHint", "may destroy"), ("idempotentHint", "may be repeated"))
        if definition.hint(name)
    ]  # fmt: skip
    text = " ".join(defused(definition.description).split())
    shown = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
    return "\n".join(
        (
            f"send this call to the MCP server {server.name} ({server.spec.kind}: {server.spec.shown})",
            f"its tool: {definition.name}",
            f"the server says that it: {', '.join(claims) or 'nothing'} (toolgate cannot check that)",
            f"the server describes it as: {shown or 'nothing'}",
        )
    )


def _risk(definition: Definition, reads: bool) -> Risk:
    if reads:
        return "low"
    return "medium" if definition.hint("destructiveHint") is False else "high"


def _summary(data: Any) -> str:
    """For the ledger: how much came, not what; results may hold anything."""
    blocks = data.get("content", []) if isinstance(data, dict) else []
    size = sum(len(str(block.get("text", ""))) for block in blocks if isinstance(block, dict))
    return f"{len(blocks)} {'part' if len(blocks) == 1 else 'parts'}, {size:,} characters of text"
