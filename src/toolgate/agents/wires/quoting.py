"""Places in which a call is shown and not said: zones of a text, what stands before a call, quotations that are open there.

Zones are thinking, tool results, files, turns of somebody else. Thinking and results take the rest of the message with them
if they are not closed. Any other element counts only where it is closed: `<path>` in a sentence hides nothing. Elements
that wrap an answer, and the marks of plain HTML, are none.
"""

from __future__ import annotations

import re
from functools import lru_cache
from unicodedata import category

QUOTES = ('"', *"“”„«»‹›「」『』《》")
_SHOWN = re.compile(
    r"""[\s\u200b-\u200f\ufeff]{0,200}(?:
    (?P<number>L?\d{1,12}(?:[ ]*[\t|│:：→]|-\s)) | (?P<place>(?:[A-Za-z]:)?[^\s:]{1,300}:\d{1,12}[:-]) | (?P<diff>[+!-]) | (?P<bar>[|│┃║])
    | (?P<comment>\#|//|/\*|\*[ \t]|;|%|--) | (?P<quote>>) | (?P<time>\[?\d{4}-\d\d-\d\d) | (?P<commit>\^?[0-9a-f]{7,40}[ ][(\d])
    )""",
    re.VERBOSE,
)
_MARKED = {
    "number": "a line's number", "place": "a file's name and line", "diff": "a diff's mark", "bar": "a table's bar",
    "comment": "a comment's mark", "quote": "a quotation's mark", "time": "a date", "commit": "a commit",
}  # fmt: skip
"""What begins a line of a file, a search, a diff or a log: such a line is shown, not said."""
_INTRODUCES = "_`>—–"
_MEMBER = re.compile(r"""(?:(?:\A|[{,\[])\s*+(?:"[^"]*+"|'[^']*+'|“[^”]*+”)|\{\s*+[\w$]++)\s*+:\s*+\Z""")
"""Ends like the key of an object: what follows is a part of something else."""
_COUNTED = re.compile(r"(?:\A|\s)[^\W\d_]{2,}+ (?:\d{1,4}|-)\Z")
"""Words with a number or a dash behind them: `Step 2`, `Now the file -`."""
_ANY = "".join(QUOTES)
_LINE_ENDS = re.compile(rf"""[{_ANY}'‘’][ \t\r]*(?:\n|\Z)""")
_OPENS = re.compile(rf"""(?:\A|[\s:(=\[])(?:[{_ANY}]{{1,3}}|''')\s*\Z""")
_SINGLE = re.compile(r"[‘‚]|(?<!\w)’|’(?!\w)")
"""Single quotes, but no apostrophe within a word."""


LOOKED_BACK = 2000
"""Characters before a call that are looked through for words that introduce what a tool gave."""
_OF_TOOL = r"(?:(?:tool|function|command|program|shell|terminal|search|query|api|server|file|test|git)s?(?:'s)?(?:[ ]call)?|[\w-]+[./_][\w./-]+)[ ]"
_LABEL = re.compile(
    rf"""\W{{0,8}}(?:
    (?:here(?:'s|[ ]is|[ ]are)[ ])?(?:(?:the|its|raw|full)[ ]){{0,2}}(?:{_OF_TOOL}){{0,2}}
      (?:outputs?|results?|response|observation|contents?|stdout|stderr)(?:[ ](?:of|from|for|was|is|were)\b.{{0,80}}|[ ]?\(.{{0,80}}\))?
    | (?!(?:as|like|since|because|following|per)\b).{{0,160}}\b(?:says|states|reads|contains|contained|returned|printed|responded|replied|stated|wrote|(?<!you[ ])said)
    )\W{{0,3}}:\W{{0,4}}""",
    re.VERBOSE | re.IGNORECASE,
)
"""A line that says: what follows is what somebody else gave."""
_TELLS = re.compile(
    r"""\W{0,8}(?:(?:tool|function)[ _-](?:call[ _-])?(?:outputs?|results?|response)\b[^:\n]{0,60}:|observation:|(?:human|user|system|instructions?):|(?:\S{1,80}@\S{1,80})?\$[ ]\S|\[?(?:tool|function):[ ]?[\w./-]+\])""",
    re.IGNORECASE,
)
_ENDS_BLOCK = re.compile(
    r"""\s{0,200}(?:`{3}|~{3}|</[\w:.-]+\s*>\s*\Z|(?:["“«„][^"“”»]*)?["”»]\s*\Z|'''\s*\Z)"""
)
"""What a tool gave stands between marks of its own then, and ends with them."""


