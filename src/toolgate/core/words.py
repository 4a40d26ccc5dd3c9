"""Words of a query and of a tool: cut to their stems, and with those that people use for the same thing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from toolgate.core.late_pattern import late_pattern

_WORD = late_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|[^\W\d_a-zA-Z]+")
_WRITTEN = late_pattern(r"[a-zA-Z0-9]+|[^\W\d_a-zA-Z]+")
_TO_DO = late_pattern(r"\bto[- ]dos?\b", re.IGNORECASE)
"""Of which nothing is left without the small words."""
_IGNORED = """
a about all an and any are as at be been by can could did do does each every for from get give had has have how i
if in into is it its let like me my need not of off on one or our out over please s should show so some somebody
someone something tell than that the their them then there these they this those to up us use want was we were
what when where which who whose will with would you your am last latest newest now right just
"""
_STOP = frozenset(_IGNORED.split())
_SHORTEST, _LONG, _TAIL = 4, 7, 4
"""Letters of a word that another may be meant for, of one that may have two slips, and of what two of one root differ in."""
_SAME = (
    "search grep ripgrep rg find locate glob occurrence match pattern usage look query",
    "read cat open view head tail content line retrieve fetch download load",
    "list ls tree browse enumerate",
    "delete remove rm erase unlink drop cancel kill",
    "move rename mv",
    "write overwrite create save touch store put make add new insert set",
    "open create start new",
    "send post message reply publish notify announce",
    "edit replace sed substitute modify change update",
    "patch apply diff",
    "diff compare difference change",
    "directory folder mkdir dir ensure",
    "run execute exec bash sh shell terminal cmd command script program invoke trigger",
    "blame annotate author line wrote",
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
    "mr pr merge pull request",
    "inbox email mail gmail message",
    "reschedule postpone shift move update event",
    "balance money fund cash",
    "discount coupon voucher promotion promo",
    "navigate go visit goto browse open",
    "press click tap push hit button",
    "fill type enter form input field",
    "choose select pick option dropdown",
    "google internet web online",
    "headline news article story",
    "route direction way drive trip travel",
    "weather forecast rain temperature snow wind sunny climate",
    "combine merge join concatenate unite",
    "unused prune clean cleanup dangling orphan",
    "stock inventory quantity",
    "silence mute snooze suppress quiet",
    "screenshot capture snapshot screen",
    "translate language",
    "free busy available availability slot",
    "book reserve schedule appointment",
    "appointment event meeting invitation invite conference",
    "attendee guest participant invite",
    "calendar agenda",
    "react reaction emoji thumb",
    "dm direct private message",
    "channel room conversation chat",
    "thread reply conversation",
    "stop kill terminate halt end shutdown cancel",
    "launch start boot spin run create",
    "restart reboot redeploy",
    "cost price billing spend bill expense",
    "bill invoice receipt",
    "buy purchase order checkout",
    "ship fulfill deliver shipment tracking",
    "product item sku",
    "metric series measure",
    "monitor watch observe",
    "dns domain hostname",
    "cache cdn purge clear flush invalidate",
    "env environment variable",
    "setting config configuration preference",
    "kubernetes k8s kubectl cluster",
    "scale replica",
    "sql query database select statement db",
    "database db postgres mysql sqlite",
    "row insert record",
    "table column schema",
    "index indices",
    "video clip movie film",
    "subtitle transcript caption",
    "trim cut crop clip",
    "convert transform transcode turn",
    "coordinate geocode latitude longitude gps",
    "near nearby around local close",
    "restaurant place business cafe hotel shop",
    "distance far",
    "phone call dial ring",
    "oncall duty rotation pager",
    "respond accept decline rsvp answer",
    "share permission access grant",
    "upload attach put",
    "export save download",
    "archive close hide",
    "complete finish done close tick",
    "resolve fix close solve",
    "assign owner assignee delegate",
    "priority urgent importance",
    "label tag category",
    "comment remark feedback note reply",
    "sprint iteration cycle",
    "card ticket task",
    "approve accept review",
    "worklog hour timesheet spent",
    "transition status state progress move",
    "follow star subscribe",
    "play playback listen resume",
    "generate make create draw",
    "deal lead sale opportunity",
    "login sign authenticate auth",
    "currency exchange rate",
    "ttl expire expiry",
)
_ENDINGS = ("ment", "ion", "ing", "ied", "ed", "er", "ly")


def stem(word: str) -> str:
    """A crude one: it only has to be the same for query and tool."""
    word = word.lower()
    if len(word) <= 3:
        return word
    if word.endswith(("sses", "shes", "ches", "xes")):
        word = word[:-2]
    elif word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= (5 if ending == "ment" else 3):
            word = word.removesuffix(ending) + ("y" if ending == "ied" else "")
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeioulsz":
        word = word[:-1]  # `stopped` is of `stop`
    word = word.rstrip("e") if len(word) > 3 else word
    return word[:-1] + "i" if len(word) > 3 and word.endswith("y") else word


def stems(text: str) -> list[str]:
    """Also of what is written in one, as `PromQL` is, both as one word and by its parts."""
    found: list[str] = []
    for written in _WRITTEN.findall(_TO_DO.sub("todo", text)):
        # the figures of `s3` and `3pm` say nothing by themselves
        parts = (
            [written]
            if written.isdigit()
            else [part for part in _WORD.findall(written) if not part.isdigit()]
        )
        found += [stem(word) for word in parts if word.lower() not in _STOP]
        if written not in parts and written.isascii():
            found.append(stem(written))
    return found


def joined(text: str) -> list[str]:
    """Stems of each two words that stand side by side, as one: `on call` is `oncall`, and `drop-down` is `dropdown`."""
    words = _WRITTEN.findall(text.lower())
    return [stem(first + second) for first, second in pairwise(words) if first.isalpha() and second.isalpha()]


def nearest(word: str, known: Iterable[str]) -> frozenset[str]:
    """Of stems that are known those which one that is not may be meant for: of the same root, or misspelt."""
    if len(word) < _SHORTEST:
        return frozenset()
    near = [one for one in known if abs(len(one) - len(word)) <= _TAIL and len(one) >= _SHORTEST]
    roots = frozenset(one for one in near if one.startswith(word) or word.startswith(one))
    slips = 1 if len(word) < _LONG else 2
    return roots or frozenset(one for one in near if one[0] == word[0] and _differs(word, one, slips))


def _differs(one: str, other: str, most: int) -> bool:
    """Whether so few letters were left out, added, changed or swapped."""
    if abs(len(one) - len(other)) > most:
        return False
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        last, before, row = before, row, [at]
        for to, wanted in enumerate(other, 1):
            cost = min(before[to] + 1, row[-1] + 1, before[to - 1] + (letter != wanted))
            if at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == wanted:
                cost = min(cost, last[to - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return False
    return row[-1] <= most


_ALIKE: dict[str, frozenset[str]] = {}
for _group in _SAME:
    _stems = frozenset(map(stem, _group.split()))
    for _one in _stems:
        _ALIKE[_one] = _ALIKE.get(_one, frozenset()) | _stems


def alike(word: str) -> frozenset[str]:
    """Stems that mean about the same as this one, without it."""
    return _ALIKE.get(word, frozenset()) - {word}
