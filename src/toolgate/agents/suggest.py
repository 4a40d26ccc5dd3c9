"""Suggested calls for a question in plain English, without a model: "where is X used", "who changed Y last".

A suggestion is a call that somebody may make; nothing is made here. A question that fits no pattern gets none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

LONGEST = 500
_THING = r"[`'\"“]?(?P<it>[^`'\"“”?]+?)[`'\"”]?"
_FILE = re.compile(r"(?:[\w.-]+/)*[\w-]*\.\w{1,8}|(?:[\w.-]+/)+[\w.-]*")
_ENDINGS = frozenset(
    [
        "py",
        "ts",
        "tsx",
        "js",
        "jsx",
        "md",
        "yaml",
        "yml",
        "json",
        "toml",
        "rs",
        "go",
        "java",
        "c",
        "h",
        "cpp",
        "rb",
        "sh",
        "sql",
        "html",
        "css",
        "txt",
        "cfg",
        "ini",
    ]
)
_NAME = re.compile(r"[A-Za-z_][\w.]*")

_SHORT = re.compile(r"(?<=\bwhere)['’]s\b|(?<=\bwhat)['’]s\b|(?<=\bwho)['’]s\b", re.IGNORECASE)
_AROUND = re.compile(
    r"\A(?:(?:hey|please|can you|could you|i want to know)[, ]+)+"
    r"|(?:,? (?:in|across|throughout) (?:the|this|our|my) (?:whole |entire )?(?:system|code|codebase|code base|project|repo|repository))\Z",
    re.IGNORECASE,
)
"""Words around a question that change nothing about it."""
_KIND = re.compile(
    r"\A(?:the )?(?:class|function|method|variable|constant|symbol|module|file|directory|folder|type|name) (?=\S)|\Athe (?=\S+\Z)",
    re.IGNORECASE,
)


class SuggestedCall(NamedTuple):
    tool: str
    args: dict[str, Any]
    why: str


Make = Callable[[str], Iterable[SuggestedCall]]


def suggest(question: str, tools: Iterable[str] | None = None) -> list[SuggestedCall]:
    """Calls that would answer it, the best first; only of `tools`, if they are given."""
    text = _AROUND.sub("", _SHORT.sub(" is", " ".join(question[:LONGEST].split()).rstrip(" ?!.")))
    allowed = None if tools is None else set(tools)
    found: list[SuggestedCall] = []
    for pattern, make in _PATTERNS:
        match = pattern.fullmatch(text)
        if match is None:
            continue
        it = _KIND.sub("", (match.groupdict().get("it") or "").strip())
        for one in make(it):
            if one not in found and (allowed is None or one.tool in allowed):
                found.append(one)
    return found


def _word(it: str) -> str:
    """A name as a pattern: whole words only where it is one word."""
    return rf"\b{re.escape(it)}\b" if _NAME.fullmatch(it) else re.escape(it)


def _is_file(it: str) -> bool:
    return _FILE.fullmatch(it) is not None and " " not in it


def _used(it: str) -> Iterable[SuggestedCall]:
    yield SuggestedCall("code.search", {"pattern": _word(it)}, f"every place that names {it}")


def _defined(it: str) -> Iterable[SuggestedCall]:
    words = r"(?:class|def|function|func|fn|interface|type|struct|enum|const|let|var)"
    name = it.rpartition(".")[2].removesuffix("()")
    pattern = rf"{words}\s+{re.escape(name)}\b|^{re.escape(name)}\s*="
    yield SuggestedCall("code.search", {"pattern": pattern}, f"where {it} is defined")
    yield SuggestedCall("code.search", {"pattern": _word(name)}, f"every place that names {it}")


def _changed(it: str) -> Iterable[SuggestedCall]:
    if _is_file(it):
        yield SuggestedCall("code.log", {"path": it, "limit": 1}, f"the last commit that changed {it}")
        if not it.endswith("/"):
            yield SuggestedCall("code.blame", {"path": it}, f"who wrote each line of {it}")
    else:
        yield SuggestedCall(
            "code.search", {"pattern": _word(it)}, f"which files name {it}; then ask about one of them"
        )


def _history(it: str) -> Iterable[SuggestedCall]:
    if _is_file(it):
        yield SuggestedCall("code.log", {"path": it}, f"the commits that changed {it}")


def _wrote(it: str) -> Iterable[SuggestedCall]:
    if _is_file(it):
        yield SuggestedCall("code.blame", {"path": it}, f"who wrote each line of {it}")


def _show(it: str) -> Iterable[SuggestedCall]:
    if _is_file(it) and not it.endswith("/"):
        yield SuggestedCall("code.read", {"path": it}, f"what is in {it}")
    elif _is_file(it):
        yield SuggestedCall("code.list", {"directory": it.rstrip("/")}, f"the files in {it}")
    elif re.fullmatch(r"[0-9a-f]{7,40}", it):
        yield SuggestedCall("code.show", {"commit": it}, f"what the commit {it} did")


def _listed(it: str) -> Iterable[SuggestedCall]:
    if re.fullmatch(r"[\w./-]+", it):
        yield SuggestedCall("code.list", {"directory": it.rstrip("/") or "."}, f"the files in {it}")


def _works(it: str) -> Iterable[SuggestedCall]:
    """Of a file what is in it, of anything else where it is defined: `a.b` is a name unless it ends as files do."""
    return _show(it) if "/" in it or it.rpartition(".")[2] in _ENDINGS else _defined(it)


def _files(it: str) -> Iterable[SuggestedCall]:
    kinds = {
        "python": "py",
        "typescript": "ts",
        "javascript": "js",
        "markdown": "md",
        "yaml": "yaml",
        "rust": "rs",
    }
    ending = kinds.get(it.lower(), it.lstrip("*.").lower())
    if re.fullmatch(r"\w{1,8}", ending):
        yield SuggestedCall("code.list", {"pattern": f"**/*.{ending}"}, f"all {it} files")


def _diff(it: str) -> Iterable[SuggestedCall]:
    args: Mapping[str, Any] = {"paths": [it]} if it and _is_file(it) else {}
    yield SuggestedCall("code.diff", dict(args), "what has changed and is not committed")


def _recent(it: str) -> Iterable[SuggestedCall]:
    yield SuggestedCall("code.log", {"limit": 10}, "the last commits")


def _happened(it: str) -> Iterable[SuggestedCall]:
    yield SuggestedCall("events.query", {"limit": 20}, "the last events of the ledger")


def _help(it: str) -> Iterable[SuggestedCall]:
    yield SuggestedCall("tools.list", {}, "the tools that there are")


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text.replace("IT", _THING), re.IGNORECASE)


_SHOW_ME = r"(?:(?:please )?(?:show|tell)(?: me)? |find |list )?"
_PATTERNS: tuple[tuple[re.Pattern[str], Make], ...] = (
    (_pattern(rf"{_SHOW_ME}(?:where|which files|what|who) (?:is |are )?(?:the (?:class|function|method|variable) )?IT (?:is |are )?(?:being )?(?:used|called|referenced|imported|mentioned)"), _used),
    (_pattern(rf"{_SHOW_ME}(?:where|which files|what|who) (?:uses?|calls?|references?|imports?|mentions?) IT"), _used),
    (_pattern(r"(?:find |show )?(?:all )?(?:usages?|uses|references|callers) (?:of|to) IT"), _used),
    (_pattern(rf"{_SHOW_ME}where (?:is |are )?IT (?:is |are )?(?:defined|declared|implemented)"), _defined),
    (_pattern(r"(?:find |show |go to )?(?:the )?(?:definition|implementation) of IT"), _defined),
    (_pattern(rf"{_SHOW_ME}who (?:last )?(?:changed|edited|modified|touched) IT(?: last| recently)?"), _changed),
    (_pattern(rf"{_SHOW_ME}when (?:was|did) IT (?:last )?(?:changed?|edited|modified)(?: last)?"), _changed),
    (_pattern(rf"{_SHOW_ME}(?:the )?(?:history|log|changes) of IT"), _history),
    (_pattern(rf"{_SHOW_ME}who wrote IT"), _wrote),
    (_pattern(r"blame IT"), _wrote),
    (_pattern(r"(?:what is in|open|read|cat|(?:show|display)(?: me)?)(?: the contents? of)? IT"), _show),
    (_pattern(r"(?:find|list|show)(?: me)?(?: all)? (?:the )?IT files"), _files),
    (_pattern(r"(?:list|show)(?: me)?(?: all)?(?: the)? files (?:in|under) IT"), _listed),
    (_pattern(r"(?:search(?: for)?|grep(?: for)?|look for) IT"), _used),
    (_pattern(r"(?:how|what) does IT (?:work|do)"), _works),
    (_pattern(r"what (?:has )?changed(?: in IT)?(?: since the last commit)?"), _diff),
    (_pattern(r"(?:what are |show |list )?(?:the )?(?:last|latest|recent|newest) commits"), _recent),
    (_pattern(r"what (?:has )?happened(?: lately| recently| last)?"), _happened),
    (_pattern(r"(?:what can (?:i|you) (?:do|call)|which tools are there|list tools|what tools are there)"), _help),
)  # fmt: skip
