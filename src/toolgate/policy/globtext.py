"""From the text of a glob to a regular expression: braces spelled out, characters tokenised, stars made atomic.

Between two stars stands a run of fixed length, so its leftmost place is always good enough and no star ever
needs to be tried again: each is an atomic group.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from toolgate.core.errors import ConfigError
from toolgate.core.late_pattern import late_pattern
from toolgate.core.named_tuples import NamedTuple
from toolgate.core.paths import MAX_NAME

MAX_LENGTH = 512
MAX_SPELLED = 16 * 1024
"""Of a glob that only spells a path out, which is as long as that path; its characters may stand in sets of one."""
_ONE, _WILD = late_pattern(r"\[.\]", re.DOTALL), late_pattern(r"[*?\[{]")
MAX_ALTERNATIVES = 64
MAX_RANGE = 256


class CharSet(NamedTuple):
    negated: bool
    chars: frozenset[str]


Token = str | CharSet
"""`*`, `?`, `=x` for the literal x, or a set of characters."""


def check_text(text: str) -> None:
    if not text:
        raise ConfigError("an empty glob matches nothing", "write `**` for every path or `*` for every name")
    if len(text) > MAX_LENGTH and not _spells_path(text):
        raise ConfigError(f"a glob has {len(text)} characters, the limit is {MAX_LENGTH}", "split it in two")
    if "\\" in text:
        raise ConfigError(
            f"the glob {text!r} has a backslash", "use `/` between segments and `[*]` for a star"
        )
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise ConfigError(f"the glob {text!r} has a control character", "remove it")


def _spells_path(text: str) -> bool:
    """Whether it has no choices: each character stands for itself, perhaps in a set of its own."""
    plain = _ONE.sub("x", text)
    short = all(len(name) <= MAX_NAME for name in plain.split("/"))
    return len(text) <= MAX_SPELLED and short and not _WILD.search(plain)


def expand(text: str) -> list[str]:
    """Every alternative of the braces, spelled out."""
    found = [""]
    rest = text
    while rest:
        if rest[0] == "[":
            end = rest.find("]", 2) + 1 or len(rest)
            choices, rest = [rest[:end]], rest[end:]
        elif rest[0] == "{":
            body, close, after = rest[1:].partition("}")
            if not close or "{" in body:
                raise ConfigError(f"the glob {text!r} has an unclosed or nested `{{`", "write `{a,b}`")
            choices, rest = body.split(","), after
            if "" in choices or "[" in body:
                raise ConfigError(
                    f"the glob {text!r} has an empty choice or a set in braces", "write `{a,b}`"
                )
        elif rest[0] == "}":
            raise ConfigError(f"the glob {text!r} has a `}}` without `{{`", "write `{a,b}` or `[}]`")
        else:
            plain = re.match(r"[^\[{}]+", rest)
            assert plain is not None
            choices, rest = [plain.group()], rest[plain.end() :]
        found = [head + choice for head in found for choice in choices]
        if len(found) > MAX_ALTERNATIVES:
            raise ConfigError(
                f"the glob {text!r} has over {MAX_ALTERNATIVES} alternatives", "split it in two"
            )
    return found


def tokens(one: str, text: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(one):
        char = one[at]
        if char == "[":
            end = one.find("]", at + 2)
            if end < 0:
                raise ConfigError(
                    f"the glob {text!r} has an unclosed `[`", "close it, or write `[[]` for the character"
                )
            found.append(_set(one[at + 1 : end], text))
            at = end
        elif char == "]":
            raise ConfigError(f"the glob {text!r} has a `]` without `[`", "remove it")
        elif char in "*?":
            if not (char == "*" and found[-1:] == ["*"]):
                found.append(char)
        else:
            found.append("=" + char)
        at += 1
    return found


def _set(body: str, text: str) -> CharSet:
    negated = body.startswith("!")
    rest = body[1:] if negated else body
    if not rest or rest.startswith("^") or "/" in rest:
        raise ConfigError(f"the glob {text!r} has the impossible set [{body}]", "write `[abc]` or `[!abc]`")
    chars: set[str] = set()
    at = 0
    while at < len(rest):
        if rest[at + 1 : at + 2] == "-" and at + 2 < len(rest):
            low, high = ord(rest[at]), ord(rest[at + 2])
            if not 0 <= high - low < MAX_RANGE:
                raise ConfigError(
                    f"the glob {text!r} has an impossible range in [{body}]", "write it like `[a-z]`"
                )
            chars.update(map(chr, range(low, high + 1)))
            at += 3
        else:
            chars.add(rest[at])
            at += 1
    return CharSet(negated, frozenset(chars - {"/"}))


def alternatives(regexes: Iterable[str]) -> re.Pattern[str]:
    return late_pattern("|".join(f"(?:{regex})" for regex in regexes), re.DOTALL)


def path_regex(segments: list[list[Token]], loose: bool) -> str:
    """Over a path whose every segment is followed by a slash."""
    groups: list[str] = [""]
    for segment in segments:
        if segment == ["**"]:
            groups.append("")
        else:
            groups[-1] += ("[^/]+" if segment == ["*"] else run_regex(segment, "[^/]", loose)) + "/"
    first, *rest = groups
    if not rest:
        return first
    middle = "".join(f"(?>(?:[^/]++/)*?{group})" for group in rest[:-1] if group)
    return first + middle + (f"(?:[^/]++/)*{rest[-1]}" if rest[-1] else "(?:[^/]++/)*+")


def run_regex(pieces: list[Token], one: str, loose: bool) -> str:
    parts: list[list[Token]] = [[]]
    for piece in pieces:
        if piece == "*":
            parts.append([])
        else:
            parts[-1].append(piece)
    first, *rest = (_fixed(part, one, loose) for part in parts)
    if not rest:
        return first
    middle = "".join(f"(?>{one}*?{part})" for part in rest[:-1])
    return first + middle + f"{one}*{rest[-1]}"


def _fixed(pieces: list[Token], one: str, loose: bool) -> str:
    out = ""
    literal = ""
    for piece in pieces:
        if isinstance(piece, str) and piece != "?":
            literal += piece[1:]
            continue
        out += _literal(literal, loose) + (one if isinstance(piece, str) else _set_regex(piece, one, loose))
        literal = ""
    return out + _literal(literal, loose)


def _literal(text: str, loose: bool) -> str:
    return re.escape(_folded_literal(text) if loose else text)


def _folded_literal(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _set_regex(token: CharSet, one: str, loose: bool) -> str:
    spelled = {_folded_literal(char) for char in token.chars} if loose else token.chars
    # A character that folds to several cannot stand in a set; the exact spelling still matches it.
    body = "".join(re.escape(char) for char in sorted(spelled) if len(char) == 1)
    if token.negated:
        return f"(?:(?![{body}]){one})" if body else one
    return f"[{body}]" if body else "(?!)"
