"""Zones of a model's text in which nothing is said to the gate: thinking, tool results, files, turns of somebody else.

Thinking and results take the rest of the message with them if they are not closed. Any other element counts only where
it is closed: `<path>` in a sentence hides nothing. Elements that wrap an answer, and the marks of plain HTML, are none.
"""

from __future__ import annotations

import re
from functools import lru_cache

_THINKING = r"(?:[a-z]{1,12}:)?(?:think|thinking|thoughts?|reasoning|reflection|antthinking|inner_monologue)"
_RESULT = r"(?:tool|function)(?:_use|_call)?_(?:results?|responses?|outputs?)"
_SHOWN = (
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
    r"\[TOOL_RESULTS?\]": r"\[/TOOL_RESULTS?\]",
    r"<\|begin_of_thought\|>": r"<\|end_of_thought\|>",
    r"<\|channel\|>(?:analysis|commentary)\b": r"<\|end\|>|<\|channel\|>(?=final\b)",
    r"<\|im_start\|>(?!assistant)|<\|start_header_id\|>(?!assistant)|<start_of_turn>(?!model)"
    r"|<\|(?:user|human|system|tool|observation|ipython)\|>": "",
}
"""Marks of the templates that models are trained on, and what ends them; a turn of somebody else ends the message."""
ZONE = rf"<!--|<(?!(?i:{_WRAPPERS})[\s>])(?i:{_THINKING}|{_SHOWN}|[a-z][\w:.-]{{0,60}}+){_REST}|{'|'.join(_MARKS)}"
ENDS = rf"</(?i:{_THINKING}|{_RESULT})\s*>"
_KNOWN = re.compile(rf"(?i:(?P<thinks>{_THINKING})|{_SHOWN})")
_CLOSING = re.compile(r"</([A-Za-z][\w:.-]{0,60}+)\s*>")


class Zone:
    """What begins with a mark: its name, how it ends, and whether it is one only if it does."""

    def __init__(self, mark: str) -> None:
        self.tag, self.name, self.thinks, self.must_end = "", mark[:80], False, False
        self.cut, self.empty = False, mark.endswith("/>")
        if mark == "<!--":
            self.name, self._end = "a comment", "-->"
        elif mark[0] == "[" or mark[1] == "|" or mark.startswith("<start_of_turn"):
            self._end = next(end for begin, end in _MARKS.items() if re.match(begin, mark))
            self.thinks = "TOOL" not in mark and bool(self._end)
        else:
            self.tag = re.split(r"[\s>/]", mark[1:], maxsplit=1)[0].lower()
            self.name, self.cut = f"<{self.tag}>", not mark.endswith(">")
            known = _KNOWN.fullmatch(self.tag)
            self.thinks, self.must_end = bool(known and known["thinks"]), known is None
            self._end = rf"</{re.escape(self.tag)}\s*>"

    def ending(self, text: str, at: int) -> re.Match[str] | None:
        return _pattern(self._end).search(text, at) if self._end else None


def names_closed(text: str, at: int) -> dict[str, int]:
    """Where each element is closed for the last time."""
    return {found[1].lower(): found.start() for found in _CLOSING.finditer(text, at)}


@lru_cache(maxsize=256)
def _pattern(end: str) -> re.Pattern[str]:
    return re.compile(end, re.IGNORECASE)
