"""Prompts for common reviews, each naming the tools it leans on; and what could be typed for their arguments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from toolgate.core.display import visible
from toolgate.faces.mcp.jsonrpc import INVALID_PARAMS, Message, RpcError

MOST_COMPLETIONS = 100
"""The protocol's own limit."""
_LONGEST_ARGUMENT = 1000


@dataclass(frozen=True)
class Prompt:
    title: str
    description: str
    arguments: dict[str, tuple[str, bool]]
    """Name → what it is, and whether it must be given."""
    text: str


PROMPTS = {
    "review_changes": Prompt(
        "Review changes",
        "Review what has changed in the project since a revision.",
        {"since": ("A revision such as HEAD~3 or main; default: what is not committed", False)},
        "Review the changes of this project since {since}. Read them with `code.diff`, look at the code around each "
        "hunk with `code.read`, and use `code.search` for callers of what changed. Report bugs first, then risks, then "
        "style, each with file and line. Change nothing.",
    ),
    "review_file": Prompt(
        "Review a file",
        "Review one file with its history.",
        {"path": ("The file, such as src/app.py", True)},
        "Review the file {path}. Read it with `code.read`, its structure with `code.outline`, its history with "
        "`code.log` and `code.blame`. Say what it does, what is wrong or fragile in it, and what you would test. "
        "Change nothing.",
    ),
    "review_activity": Prompt(
        "Review what agents did",
        "Go through the ledger: what was done, refused, and left unknown.",
        {"since": ("A time such as 2026-01-31T12:00:00Z; default: the last 200 events", False)},
        "Review what was done through toolgate since {since}. Read the events with `events.query` (limit 200). "
        "Summarise by persona: what was changed, what a human approved or refused, what policy denied, what failed or "
        "is unknown. Point at anything unusual with its event number.",
    ),
    "explain_refusal": Prompt(
        "Explain a refusal",
        "Say why a tool is refused or asks, and what a human could change.",
        {"tool": ("The tool, such as fs.write", True)},
        "Explain what this persona may do with the tool {tool}. Use `tools.help` for its effects and for the rule that "
        "decides, and `events.query` for recent refusals. Say in plain words why it is refused or asks. Only a human "
        "can change the policy; do not try to work around it.",
    ),
}  # fmt: skip
_DEFAULTS = {"review_changes": "the last commit", "review_activity": "the last 200 events"}


def listed() -> list[Message]:
    return [
        {
            "name": name,
            "title": prompt.title,
            "description": prompt.description,
            "arguments": [
                {"name": argument, "description": what, "required": required}
                for argument, (what, required) in prompt.arguments.items()
            ],
        }
        for name, prompt in PROMPTS.items()
    ]


def get(params: Message) -> Message:
    name, given = params.get("name"), params.get("arguments")
    prompt = PROMPTS.get(name) if isinstance(name, str) else None
    if prompt is None or not isinstance(name, str):
        raise RpcError(
            INVALID_PARAMS, f"Invalid params: there is no such prompt; there are {', '.join(PROMPTS)}"
        )
    given = {} if given is None else given
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise RpcError(INVALID_PARAMS, "Invalid params: the arguments of a prompt are texts by name")
    missing = [
        argument for argument, (_, needed) in prompt.arguments.items() if needed and not given.get(argument)
    ]
    if missing:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {name} needs {', '.join(missing)}")
    values = {
        argument: visible(given.get(argument) or _DEFAULTS.get(name, ""))[:_LONGEST_ARGUMENT]
        for argument in prompt.arguments
    }
    text = prompt.text.format_map(values)
    return {
        "description": prompt.description,
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
    }


def complete(params: Message, tools: Iterable[str]) -> Message:
    ref, argument = params.get("ref"), params.get("argument")
    if not isinstance(ref, dict) or ref.get("type") not in ("ref/prompt", "ref/resource"):
        raise RpcError(INVALID_PARAMS, "Invalid params: ref names neither a prompt nor a resource")
    if not isinstance(argument, dict) or not isinstance(argument.get("value"), str):
        raise RpcError(INVALID_PARAMS, "Invalid params: argument has no name and value")
    wanted = (ref.get("type"), ref.get("name"), argument.get("name")) == (
        "ref/prompt",
        "explain_refusal",
        "tool",
    )
    found = [name for name in tools if name.startswith(argument["value"])] if wanted else []
    return {
        "completion": {
            "values": found[:MOST_COMPLETIONS],
            "total": len(found),
            "hasMore": len(found) > MOST_COMPLETIONS,
        }
    }
