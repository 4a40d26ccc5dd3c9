"""What a human sees of a question in each channel, and whether it can be approved there."""

from __future__ import annotations

import html
import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import httpx2
from rich.console import Console

from faces.http.serving import House
from toolgate.core.call import Call
from toolgate.core.display import visible
from toolgate.core.ports import Question
from toolgate.faces.mcp import question as form
from toolgate.kits.terminal import question as terminal
from toolgate.kits.terminal.speech import ENDLESS

_SPELLED = re.compile("⟨U\\+[0-9A-F]{4,6}⟩")


@dataclass
class Seen:
    text: str
    approvable: bool

    @cached_property
    def _flat(self) -> str:
        return _plain(visible(self.text, keep_lines=True))

    def misses(self, wanted: str) -> list[str]:
        """The lines of a text, and the invisible characters in it, that cannot be seen."""
        flat = self._flat
        lines = ["".join(c for c in line if visible(c) == c or c == "\t") for line in wanted.split("\n")]
        gone = [line for line in lines if not any(each in flat for each in _spellings(line))]
        hidden = {c for c in wanted if visible(c) != c and c not in "\n\t\r"}
        return gone + [f"U+{ord(c):04X}" for c in hidden if not _tells(self.text, c)]


def _tells(text: str, char: str) -> bool:
    return f"⟨U+{ord(char):04X}⟩" in text or char in text or json.dumps(char)[1:-1] in text


def _spellings(line: str) -> set[str]:
    quoted = json.dumps(line, ensure_ascii=False)[1:-1]
    again = json.dumps(quoted, ensure_ascii=False)[1:-1]
    return {_plain(each) for each in (line, quoted, again, json.dumps(line)[1:-1])}


def _plain(text: str) -> str:
    """Without marks and blanks, which are drawn in different ways."""
    return "".join(_SPELLED.sub("", text).split())


async def channels(here: House, browser: httpx2.AsyncClient, question: Question) -> dict[str, Seen]:
    page = (await browser.get(f"{here.site.base}/questions/{question.id}?all=true")).text
    told = (await browser.get(f"{here.site.base}/api/v1/approvals/{question.id}")).json()
    asked = form.text(question)
    return {
        "terminal": Seen(_printed(question), True),
        "console": Seen(_read(page), 'id="approve-button"' in page),
        "mcp": Seen(asked, len(asked) <= form.LONGEST_TEXT),
        "http": Seen(json.dumps(told, ensure_ascii=False), True),
    }


def _printed(question: Question) -> str:
    file = io.StringIO()
    terminal.print_page(
        Console(file=file, width=ENDLESS, highlight=False, markup=False, emoji=False), question
    )
    return file.getvalue()


def _read(page: str) -> str:
    inside = page[page.index('<article id="question"') : page.index("</article>")]
    return html.unescape(re.sub(r"<[^>]*>", "", inside))


def texts(value: Any) -> Iterator[str]:
    """Every text in arguments, keys among them; numbers as JSON writes them."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item)
    elif value not in (None, "", [], {}):
        yield value if isinstance(value, str) else json.dumps(value)


def unseen(call: Call, question: Question, seen: Seen) -> list[str]:
    """What of the final arguments and of the Change cannot be seen. An argument of which the preview says all is told
    by its length, so it is looked for there: the preview is made from the same bytes."""
    wanted = [
        text
        for name, value in call.args.items()
        if name not in question.repeats
        for text in (name, *texts(value))
    ]
    if call.change is not None:
        gone = {file.before for file in call.change.files if file.after is None}
        come = {file.after for file in call.change.files if file.before is None}
        for file in call.change.files:
            wanted.append(visible(file.path.shown))
            if (file.after not in gone or file.before is not None) and (
                file.before not in come or file.after is not None
            ):
                wanted += _changed(file.before, file.after)  # what only moves is not written anew
    elif question.repeats:
        wanted += [text for name in question.repeats for text in texts(call.args.get(name))]
    return [gone for text in wanted for gone in seen.misses(text)]


def _changed(before: bytes | None, after: bytes | None) -> list[str]:
    try:
        old, new = ((side or b"").decode() for side in (before, after))
    except UnicodeDecodeError:
        return [(after or b"")[:16].hex(" ")]
    if "\0" in old + new:
        return [(after or b"")[:16].hex(" ")]
    left, right = Counter(old.split("\n")), Counter(new.split("\n"))
    lines = [*(right - left), *(left - right)]
    return [line for line in lines if not all(unicodedata.category(c).startswith("Z") for c in line)]
