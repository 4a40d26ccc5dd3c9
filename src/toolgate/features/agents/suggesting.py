"""`ai.suggest`, `toolgate suggest` and `toolgate stats --metrics`: help that needs no model."""

from __future__ import annotations

import json as json_module
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from toolgate.agents.suggest import suggest
from toolgate.core.annotations import Field
from toolgate.core.context import Context
from toolgate.core.tool import Tool, tool
from toolgate.features.agents.metrics import AgentMetrics, in_words, target_in_words
from toolgate.kits.terminal import options, project, speech
from toolgate.kits.terminal.command import Argument, command

if TYPE_CHECKING:
    from toolgate.feature import FeatureContext

PLAIN = 'such as "where is X used", "who changed a.py last", "where is Y defined", "what is in src/"'


def tools(context: FeatureContext) -> list[Tool]:
    @tool("ai.suggest", free=True)
    async def ai_suggest(
        ctx: Context,
        question: Annotated[
            str, Field(min_length=1, max_length=500, description="A question in plain English.")
        ],
    ) -> dict[str, Any]:
        """Calls that would answer a question, found without a model. Nothing is called; each is judged when you make it."""
        may = [spec.name for spec in context.gate.tools(ctx.persona)]
        return {"calls": [one._asdict() for one in suggest(question, may)]}

    return [ai_suggest]


@command(epilog='Example: toolgate suggest "where is parse_config used?"')
def suggest_calls(
    question: Annotated[str, Argument(metavar="QUESTION", help=f"In plain English, {PLAIN}.")],
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Say which calls would answer a question. No model is asked and nothing is called."""
    found = suggest(question)
    if speech.finish([one._asdict() for one in found]):
        return
    if not found:
        speech.say("no call comes to mind; ask in other words,")
        speech.say(PLAIN)
    for one in found:
        speech.say(one.why, "dim")
        speech.say(
            f"  toolgate call {one.tool} {shlex.quote(json_module.dumps(one.args, ensure_ascii=False))}"
        )


async def metrics(period: str, persona: str, root: Path | None) -> None:
    async with project.gate(root) as gate:
        found = await AgentMetrics(gate.features["agents"]).measure(period, persona)
    if speech.finish(found):
        return
    since = f" since {found['since']}" if found["since"] else ""
    speech.say(f"{found['period']}{since}", "dim")
    rows = [
        [
            one["name"],
            "–" if one["value"] is None else in_words(one["name"], one["value"]),
            target_in_words(one["name"]),
            _met(one["met"]),
            one["of"],
            one["what"],
        ]
        for one in found["metrics"]
    ]
    speech.put(speech.table(["metric|whole", "value|right", "target", "met", "of|right", "what"], rows))
    speech.say(f"paths outside that were tried and refused: {found['attempted_violations']}")
    for name, value in found["work"].items():
        if isinstance(value, dict):
            value = ", ".join(f"{key} {item}" for key, item in value.items() if item is not None) or None
        speech.say(f"{name}: {'not measured yet' if value is None else value}", "dim")
    for one in found["tools"][:10]:
        speech.say(f"{one['tool']}: {one['calls']} calls, {one['led_to_answer']:.0%} led to an answer", "dim")


def _met(met: bool | None) -> str:
    return "–" if met is None else "yes" if met else "no"
