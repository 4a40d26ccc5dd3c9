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

_SHORT = re.compile(r"\b(where|what|who)['’]s\b", re.IGNORECASE)
_AROUND = re.compile(
    r"\A(?:(?:hey|please|can you|could you|would you|i want to know|do you know|tell me)[, ]+)+"
    r"|(?:,? (?:please|right now|anywhere"
    r"|(?:in|across|throughout) (?:the|this|our|my) (?:whole |entire )?(?:system|code|codebase|code base|project|repo|repository)))+\Z",
    re.IGNORECASE,
)
"""Words around a question that change nothing about it."""
_ASKS = re.compile(
    r"\A(?:show|give|list|find|get|go to)(?: me)?(?: all)?(?: of)?(?: the)? (?=\S)", re.IGNORECASE
)
_KIND = re.compile(
    r"\A(?:the )?(?:class|function|method|variable|constant|symbol|module|file|directory|folder|type|name|error|exception|string) (?=\S)|\Athe (?=\S+\Z)",
    re.IGNORECASE,
)
_LINES = re.compile(
    r"(?:\b(?:on|in|at|from) )?\blines? (\d{1,7})(?: ?(?:-|–|to|and) ?(\d{1,7}))?(?: (?:of|in)\b)?",
    re.IGNORECASE,
)
_SINCE = {
    "today": "1 day ago",
    "yesterday": "2 days ago",
    "this week": "1 week ago",
    "last week": "2 weeks ago",
}


class SuggestedCall(NamedTuple):
    tool: str
    args: dict[str, Any]
    why: str


Make = Callable[[str], Iterable[SuggestedCall]]


def suggest(question: str, tools: Iterable[str] | None = None) -> list[SuggestedCall]:
    """Calls that would answer it, the best first; only of `tools`, if they are given."""
    text = _AROUND.sub("", _SHORT.sub(r"\1 is", " ".join(question[:LONGEST].split()).rstrip(" ?!.")))
    lines = _LINES.search(text)
    if lines is not None:
        text = " ".join(f"{text[: lines.start()]} {text[lines.end() :]}".split())
    allowed = None if tools is None else set(tools)
    found: list[SuggestedCall] = []
    for one in _matching(text):
        if lines is not None and one.tool in ("code.read", "code.blame"):
            first, last = int(lines[1]), int(lines[2] or lines[1])
            one = one._replace(args=one.args | {"start_line": first, "end_line": max(first, last)})
        if one not in found and (allowed is None or one.tool in allowed):
            found.append(one)
    return found


def _matching(text: str) -> Iterable[SuggestedCall]:
    """As it stands, or without the words that ask; by the first pattern that has an answer."""
    for spelled in dict.fromkeys((_ASKS.sub("", text), text)):
        for pattern, make in _PATTERNS:
            if match := pattern.fullmatch(spelled):
                words = match.groupdict()
                it = next((one for name, one in words.items() if one and name.startswith("it")), "")
                it = _KIND.sub("", it.strip())
                found = list(make(it))
                if (where := words.get("where")) and found:
                    found = [one._replace(args=one.args | {"paths": [where]}) for one in found]
                if found:
                    return found
    return ()


def _word(it: str) -> str:
    """A name as a pattern: whole words only where it is one word."""
    it = it.removesuffix("()")
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


def _tested(it: str) -> Iterable[SuggestedCall]:
    args = {"pattern": _word(it), "file_pattern": "*test*"}
    yield SuggestedCall("code.search", args, f"every place in tests that names {it}")


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
    else:
        yield from _commit(it) if it else ()


def _listed(it: str) -> Iterable[SuggestedCall]:
    if not it:
        yield SuggestedCall("code.list", {}, "the files of the project")
    elif re.fullmatch(r"[\w./-]+", it):
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
    if it.lower() not in ("the", "all", "which", "what", "these") and re.fullmatch(r"\w{1,8}", ending):
        yield SuggestedCall("code.list", {"pattern": f"**/*.{ending}"}, f"all {it} files")


def _diff(it: str) -> Iterable[SuggestedCall]:
    if not it or _is_file(it):
        args: Mapping[str, Any] = {"paths": [it]} if it else {}
        yield SuggestedCall("code.diff", dict(args), "what has changed and is not committed")
        yield from _history(it)


def _commit(it: str) -> Iterable[SuggestedCall]:
    if not it or re.fullmatch(r"[0-9a-f]{7,40}|HEAD[~^\d]*", it):
        yield SuggestedCall("code.show", {"commit": it or "HEAD"}, f"what the commit {it or 'HEAD'} did")


def _recent(it: str) -> Iterable[SuggestedCall]:
    if since := _SINCE.get(it.lower()):
        yield SuggestedCall("code.log", {"since": since}, f"the commits since {since}")
    else:
        yield SuggestedCall("code.log", {"limit": int(it) if it else 10}, "the last commits")


