"""`tools.*`: what there is and how to call it, the tools that fit a question, and a call of one that no list showed.

They need no permission. A call through `tools.call` is a call of that tool: the gate sees its name, its arguments and nothing of the envelope.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from toolgate.core.annotations import Field
from toolgate.core.context import Context
from toolgate.core.decision import Decision, Verdict
from toolgate.core.errors import Failed, InvalidArgs
from toolgate.core.names import Registry
from toolgate.core.paths import MountPath
from toolgate.core.rendering import lean
from toolgate.core.tool import Tool, tool
from toolgate.core.words import alike, joined, nearest, stems
from toolgate.feature import FeatureContext

Query = Annotated[
    str, Field(min_length=1, max_length=1000, description="What you want to do, in a few words.")
]
Limit = Annotated[int, Field(ge=1, le=20, description="Tools to give at most.")]
Named = Annotated[str, Field(max_length=256, description="A name that `tools_find` gave.")]
Given = Annotated[dict[str, Any], Field(description="Its arguments, by its own schema.")]
Family = Annotated[str, Field(max_length=256, description="Only tools of this family, such as `fs`.")]
Everything = Annotated[bool, Field(description="Also those that policy refuses, or that cannot work here.")]
Name = Annotated[str, Field(max_length=256, description="The tool's name, such as `code.read`.")]
_NAME, _FIRST, _REST, _ARGUMENT = 4.0, 2.0, 1.0, 0.7
"""What a word is worth in a tool's name, first sentence, other sentences, and arguments' names."""
_ALIKE = 0.5
"""What a word for the same thing is worth."""
_INSTEAD = 0.9
"""The same, where no tool has the word itself."""
_NAMED = 1.5
"""What a tool of a server that the query names is worth more."""
_OWN = 1.15
"""What is worth a little more: a tool of the gate's own, which needs no server."""
_K, _B = 1.2, 0.4
_SOME = 0.6
"""What is left to a tool that has only a little of what was asked for."""
_ASKED = 0.75
"""What is left to a tool that changes something, where a query asks a question."""
_ASKS = re.compile(
    r"(what|which|who|whose|when|where|how|is|are|was|were|does|did|has|have|show|see)\b", re.IGNORECASE
)
_CHANGES = re.compile(
    r"(?<![a-z])(create|add|delete|remove|update|set|send|post|move|write|edit|insert|upload|cancel|assign|drop|stop)(?![a-z])"
)
_MOST_MISSPELT = 50
_SAID = frozenset({MountPath.told})
"""What a path is, is said once, elsewhere."""
_SPELLED = {"tool": "tool", "name": "tool", "args": "args", "arguments": "args"}

Weights = Mapping[str, float]


def tools(context: FeatureContext) -> list[Tool]:
    services = context.services

    def standing(persona: str, one: Tool) -> Decision:
        """What a persona may expect of a tool, before any arguments are known."""
        return services.rules().outlook(persona, one)

    return [*listing(services.registry, standing), finder(services.registry, standing), caller()]


def listing(registry: Registry, standing: Callable[[str, Tool], Decision]) -> list[Tool]:
    @tool("tools.list", reads=["tools"], free=True)
    def list_tools(ctx: Context, family: Family = "", all: Everything = False) -> list[dict[str, Any]]:  # noqa: A002
        """List the tools with their effects and what policy would say. `all` includes refused ones."""
        rows = []
        for each in registry:
            if family and not each.name.startswith(family.rstrip(".") + "."):
                continue
            decision = standing(ctx.persona, each)
            if all or (decision.verdict != "deny" and each.listed):
                rows.append(
                    {
                        "name": each.name,
                        "summary": each.description.partition("\n")[0],
                        "reads": list(each.effects.reads),
                        "writes": list(each.effects.writes),
                        "risk": each.risk,
                        "decision": decision.verdict.value,
                    }
                )
        return rows

    @tool("tools.help", reads=["tools"], free=True, also={"name": "tool_id"})
    def help_tool(ctx: Context, name: Name) -> dict[str, Any]:
        """Describe one tool: its arguments, result, effects, and what policy would say."""
        found = registry.resolve(name)
        decision = standing(ctx.persona, found)
        return found.describe() | {
            "decision": decision.verdict.value,
            "reason": decision.reason,
            "rule": decision.rule,
        }

    return [list_tools, help_tool]


def caller() -> Tool:
    @tool("tools.call", free=True, forwards=forwarded, also={"tool": "name", "args": "arguments"})
    def call(tool: Named, args: Given = {}) -> Any:  # noqa: B006 - pydantic copies it
        """Call any tool by its name, also one that is not in this list. It is judged and asked about as that tool."""
        raise Failed(f"{tool} was not forwarded", "report this")

    return call