def echoed(text: str, at: int) -> str:
    """The words that introduce what a tool gave or another said, if the call stands right behind them or in the
    paragraph that follows them."""
    lines = text[max(at - LOOKED_BACK, 0) : at].split("\n")
    if _LABEL.fullmatch(lines[-1]) or _TELLS.match(lines[-1]):
        return lines[-1].strip()[:60]
    above = len(lines) - 2
    while above >= 0 and not lines[above].strip():
        above -= 1
    alone = (
        above < len(lines) - 2
    )  # an empty line between: only words that still wait for what they introduce
    for line in reversed(lines[: above + 1]):
        if not line.strip() or _ENDS_BLOCK.match(line):
            return ""
        if len(line) <= 300 and (_LABEL.fullmatch(line) or (not alone and _TELLS.match(line))):
            return line.strip()[:60]
        if alone:
            return ""
    return ""


def behind(text: str, fed: int, line: int, at: int) -> str:
    """What of its line keeps a call from being one: words may introduce it. The line begins at `fed` by line feeds
    alone, and at `line` by everything that looks like a new line."""
    if shown := _SHOWN.match(text, fed, at) or _SHOWN.match(text, line, at):
        return _MARKED[shown.lastgroup or ""]
    before = at - 1
    while before >= line and (text[before].isspace() or category(text[before]) == "Cf"):
        before -= 1  # a byte order mark or a space without width says nothing
    if before < line:
        return ""
    last = text[before]
    if last == "`" and before == at - 1:
        return "a backtick that nothing closes"
    if last == ":" and _MEMBER.search(text[max(line, before - 100) : before + 1]):
        return "the key of an object"
    introduces = (
        last.isalpha() or last in _INTRODUCES or category(last) in ("Po", "Pe", "Pf") or last >= "\U0001f000"
    )
    introduces = introduces or _COUNTED.search(text[max(line, before - 60) : before + 1]) is not None
    return "" if introduces else f"{last!r}"


class Quotation:
    """Whether what comes next is quoted: in marks that were opened in its line, or at the end of one before it; or in a
    block quote, whose last paragraph goes on up to an empty line."""

    def __init__(self) -> None:
        self._marks = 0
        self._single = False
        """Whether a single quote is open in the line so far."""
        self._opens = False
        """Whether the line so far ends with marks that open."""
        self._open = False
        """Whether marks at the end of a line before this one are still open."""
        self._block = False
        self._blank = True

    @property
    def open(self) -> bool:
        return self._marks % 2 == 1 or self._single

    @property
    def block(self) -> bool:
        return self._block

    def quoted(self, lines: str) -> None:
        """These lines were a block quote; an empty one at its end has ended its paragraph."""
        self._block, self._blank = bool(lines.rpartition("\n")[2].strip("> \t\r-*+")), False

    def ended(self) -> None:
        """A block of its own has ended the paragraph before it."""
        self._block = False

    def other(self) -> None:
        """Something that is no text stands in the line."""
        self._blank = self._opens = False

    def text(self, text: str, code: bool) -> None:
        lines, feed, last = text.rpartition("\n")
        if feed:
            self._single = False
            if code:
                self._marks, self._opens = int(self._open), False
            else:
                self._lines(lines)
            self._blank = True
        if code and last:
            self.other()
        elif last:
            self._part(last)

    def _lines(self, lines: str) -> None:
        if not (self._open or self._opens or self._block or _LINE_ENDS.search(lines)):
            self._marks = 0  # as nearly always
            return
        for line in lines.split("\n"):
            self._part(line)
            self._open = self._marks % 2 == 1 and (self._open or self._opens)
            self._block = self._block and not self._blank
            self._marks, self._opens, self._blank, self._single = int(self._open), False, True, False

    def _part(self, text: str) -> None:
        if text.isascii():
            self._marks += text.count('"')
        else:
            self._marks += sum(map(text.count, QUOTES))
            for found in _SINGLE.finditer(text):
                self._single = not self._single and found[0] != "’"
        self._marks += text.count("'''") if "'''" in text else 0
        if text.strip():
            self._block = self._block and not (self._blank and text.startswith("#"))  # a heading ends it
            self._blank, self._opens = False, _OPENS.search(text, max(len(text) - 40, 0)) is not None


