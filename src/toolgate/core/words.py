"""Words of a query and of a tool: cut to their stems, and with those that people use for the same thing."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|[^\W\d_a-zA-Z]+")
_TO_DO = re.compile(r"\bto[- ]dos?\b", re.IGNORECASE)
"""Of which nothing is left without the small words."""
_IGNORED = """
a about all an and any are as at be been by can could did do does each every for from get give had has have how i
if in into is it its let like me my need not of off on one or our out over please s should show so some somebody
someone something tell than that the their them then there these they this those to up us use want was we were
what when where which who whose will with would you your
"""
_STOP = frozenset(_IGNORED.split())
_SAME = (
    "search grep ripgrep rg find locate glob occurrence match pattern usage look query",
    "read cat open view head tail content line retrieve fetch download load",
    "list ls tree browse enumerate",
    "delete remove rm erase unlink drop cancel",
    "move rename mv",
    "write overwrite create save touch store put make add new insert set",
    "open create start new",
    "send post message reply publish",
    "edit replace sed substitute modify change update",
    "patch apply diff",
    "diff compare difference change",
    "directory folder mkdir dir ensure",
    "run execute exec bash sh shell terminal cmd command script program invoke trigger",
    "blame annotate author line",
    "log history commit record",
    "undo revert rollback restore",
    "hash checksum digest sha",
    "outline symbol structure definition function class",
    "ping alive health",
    "job background queue",
    "schedule create event calendar meeting",
    "tool capability",
    "event journal ledger audit earlier past",
    "cpu memory disk monitor load ram",
    "python py",
    "javascript js node deno",
    "email mail message",
    "git commit code repository",
    "sms phone text",
    "explain plan",
    "ticket issue task bug",
    "picture image photo",
    "remember memory note know fact recall",
    "markdown md",
    "lint check problem style mistake wrong validate",
    "todo task reminder",
    "deadline due date",
    "money payment pay refund charge",
    "cloud server machine instance vm virtual host",
    "deploy release rollout ship roll",
    "infrastructure terraform resource",
    "speak speech voice say aloud audio",
    "expose forward port tunnel",
    "uncommitted unstaged working diff",
    "song track music",
    "website page site url web link",
    "customer client contact",
    "people person user member team",
    "repository repo project",
    "spreadsheet sheet excel row cell",
    "document doc page note wiki",
    "alert warning incident alarm",
    "build pipeline ci workflow",
    "error exception crash failure fail",
    "rerun retry again repeat",
    "summary sum summarize rollup",
    "bucket object s3 storage",
    "secret password credential vault",
    "chart graph plot dashboard",
    "flag toggle switch",
)
_ENDINGS = ("ations", "ation", "itions", "ition", "ings", "ing", "ies", "ied", "es", "ed", "s", "er", "ly")


def stem(word: str) -> str:
    """A crude one: it only has to be the same for query and tool."""
    word = word.lower()
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)].rstrip("e")
    return word.rstrip("e") if len(word) > 3 else word


def stems(text: str) -> list[str]:
    together = _TO_DO.sub("todo", text)
    return [stem(word) for word in _WORD.findall(together) if word.lower() not in _STOP]


_ALIKE: dict[str, frozenset[str]] = {}
for _group in _SAME:
    _stems = frozenset(map(stem, _group.split()))
    for _one in _stems:
        _ALIKE[_one] = _ALIKE.get(_one, frozenset()) | _stems


def alike(word: str) -> frozenset[str]:
    """Stems that mean about the same as this one, without it."""
    return _ALIKE.get(word, frozenset()) - {word}
