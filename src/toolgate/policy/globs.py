"""One glob dialect for paths, tool names, personas and argument texts.

`*` any characters within a segment, `**` any number of whole segments (also none), `?` one character,
`[abc]`, `[a-z]` and `[!abc]` one of a set, `{a,b}` one of several. There are no escapes: `[*]` is a star.

A path glob names its mount (`garden:users/**`, `*:…` for any); without one it means the project. In names and
texts there are no segments, so `*` matches everything. A glob is compiled once, from its text to a regular expression:
braces spelled out, characters tokenised, stars made atomic. Between two stars stands a run of fixed length, so its
leftmost place is always good enough and no star ever needs to be tried again: no text makes matching run away.

Allowing compares the exact spelling (`matches`); denying also compares the folded one (`catches`): a deny of
`deploy/**` holds for `Deploy/x` too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from toolgate.core.errors import ConfigError
from toolgate.core.late_pattern import late_pattern
from toolgate.core.named_tuples import NamedTuple
from toolgate.core.paths import MAX_NAME, MOUNT, MountPath, folded
from toolgate.core.records import dataclass

MAX_LENGTH = 512
MAX_SPELLED = 16 * 1024
"""Of a glob that only spells a path out, which is as long as that path; its characters may stand in sets of one."""
_ONE, _CHOICE = late_pattern(r"\[.\]", re.DOTALL), late_pattern(r"[*?\[{]")
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
    return len(text) <= MAX_SPELLED and short and not _CHOICE.search(plain)


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


ANY_MOUNT = "*"
_TOOL_CHARS = late_pattern(r"[A-Za-z0-9_.\-*?\[\]{},!]+")
_TOOL_NAME = late_pattern(r"[a-z][a-z0-9_-]*(\.[A-Za-z0-9][A-Za-z0-9_-]*)+")
_WILD = frozenset("*?[")
_MEANS = late_pattern(r"[*?\[\]{}]|^ | $")
"""What a glob reads as more than itself; a space at either end would be lost in a form."""
# The code points that Unicode lets programs pass over and does not count as format characters. A directory of ext4
# that ignores case ignores them too: `.e\ufe0fnv` opens `.env` there.
_PASSED_OVER = late_pattern(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)


@dataclass(frozen=True, slots=True)
class Glob:
    """A compiled glob over a name or a text."""

    text: str
    exact: re.Pattern[str]
    loose: re.Pattern[str]

    def matches(self, text: str) -> bool:
        return self.exact.fullmatch(text) is not None

    def catches(self, text: str) -> bool:
        return self.matches(text) or self.loose.fullmatch(fold(text)) is not None


class PathView(NamedTuple):
    """A path as globs look at it: every segment followed by a slash, as spelled and folded."""

    mount: str
    exact: str
    loose: str


@lru_cache(maxsize=8192)
def view(path: MountPath) -> PathView:
    relative = path.relative
    if relative == ".":
        return PathView(path.mount, "", "")
    return PathView(
        path.mount, f"{relative}/", "".join(f"{fold(name) or name}/" for name in relative.split("/"))
    )


@dataclass(frozen=True, slots=True)
class PathGlob:
    """A compiled glob over the paths of one mount."""

    text: str
    mount: str
    exact: re.Pattern[str]
    loose: re.Pattern[str]

    def matches(self, path: MountPath) -> bool:
        mount, exact, _ = view(path)
        return self.mount in (mount, ANY_MOUNT) and self.exact.fullmatch(exact) is not None

    def catches(self, path: MountPath) -> bool:
        mount, exact, loose = view(path)
        if self.mount != mount and self.mount != ANY_MOUNT:
            return False
        if self.exact.fullmatch(exact) is not None:
            return True
        if exact == loose and self.exact is self.loose:  # nothing to fold on either side
            return False
        return self.loose.fullmatch(loose) is not None


class Net:
    """Several path globs as one, for rules that deny or ask: a path is held against all of them at once."""

    def __init__(self, texts: Iterable[str]) -> None:
        globs = tuple(map(path_glob, texts))
        anywhere = [glob for glob in globs if glob.mount == ANY_MOUNT]
        self._anywhere = _joined(anywhere) if anywhere else None
        self._of = {
            mount: _joined([*anywhere, *(glob for glob in globs if glob.mount == mount)])
            for mount in {glob.mount for glob in globs} - {ANY_MOUNT}
        }

    def catches(self, path: MountPath) -> bool:
        """Whether any of them does."""
        mount, exact, loose = view(path)
        patterns = self._of.get(mount, self._anywhere)
        if patterns is None:
            return False
        spelled, folded = patterns
        if spelled.fullmatch(exact) is not None:
            return True
        if exact == loose and spelled is folded:  # nothing to fold on either side
            return False
        return folded.fullmatch(loose) is not None


def _joined(globs: Sequence[PathGlob]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    exact = alternatives(glob.exact.pattern for glob in globs)
    loose = alternatives(glob.loose.pattern for glob in globs)
    return exact, exact if exact.pattern == loose.pattern else loose


def path_glob(text: str, mount: str = "project") -> PathGlob:
    """Compile a path glob; without a `mount:` prefix it means `mount`."""
    check_text(text)
    prefix, colon, rest = text.partition(":")
    if colon and prefix != ANY_MOUNT and not MOUNT.fullmatch(prefix):
        raise ConfigError(
            f"the glob {text!r} does not begin with a mount's name", "write `src/**` or `garden:users/**`"
        )
    rest, mount = (rest, prefix) if colon else (text, mount)
    plain = [_checked_segments(one, text) for one in expand(rest)]
    exact, loose = (alternatives(path_regex(one, folding) for one in plain) for folding in (False, True))
    return PathGlob(text, mount, exact, exact if exact.pattern == loose.pattern else loose)


def escaped(path: MountPath) -> str:
    """The glob that matches this path and no other, whatever is in its names."""
    spelled = _MEANS.sub(lambda found: f"[{found[0]}]", path.relative)
    return spelled if path.mount == "project" else f"{path.mount}:{spelled}"


def text_glob(text: str) -> Glob:
    """Compile a glob over a whole text, such as an argument or a persona's name."""
    check_text(text)
    plain = [tokens(one, text) for one in expand(text)]
    return Glob(text, *(alternatives(run_regex(one, ".", loose) for one in plain) for loose in (False, True)))