# --- zones ----------------------------------------------------------------------------------------------------

_THINKING = r"(?:[a-z]{1,12}:)?(?:think|thinking|thoughts?|reasoning|reflection|antthinking|inner_monologue)"
_RESULT = r"(?:tool|function)(?:_use|_call)?_(?:results?|responses?|outputs?)"
_OUTPUT = (
    rf"{_RESULT}|observations?|stdout|stderr|output|results?|search_results?"
    "|pre|code|xmp|samp|kbd|tt|textarea|script|style|blockquote|quote|q|cite|examples?|documents?|file|file_contents?"
    "|scratchpad|analysis"
)
_WRAPPERS = (
    "tool_?(?:calls?|use|uses)|tools?|function_?(?:calls?)|functions?|invoke|parameter|calls?|actions?|answer|final|final_answer"
    "|response|reply|assistant|plan|steps?|task|p|div|span|b|i|u|s|em|strong|small|big|br|hr|ul|ol|li|dl|dt|dd|h[1-6]|section|main|body|html"
)
_REST = r"(?:>|\s[^<>]{0,1000}+(?:>|\Z))"
_MARKS = {
    r"\[THINK\]": r"\[/THINK\]",
    r"\[(?:TOOL_RESULTS?|AVAILABLE_TOOLS)\]": r"\[/(?:TOOL_RESULTS?|AVAILABLE_TOOLS)\]",
    r"\[INST\]": r"\[/INST\]",
    r"<!\[CDATA\[": r"\]\]>",
    r"<\|begin_of_thought\|>": r"<\|end_of_thought\|>",
    r"<\|channel\|>(?:analysis|commentary)\b": r"<\|end\|>|<\|channel\|>(?=final\b)",
    r"<\|(?:im_)?start\|>(?!assistant)|<\|start_header_id\|>(?!assistant)|<start_of_turn>(?!model)"
    r"|<\|(?:user|human|system|tool|observation|ipython)\|>": "",
}
"""Marks of the templates that models are trained on, and what ends them; a turn of somebody else ends the message."""
ZONE = rf"<!--|<(?!(?i:{_WRAPPERS})[\s>])(?i:{_THINKING}|{_OUTPUT}|[a-z][\w:.-]{{0,60}}+){_REST}|{'|'.join(_MARKS)}"
ENDS = rf"</(?i:{_THINKING}|{_RESULT})\s*>"
_KNOWN = re.compile(rf"(?i:(?P<thinks>{_THINKING})|{_OUTPUT})")
_CLOSING = re.compile(r"</([A-Za-z][\w:.-]{0,60}+)\s*>")


class Zone:
    """What begins with a mark: its name, how it ends, and whether it is one only if it does."""

    def __init__(self, mark: str) -> None:
        self.tag, self.name, self.thinks, self.must_end = "", mark[:80], False, False
        self.cut, self.empty = False, mark.endswith("/>")
        if mark == "<!--":
            self.name, self._end = "a comment", "-->"
        elif mark[0] == "[" or mark[1] in "|!" or mark.startswith("<start_of_turn"):
            self._end = next(end for begin, end in _MARKS.items() if re.match(begin, mark))
            self.thinks = bool(self._end) and ("THINK" in mark or mark[1] == "|")
        else:
            self.tag = re.split(r"[\s>/]", mark[1:], maxsplit=1)[0].lower()
            self.name, self.cut = f"<{self.tag}>", not mark.endswith(">")
            known = _KNOWN.fullmatch(self.tag)
            self.thinks, self.must_end = bool(known and known["thinks"]), known is None
            self._end = rf"</{re.escape(self.tag)}\s*>"

    def ending(self, text: str, at: int) -> re.Match[str] | None:
        return _compiled(self._end).search(text, at) if self._end else None


def names_closed(text: str, at: int) -> dict[str, int]:
    """Where each element is closed for the last time."""
    return {found[1].lower(): found.start() for found in _CLOSING.finditer(text, at)}


@lru_cache(maxsize=256)
def _compiled(end: str) -> re.Pattern[str]:
    return re.compile(end, re.IGNORECASE)
