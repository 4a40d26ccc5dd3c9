"""Reader of a model's text: finds marks of calls in prose, and none in code, quotations, thinking or tool results.

Whole elements are read or none: a call, a fence, a paragraph with backticks. A stream is cut at the end of a line and an
element that is not complete yet is tried again once as much has come as waits, so the time is linear and nothing
depends on how a text was cut. A Grammar says what a mark is and how a call is read.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import NamedTuple, Protocol

from toolgate.agents.wires.base import Parsed
from toolgate.agents.wires.collecting import Collector
from toolgate.agents.wires.quoting import (
    ENDS,
    LOOKED_BACK,
    QUOTES,
    ZONE,
    Quotation,
    Zone,
    behind,
    echoed,
    names_closed,
)

_PREFIX = r"[ \t]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+"
_OPENS_CODE = r"(?:`{3,}+(?=[^`\n]*(?:\n|\Z))|~{3,}+)"
_LINE = re.compile(rf"{_PREFIX}(?:(?P<quoted>>)|(?P<fence>{_OPENS_CODE}))")
_QUOTED = re.compile(rf"{_PREFIX}>[^\n]*+(?:\n{_PREFIX}>[^\n]*+)*+")
_FENCE = re.compile(r"^[ \t]*+(`{3,}+|~{3,}+)[ \t\r]*+$", re.MULTILINE)
_BREAK = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_TICKS = re.compile(r"`+")
_LATE_FENCE = re.compile(r"(?P<fence>`{3,}+)(?=[ \t]*+[\w+.#-]*+[ \t\r]*+\n)")
"""One that begins behind words, as models write it, though Markdown does not know it."""
_TICKED = re.compile(r"(`++)[^`\n]*+(`++)")
_PARAGRAPH = re.compile(
    r"\n(?=[ \t\r]*+(?:\n|>|[-*+][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|`{3,}+[^`\n]*(?:\n|\Z)|~~~))"
)
_BLANK = re.compile(r"(?:\A|\n)[ \t\r]*\n[ \t]*\Z")
_ASKED = re.compile(r'<tool_call>|"intent"\s*:\s*"tool_call"|<function=|<invoke\s')
BATCH = 200
"""Characters, two or three lines, that are awaited before a stream is looked at again."""
KEPT = 4096
"""Characters that are done with and may stay: they are cut off rarely, so that a line costs no copy of its own."""


class Grammar(Protocol):
    marks: str
    """A pattern without groups; each of its branches begins with a plain character, which keeps the search fast."""

    def take(self, reader: ProseReader, start: int, mark: str, final: bool) -> int | None:
        """Read what begins with the mark; where it ends, or None if that is not known yet. The reader's text ends with a
        line, or with the message if that is final."""
        ...

    def fenced(self, reader: ProseReader, info: str, text: str) -> bool:
        """Whether the text of a code fence is a call of this wire, and was read."""
        ...


class ProseReader:
    """One message of text, whole or in pieces."""

    def __init__(self, grammar: Grammar, collector: Collector) -> None:
        self.collector = collector
        self.text = ""
        """What has come and is not done with, behind at least the line before it: to see what a call stands behind."""
        self._grammar = grammar
        self._patterns = _patterns(grammar.marks)
        self._at = 0
        self._raw: list[str] = []
        self._rest = ""
        """What has come of a line that has not ended."""
        self._taken = 0
        """Pieces that are in the text or in the rest."""
        self._size = self._needed = 0
        self._begun = False
        self._said: list[str] = []
        self._thought: list[str] = []
        self.clean = True
        """Whether nothing but calls stands in the line so far."""
        self._quotation = Quotation()
        self._unfenced = sys.maxsize
        """Length of backticks behind words that no fence closes in the rest of the message."""
        self._paragraph = (-1, {})  # type: tuple[int, dict[int, int]]
        self._told = self._thoughts = self._called = self._failed = 0
        """How much of what was said, thought, called and wrong has been handed out already."""
        self._looked: tuple[str, int, int, int] = ("", 0, 0, 0)
        self._closed: dict[str, int] | None = None

    def _line_starts(self, at: int) -> tuple[int, int]:
        """Where the line of a place begins, by line feeds alone and by everything that looks like a new line. Places
        come in order, so a line of many calls is looked through once."""
        text, upto, fed, line = self._looked
        if text is not self.text or at < upto:
            fed = line = upto = self.text.rfind("\n", 0, at) + 1
        for found in _BREAK.finditer(self.text, upto, at):
            line = found.end()
            fed = line if found[0] == "\n" else fed
        self._looked = (self.text, at, fed, line)
        return fed, line

    # --- pieces -------------------------------------------------------------------------------------------

    def feed(self, chunk: str) -> Parsed:
        self._raw.append(chunk)
        self._size += len(chunk)
        if self._size < self._needed or "\n" not in chunk:
            return Parsed()
        self._read(final=False)
        return self._news()

    def close(self) -> Parsed:
        self._read(final=True)
        text, thinking = "".join(self._said), "".join(self._thought)
        return self.collector.parsed(text=text.strip(), thinking=thinking.strip(), raw="".join(self._raw))

    def _read(self, final: bool) -> None:
        new = self._rest + "".join(self._raw[self._taken :])
        self._taken = len(self._raw)
        cut = len(new) if final else new.rfind("\n") + 1
        text, at = self.text, self._at
        if at > KEPT:
            begin = max(text.rfind("\n", 0, at - LOOKED_BACK), 0)
            text, at = text[begin:], at - begin
        self.text, self._rest = text + new[:cut], new[cut:]
        self._paragraph = (-1, {})
        self._at = self._scan(at, final)
        self._size, self._needed = len(new) - cut, max(len(self.text) - self._at - 1, BATCH)

    def _news(self) -> Parsed:
        """What has become certain since the last time."""
        collector, new = self.collector, Parsed()
        if len(self._said) != self._told:
            new.text, self._told = "".join(self._said[self._told :]), len(self._said)
        if len(self._thought) != self._thoughts:
            new.thinking, self._thoughts = "".join(self._thought[self._thoughts :]), len(self._thought)
        if len(collector.calls) != self._called:
            new.calls, self._called = collector.calls[self._called :], len(collector.calls)
        if len(collector.errors) != self._failed:
            new.errors, self._failed = collector.errors[self._failed :], len(collector.errors)
        return new

    # --- elements -----------------------------------------------------------------------------------------

    def _scan(self, at: int, final: bool) -> int:
        if not self._begun and self.text:
            first = _LINE.match(self.text)
            stop = self._line(first, 0, final) if first else 0
            if stop is None:
                return at
            self._begun, at = True, stop
        find, text = self._patterns.anything.search, self.text
        while True:
            match = find(text, at)
            if match is None:
                # the last line break may begin what makes a quotation of the next line
                stop = len(text) if final else max(len(text) - 1, at)
                self.say(text[at:stop])
                return stop
            begin = match.start()
            if begin > at:
                self.say(text[at:begin])
            stop = self._element(match, begin, final)
            if stop is None:
                return begin
            at = stop

    def _element(self, match: re.Match[str], at: int, final: bool) -> int | None:
        first = self.text[at]
        if first == "\n":
            self.say("\n")
            line = _LINE.match(self.text, at + 1)
            assert line is not None
            return self._line(line, at + 1, final)
        if first == "`":
            return self._inline_code(match, final)
        if first == "\\":
            slashes = len(match[0]) - 1
            self.say(match[0] if slashes % 2 else match[0][:-1])
            return match.end() if slashes % 2 else match.end() - 1
        tag = self._patterns.tags.match(self.text, at)
        if tag is None:
            return self._call(match, final)
        return self._zone(tag, final) if tag["zone"] else self._thought_before(tag)

    def say(self, text: str, *, code: bool = False) -> None:
        """It is text, and may open a quotation; one in code opens none."""
        if not text:
            return
        self._said.append(text)
        self._quotation.text(text, code)
        line = text.rfind("\n") + 1
        if line or self.clean:
            self.clean = not text[line:].strip(" \t,;")

    def _line(self, match: re.Match[str], at: int, final: bool) -> int | None:
        if match["quoted"]:
            lines = _QUOTED.match(self.text, at)
            assert lines is not None
            self.say(lines[0], code=True)
            self._quotation.quoted(lines[0])
            return lines.end()
        return self._fence(match, at, final)

    def _again(self, at: int) -> None:
        """The line break before was said already; it is looked at once more when the rest has come."""
        if at and self._said and self._said[-1] == "\n":
            self._said.pop()

    def _fence(self, match: re.Match[str], at: int, final: bool) -> int | None:
        stop = self._fenced(match, at)
        if stop is None and not final:
            self._again(at)
        elif stop is None:
            self._unclosed(self.text[at:], "a code fence")
            self.say(self.text[at:], code=True)
            return len(self.text)
        return stop

    def _fenced(self, match: re.Match[str], at: int) -> int | None:
        """Where the fence ends, if it does; it was read then."""
        mark, begin = match["fence"], self.text.find("\n", match.end())
        found = _FENCE.finditer(self.text, begin + 1) if begin >= 0 else ()
        closing = next((one for one in found if one[1][0] == mark[0] and len(one[1]) >= len(mark)), None)
        if closing is None:
            return None
        info = self.text[match.end() : begin].strip()
        inner = self.text[begin + 1 : closing.start()]
        if not self._grammar.fenced(self, info, inner):
            self.say(self.text[at : closing.end()], code=True)
        self._quotation.ended()
        return closing.end()

    def _inline_code(self, match: re.Match[str], final: bool) -> int | None:
        at, length = match.start(), len(match[0])
        late = _LATE_FENCE.match(self.text, at) if 3 <= length < self._unfenced else None
        if late:
            stop = self._fenced(late, at)
            if stop is not None or not final:
                return stop
            self._unfenced = length  # nor does anything close a longer one: nobody looks twice
        ticked = _TICKED.match(self.text, at)
        if ticked and ticked[1] == ticked[2]:  # as nearly all do, it ends in its line
            self.say(ticked[0], code=True)
            return ticked.end()
        limit, last = self._paragraph
        if at >= limit:
            found = _PARAGRAPH.search(self.text, at)
            if found is None and not final:
                return None
            limit = found.start() if found else len(self.text)
            last = {len(one[0]): one.start() for one in _TICKS.finditer(self.text, at, limit)}
            self._paragraph = (limit, last)
        stop = match.end()
        if last.get(length, -1) > at:
            stop = next(one.end() for one in _TICKS.finditer(self.text, stop, limit) if len(one[0]) == length)
        self.say(self.text[at:stop], code=True)
        return stop

    def _zone(self, match: re.Match[str], final: bool) -> int | None:
        zone = Zone(match[0])
        if zone.cut and not final:  # its tag ends on a line that has not come yet, or never
            return None
        if zone.cut or zone.empty or (final and zone.must_end and not self._ends_later(zone, match.end())):
            self.say(match[0])
            return match.end()
        found = zone.ending(self.text, match.end())
        if found is None and not final:
            return None
        stop = found.end() if found else len(self.text)
        if found is None:
            self._unclosed(self.text[match.end() :], zone.name)
        elif zone.must_end and _ASKED.search(self.text, match.end(), found.start()):
            self.collector.error(f"A call stands within {zone.name}; nothing is run from there.", match[0])
        if zone.thinks:
            self._thought.append(self.text[match.end() : found.start() if found else stop])
        else:
            self.say(self.text[match.start() : stop], code=True)
        return stop

    def _ends_later(self, zone: Zone, at: int) -> bool:
        """Whether an element is closed in the rest of the message, which is whole now; all are looked for at once."""
        if self._closed is None:
            self._closed = names_closed(self.text, at)
        return self._closed.get(zone.tag, -1) >= at

    def _unclosed(self, text: str, where: str) -> None:
        """Something that is not closed takes the rest of the message with it; the model must learn why nothing ran."""
        if self._patterns.mark.search(text):
            self.collector.error(f"The message ends within {where}, from where nothing is run.", text)

    def _thought_before(self, match: re.Match[str]) -> int:
        """Thinking, or a tool's output, that began before the message did: nothing of it is run."""
        for call in self.collector.calls:
            self.collector.error(
                f"The call of {call.name} stands before {match[0]}, in what that ends; nothing is run from there.",
                name=call.name,
            )
        self.collector.calls.clear()
        self._thought.append("".join(self._said))
        self._said.clear()
        self._told = self._called = 0
        self._quotation = Quotation()
        return match.end()

    def _call(self, match: re.Match[str], final: bool) -> int | None:
        at = match.start()
        quoted = self._quotation.open
        if quoted and (match[0].startswith("</") or self.text[at - 1 : at] in QUOTES):
            self.say(match[0])
            return match.end()
        collector = self.collector
        calls, errors = len(collector.calls), len(collector.errors)
        stop = self._grammar.take(self, at, match[0], final)
        if stop is None:
            return None
        self._quotation.other()
        if len(collector.calls) > calls and (where := self._not_prose(at, stop, quoted)):
            name = collector.calls[-1].name
            del collector.calls[calls:], collector.errors[errors:]
            whole = self.text[at:stop]
            collector.error(f"The call of {name} stands {where}; nothing is run from there.", whole, name)
        return stop

    def _not_prose(self, at: int, stop: int, quoted: bool) -> str:
        if quoted:
            return "in an open quotation"
        if self.text[at - 1 : at] == "'" == self.text[stop : stop + 1]:
            return "in single quotes"
        if self._quotation.block:
            return "in the paragraph of a block quote: leave an empty line before it"
        if self._indented(at):
            return "in an indented block, which is code"
        if label := echoed(self.text, at):
            return f"in what {label!r} introduces: leave those words out"
        return f"behind {mark}: begin a line with it" if (mark := self.behind(at)) else ""

    def behind(self, at: int) -> str:
        """What of its line keeps a call from being one: words may introduce it."""
        return behind(self.text, *self._line_starts(at), at)

    def _indented(self, at: int) -> bool:
        line = self.text.rfind("\n", 0, at) + 1
        before = self.text[line : min(at, line + 201)]
        if len(before) > 200 or before.strip(" \t") or len(before.expandtabs(4)) < 4:
            return False
        return line == 0 or _BLANK.search(self.text[max(line - 200, 0) : line]) is not None


class Patterns(NamedTuple):
    anything: re.Pattern[str]
    """Finds the next thing. All its branches begin with a plain character: so Python skips what begins with none."""
    tags: re.Pattern[str]
    """Says of what is neither a line, nor ticks, nor a backslash, whether it is a zone or the end of thinking; else it
    is a mark."""
    mark: re.Pattern[str]


@lru_cache(maxsize=16)
def _patterns(marks: str) -> Patterns:
    line, ticks, escaped = rf"\n{_PREFIX}(?:>|{_OPENS_CODE})", r"``*+", r"\\(?<!\\\\)\\*+[`<&{\[]"
    return Patterns(
        re.compile("|".join((line, ticks, escaped, marks, ZONE, ENDS))),
        re.compile(rf"(?!{marks})(?:(?P<zone>{ZONE})|{ENDS})"),
        re.compile(marks),
    )