@lru_cache(maxsize=1024)
def tool_glob(text: str) -> Glob:
    """Compile a glob over tool names; `code/*` is accepted for `code.*`. One that can match no tool is refused."""
    dotted = text.replace("/", ".")
    check_text(dotted)
    if not _TOOL_CHARS.fullmatch(dotted):
        raise ConfigError(f"the tool glob {text!r} has characters no tool name has", "write it like `fs.*`")
    for one in expand(dotted):
        _check_tool(one, text)
    return text_glob(dotted)


def any_matches(globs: Iterable[Glob], text: str) -> bool:
    return any(glob.matches(text) for glob in globs)


def fold(text: str) -> str:
    """As rules compare it: normalised, case-folded, without invisible characters."""
    if text.isascii():
        return folded(text)
    seen = _PASSED_OVER.sub("", text)
    return folded("".join(char for char in seen if unicodedata.category(char) != "Cf"))


def _check_tool(one: str, text: str) -> None:
    wild = any(char in _WILD for char in one)
    if not wild and not _TOOL_NAME.fullmatch(one):
        fix = (
            f"write `{one}.*`"
            if re.fullmatch(r"[a-z][a-z0-9_-]*", one) and "__" not in one
            else "write `family.verb`"
        )
        raise ConfigError(f"the tool glob {text!r} can match no tool", fix)
    family = re.split(r"[.*?\[]", one)[0]
    broken = one.startswith((".", "-", "_")) or one.endswith(".") or ".." in one
    if broken or family != family.lower() or family[:1].isdigit():
        raise ConfigError(
            f"the tool glob {text!r} can match no tool", "families are lower case: write it like `fs.*`"
        )


def _checked_segments(one: str, text: str) -> list[list[Token]]:
    if one.startswith("/"):
        raise ConfigError(
            f"the glob {text!r} is absolute and matches nothing", "write it relative to its mount"
        )
    segments = (one[:-1] + "/**" if one.endswith("/") and not one.endswith("//") else one).split("/")
    for segment in segments:
        if segment == "":
            raise ConfigError(f"the glob {text!r} has an empty segment", "write one `/` between segments")
        if segment in (".", ".."):
            raise ConfigError(f"the glob {text!r} has `{segment}` and matches nothing", "leave it out")
        if ":" in segment:
            raise ConfigError(
                f"the glob {text!r} has a colon inside a path", "only the mount is followed by one"
            )
        if "**" in segment and segment != "**":
            raise ConfigError(f"the glob {text!r} mixes `**` with other characters", "write `**/*x` or `*x`")
    return [["**"] if segment == "**" else tokens(segment, text) for segment in segments]
