"""`toolgate stats`: how much was called or run, how well it went, what went wrong."""

from __future__ import annotations

from typing import Annotated, Any

from toolgate.kits.terminal import options, project, speech
from toolgate.kits.terminal.command import Option, command


@command(epilog="Example: toolgate stats --period 1week --persona builder")
def stats(
    period: Annotated[
        str,
        Option("--period", help="1hour, 1day, 1week, 1month or all; with --code any, such as 7days."),
    ] = "",
    code: Annotated[bool, Option("--code", help="The programs that were run, and how they failed.")] = False,
    metrics: Annotated[bool, Option("--metrics", help="How well agents do, beside the targets.")] = False,
    persona: options.Persona = "",
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Calls, success, time, tools and errors per persona."""
    if metrics:
        from toolgate.features.agents.suggesting import metrics as agent_metrics

        project.run(agent_metrics(period or "1week", persona, root))
    elif code:
        from toolgate.features.programs.commands import summary

        project.control(summary(period or "7days", persona, root))
    else:
        project.control(_stats(period or "1day", persona, root))


async def _stats(period: str, persona: str, root: Any) -> None:
    async with project.record(root) as record:
        usage = await record.stats(period, persona)
        usage["growth"] = grown = await record.growth(period, persona)
    if speech.finish(usage):
        return
    since = f" since {usage['since']}" if usage["since"] else ""
    speech.say(f"{usage['period']}{since}", "dim")
    speech.say(
        f"the ledger grew by {grown['bytes']:,} bytes; the database has {grown['database_bytes']:,}", "dim"
    )
    for one in grown["personas"] if len(grown["personas"]) > 1 else ():
        speech.say(
            f"  {one['persona'] or '(nobody)'}: {one['bytes']:,} bytes in {one['events']:,} events", "dim"
        )
    if not usage["personas"]:
        speech.say("nothing was called")
    for one in usage["personas"]:
        _show(one)


def _show(one: dict[str, Any]) -> None:
    rate = (
        ""
        if one["success_rate"] is None
        else f", {one['success_rate']:.1%} worked, {one['avg_ms']:.1f} ms on average"
    )
    speech.put()
    speech.put(
        speech.safe(one["persona"] or "(nobody)", "bold")
        + speech.safe(f": {one['calls']} calls{rate}; {one['refused']} refused; ≈{one['tokens']} tokens")
    )
    if raised := one.get("adapted"):
        speech.say(
            f"  its limits are raised by {raised['step']} of {raised['of']} steps since event {raised['event']}: {raised['reason']}"
        )
    rows = [
        [tool, item["calls"], "" if item["success_rate"] is None else f"{item['success_rate']:.0%}",
         "" if item["avg_ms"] is None else f"{item['avg_ms']:.1f}", item["refused"], item["tokens"]]
        for tool, item in one["breakdown"].items()
    ]  # fmt: skip
    if rows:
        names = [
            "  tool|whole",
            "calls|right",
            "worked|right",
            "avg ms|right",
            "refused|right",
            "tokens|right",
        ]
        speech.put(speech.table(names, [["  " + str(row[0]), *row[1:]] for row in rows]))
    for entry in one["errors"]:
        speech.put(
            speech.safe(
                f"  {entry['count']} × {entry['tool'] or '(unknown tool)'}: {entry['error']}", "yellow"
            )
        )