def _happened(it: str) -> Iterable[SuggestedCall]:
    yield SuggestedCall("events.query", {"limit": 20}, "the last events of the ledger")


def _help(it: str) -> Iterable[SuggestedCall]:
    yield SuggestedCall("tools.list", {}, "the tools that there are")


def _pattern(text: str) -> re.Pattern[str]:
    """Each branch has its thing: Python wants another name for each, and only one is ever found."""
    first, *rest = text.split("IT")
    return re.compile(
        first + "".join(_THING.replace("it>", f"it{n}>") + part for n, part in enumerate(rest)), re.IGNORECASE
    )


_WHAT = r"(?:does )?(?:what|who|anything|anybody|anyone|(?:which|what) (?:files?|code|functions?|methods?|classes|modules?))"
_USE = r"(?:uses?|calls?|references?|imports?|mentions?|needs?)"
_USED = r"(?:being )?(?:used|called|referenced|imported|mentioned|raised|thrown|printed|set)(?: from)?"
_CHANGED = r"(?:changed?|edit(?:ed)?|modif(?:y|ied)|touch(?:ed)?|updated?)"
_LATE = r"(?: last| recently| lately| most recently)"
_PATTERNS: tuple[tuple[re.Pattern[str], Make], ...] = (
    (_pattern(rf"(?:where|how|{_WHAT}) (?:is |are )?IT (?:is |are )?{_USED}"), _used),
    (_pattern(rf"(?:{_WHAT}|(?:where|how) (?:do|does) (?:we|i|you|it)) {_USE} IT"), _used),
    (_pattern(rf"(?:is IT {_USED}|where does IT come from|(?:usages?|uses|references|callers|occurrences|mentions) (?:of|to|for) IT)"), _used),
    (_pattern(r"(?:(?:where are )?(?:the )?tests (?:for|of) IT|(?:which|what) tests? (?:cover|test|use|check)s? IT)"), _tested),
    (_pattern(r"(?:where (?:is |are )?IT (?:is |are )?(?:defined|declared|implemented)|where does IT live)"), _defined),
    (_pattern(r"(?:where can i find )?(?:the )?(?:definition|declaration|implementation|source) of IT"), _defined),
    (_pattern(rf"(?:who (?:has )?(?:last |recently )?{_CHANGED} IT{_LATE}?|who was the last (?:one |person )?(?:to|who) {_CHANGED} IT)"), _changed),
    (_pattern(rf"(?:when (?:was|did|has) IT (?:been )?(?:last |recently )?{_CHANGED}{_LATE}?|(?:the )?(?:last|latest) (?:change|commit|edit) (?:to|of|in|on) IT)"), _changed),
    (_pattern(r"what (?:has |was )?(?:changed )?(?:in|by) (?:the )?(?:last|latest) commit|(?:the )?(?:last|latest) commit"), _commit),
    (_pattern(r"(?:what (?:did|does) |what (?:has )?changed in )?(?:the )?commit IT(?: changed?| do| did)?"), _commit),
    (_pattern(rf"(?:the )?(?:git )?(?:history|log|changes|commits) (?:of|for|to|in) IT|git log IT|what (?:has )?changed in IT{_LATE}"), _history),
    (_pattern(r"(?:who wrote|who is the author of|(?:the )?authors? of|(?:git )?blame(?: of)?) IT"), _wrote),
    (_pattern(r"what (?:has )?changed(?: in IT)?(?: since the last commit)?|(?:what are )?(?:the )?(?:diff|uncommitted changes|local changes)(?: of IT)?"), _diff),
    (_pattern(r"(?:what (?:are|were) )?(?:the )?(?:last|latest|recent|newest) (?:(?P<it>\d{1,2}) )?commits"), _recent),
    (_pattern(r"what (?:has )?(?:changed|was committed) (?:since )?(?P<it>today|yesterday|this week|last week)"), _recent),
    (_pattern(r"what (?:has )?happened(?: lately| recently| last| today)?"), _happened),
    (_pattern(r"(?:what can (?:i|you) (?:do|call)|(?:which|what) tools (?:are there|can i (?:use|call))|tools)"), _help),
    (_pattern(r"(?:(?:which|what) )?files(?: are| do we have)?(?: there)?(?: (?:in|under) IT)?"), _listed),
    (_pattern(r"(?:(?:which|what|how many) )?IT files(?: are there)?"), _files),
    (_pattern(r"(?:how|what) does IT (?:work|do)|explain IT"), _works),
    (_pattern(r"(?:what is in|(?:the )?contents? of|open|read|cat|show(?: me)?|display)(?: the contents? of)? IT"), _show),
    (_pattern(r"(?:search|grep|look)(?: for)? IT in (?P<where>[\w.-]*/[\w./-]*)"), _used),
    (_pattern(r"(?:search|grep|look|find)(?: for)? IT"), _used),
)  # fmt: skip