def forwarded(raw: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The call that is meant. Nothing of it is looked at here: that is the gate's, under the tool's own name."""
    given = {_SPELLED[key]: value for key, value in raw.items() if key in _SPELLED}
    name, args = given.get("tool"), given.get("args") or {}
    if len(given) != len(raw) or not isinstance(name, str) or not isinstance(args, Mapping):
        raise InvalidArgs(
            "the arguments of tools.call do not fit: it takes `tool`, a name, and `args`, an object",
            'write {"tool": "fs.read", "args": {"path": "a.py"}}',
        )
    return name, args


def finder(registry: Registry, standing: Callable[[str, Tool], Decision]) -> Tool:
    known: dict[str, tuple[Tool, Weights]] = {}

    def weights(each: Tool) -> Weights:
        kept = known.get(each.name)
        if kept is None or kept[0] is not each:
            kept = known[each.name] = (each, weights_of(each))
        return kept[1]

    @tool("tools.find", reads=["tools"], free=True)
    def find(ctx: Context, query: Query, limit: Limit = 5) -> list[dict[str, Any]]:
        """Find a tool for something that the listed ones do not do. Gives names and arguments for `tools_call`."""
        able = [
            each
            for each in registry
            if each.listed
            and each.forwards is None
            and standing(ctx.persona, each).verdict is not Verdict.DENY
        ]
        return [
            {
                "name": each.name,
                "description": each.description,
                "input_schema": lean(each.input_schema, ours=each.origin == "native", said=_SAID),
                "decision": standing(ctx.persona, each).verdict.value,
            }
            for each in ranked(query, able, weights)[:limit]
        ]

    return find


def ranked(query: str, able: Iterable[Tool], weights: Callable[[Tool], Weights]) -> list[Tool]:
    """BM25 over words weighted by where they stand; a name that is given as it is comes first."""
    tools = list(able)
    said = query.strip().lower().replace("/", ".").replace("__", ".")
    weighed = [weights(each) for each in tools]
    usual = sum(sum(one.values()) for one in weighed) / max(len(weighed), 1) or 1.0
    spread = Counter(word for one in weighed for word in one)
    worth = {word: math.log(1 + len(tools) / count) for word, count in spread.items()}
    wanted = _wanted(query, spread)
    # what no tool has is missed by all of them alike
    whole = sum(
        max((share * worth[word] for word, share in choices.items()), default=0.0) for choices in wanted
    )
    named = set(stems(query))
    asks = bool(_ASKS.match(query.strip()))
    scores = []
    for each, one in zip(tools, weighed, strict=True):
        length = _K * (1 - _B + _B * sum(one.values()) / usual)
        score = covered = 0.0
        for choices in wanted:  # of words for the same thing the best one counts
            found = [(share * worth[word], one[word]) for word, share in choices.items() if word in one]
            score += max((value * there * (_K + 1) / (there + length) for value, there in found), default=0.0)
            covered += max((value for value, _ in found), default=0.0)
        score *= (_OWN if each.origin == "native" else 1.0) * (_SOME + (1 - _SOME) * covered / (whole or 1.0))
        if each.origin != "native" and named.intersection(stems(each.name.partition(".")[0])):
            score *= _NAMED
        if asks and _CHANGES.search(each.name):
            score *= _ASKED
        exact = said in (each.name.lower(), each.name.lower().replace(".", "_"), *each.aliases)
        scores.append((-score - 1000 * exact, each.name, each))
    return [each for score, _, each in sorted(scores, key=lambda found: found[:2]) if score < 0]


def _wanted(query: str, spread: Mapping[str, int]) -> list[dict[str, float]]:
    """For each word of a query the words of tools that may be meant, and how much each is worth."""
    found: list[dict[str, float]] = []
    for word in dict.fromkeys(stems(query)):
        same = {one: _ALIKE if word in spread else _INSTEAD for one in alike(word) if one in spread}
        if word in spread:
            same[word] = 1.0
        elif not same and len(found) < _MOST_MISSPELT:
            same = dict.fromkeys(nearest(word, spread), 1.0)
            same |= {
                one: _ALIKE for each in list(same) for one in alike(each) if one in spread and one not in same
            }
        found.append(same)
    return found + [{word: 1.0} for word in dict.fromkeys(joined(query)) if word in spread]


def weights_of(each: Tool) -> Weights:
    first, _, rest = each.description.partition(". ")
    found: dict[str, float] = {}
    parts = (
        (each.name, _NAME),
        (first, _FIRST),
        (rest, _REST),
        (" ".join(each.input_schema.get("properties", ())), _ARGUMENT),
    )
    for text, worth in parts:
        for word in set(stems(text)):
            found[word] = found.get(word, 0.0) + worth
    return found
