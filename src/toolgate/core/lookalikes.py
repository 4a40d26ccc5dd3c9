"""Look-alike characters: letters that pass for others, words of mixed scripts, combining marks, signs that pass for `/` or `.`.

For whoever decides about a path, a host or a program: each such character is marked with its code point, and a note says
in plain words what it is. Nothing is refused for it: most of the world writes in other letters than these.

What may be mixed in one word follows the "highly restrictive" level of Unicode's UTS 39: Latin with Chinese, Japanese and
Korean. A word wholly of another script is marked only if each of its letters passes for an ASCII one and the words that stand
with it hold no letter of that script that does not: so `сору` is marked in code, whatever its comment says, and not in a Russian
sentence.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

from toolgate.core.display import visible
from toolgate.core.late_pattern import late_pattern
from toolgate.core.named_tuples import NamedTuple

MOST_NOTES = 20
"""Notes of one text that are given one by one; the rest are counted."""
_COMBINING = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_MARK = late_pattern(f"[{_COMBINING}]")
_WORD = late_pattern(rf"[\w{_COMBINING}]+|[^\w\s]")
_SIGNS = frozenset(
    "\u01c0\u01c3\u037e\u0589\u05c3\u0701\u1806\u2024\u2044\u2215\u2236\u2223\u29f8\u29f5\ufe52\ufe55\ufe68\ua789\ua4fd\ufe68\uff0f\uff3c\uff0e\u2571\u2572\u02d7\u2219\ua4f8"
)
"""Signs that pass for those of which paths, hosts and programs are made: / \\ . : ; | ! -"""
_STROKES = late_pattern("(?<=[A-Za-z0-9])[\u30ce\u4e36\u4e3f\u4e00\u30fc\u4e28\u3033\u3007](?=[A-Za-z0-9])")
"""Letters of Chinese and Japanese that pass for a sign between ASCII letters: `example.com\u30cepath`."""
_PAUSES = frozenset(",\u2014\u2013-")
_TOGETHER = (
    frozenset({"LATIN", "HAN", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "HAN", "BOPOMOFO"}),
    frozenset({"LATIN", "HAN", "HANGUL"}),
)
_NAMED = {
    "CJK": "HAN",
    "KANGXI": "HAN",
    "IDEOGRAPHIC": "HAN",
    "KATAKANA-HIRAGANA": "KATAKANA",
    "HALFWIDTH": "KATAKANA",
}
_PASSES = frozenset(
    # Cyrillic
    "аеорсухѕіјһԁԛԝӏүьАВЕЗІЈКМНОРСЅТУХҮЬԌԚԜӀ"
    # Greek
    "αγεηικνορστυχωϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϺ"
    # Armenian
    "աօոսհզցյքլգՍՏՕԼՈ"
    # Cherokee, Lisu, Coptic
    "ᎠᎡᎢᎥᎩᎪᎫᎬᎳᎷᎻᎽᏀᏂᏃᏎᏒᏔᏚᏞᏟᏢᏦᏧᏴᏽ"
    "ꓐꓑꓒꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ"
    "ⲟⲣⲥⲭⲩⲕⲓⲁⲞⲢⲤⲬⲨⲔⲒⲀⲎⲘⲚⲦⲈⲂ"
)  # fmt: skip
"""Letters of other scripts that pass for ASCII ones."""
_LATIN_PASSES = frozenset("ıȷɑɡɩɪɴʀʏʙʜʟʋᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢſƽǀǃʼˈꞌɢꜰꜱꞯʛɾɼƅĸʂǁːˑʹʺˊˋꞇ")
"""Letters of the Latin script and its modifiers that pass for ASCII ones."""


class Suspect(NamedTuple):
    """One character that may be taken for another, and why it is marked."""

    at: int
    char: str
    word: str
    why: str


def marked(text: str) -> str:
    """Each suspect followed by its code point: `о⟨U+043E⟩s`."""
    found = {suspect.at: suspect.char for suspect in suspects(text)}
    if not found:
        return text
    return "".join(f"{char}⟨U+{ord(char):04X}⟩" if at in found else char for at, char in enumerate(text))


def taken_for(text: str, other: str) -> bool:
    """Whether somebody may read the one as the other: they are the same but for letters that pass for others."""
    if text == other or text.isascii() or len(text) != len(other):
        return text == other
    odd = positions(text)
    return all(at in odd or one == wanted for at, (one, wanted) in enumerate(zip(text, other, strict=True)))


def decidable(text: str, *, keep_lines: bool = False) -> str:
    """For a human who decides: what is invisible as `⟨U+XXXX⟩`, and what passes for something else marked."""
    return visible(marked(text), keep_lines=keep_lines)


def positions(text: str) -> frozenset[int]:
    return frozenset() if text.isascii() else frozenset(suspect.at for suspect in suspects(text))


def notes(texts: Iterable[str]) -> list[str]:
    """One plain sentence for each word that has suspects, wherever it stands first; the last one counts the rest."""
    told: dict[str, str] = {}
    more = 0
    for text in texts:
        for word, why, chars in _by_word(text):
            if word in told:
                continue
            if len(told) >= MOST_NOTES:
                more += 1
                continue
            named = ", ".join(
                f"U+{ord(char):04X} {unicodedata.name(char, 'without a name')}" for char in chars
            )
            told[word] = f"“{marked(word)}” {why}: {named}"
    return [*told.values(), *([f"and {more:,} more such words"] if more else [])]


def suspects(text: str) -> Iterator[Suspect]:
    if text.isascii():
        return
    start = 0
    for line in text.split("\n"):
        if not line.isascii():
            yield from _in_line(line, start)
        start += len(line) + 1


def _by_word(text: str) -> Iterator[tuple[str, str, list[str]]]:
    word, why, chars = "", "", dict[str, None]()
    for suspect in suspects(text):
        if suspect.word != word and word:
            yield word, why, list(chars)
            chars = {}
        word, why = suspect.word, suspect.why
        chars[suspect.char] = None
    if word:
        yield word, why, list(chars)


def _in_line(line: str, start: int) -> Iterator[Suspect]:
    plain = _plain_scripts("")
    ends = -1
    words = list(_WORD.finditer(line))
    for index, match in enumerate(words):
        word = match[0]
        if word.isascii():
            continue
        if index > ends:
            ends, plain = _phrase(words, index)
        why, chars = _verdict(word, plain)
        if not why and _is_wide_sign(word) and _between_ascii(line, match.start()):
            why, chars = "is a sign that passes for another", frozenset(word)
        if why:
            for at, char in enumerate(word):
                if char in chars:
                    yield Suspect(start + match.start() + at, char, word[:80], why)


def _phrase(words: list[re.Match[str]], start: int) -> tuple[int, frozenset[str]]:
    """Where the words end that stand together from here on, and in which scripts they are written. A bracket, a quote or an
    ASCII word ends them: a comment makes no sentence of the code before it."""
    end = start
    while end + 1 < len(words) and (not words[end + 1][0].isascii() or words[end + 1][0] in _PAUSES):
        end += 1
    return end, _plain_scripts("".join(match[0] for match in words[start : end + 1]))


def _is_wide_sign(word: str) -> bool:
    folded = unicodedata.normalize("NFKC", word) if len(word) == 1 else ""
    return folded != word and len(folded) == 1 and folded.isascii() and not folded.isalnum()


def _between_ascii(line: str, at: int) -> bool:
    """As in `user＠host`; in Chinese and Japanese sentences wide signs stand between letters of theirs."""
    around = line[at - 1 : at] + line[at + 1 : at + 2]
    return len(around) == 2 and around.isascii() and around.isalnum()


def _plain_scripts(line: str) -> frozenset[str]:
    """Scripts of which a text holds letters that pass for nothing else: it is written in them."""
    chars = set(line)
    return frozenset(
        _script(char) for char in chars if char > "\x7f" and char.isalpha() and char not in _PASSES
    )


@lru_cache(maxsize=4096)
def _verdict(word: str, plain: frozenset[str]) -> tuple[str, frozenset[str]]:
    """What is odd about a word, and which of its characters are; nothing if nothing is."""
    chars = frozenset(char for char in word if char > "\x7f")
    if len(word) == 1 and not word.isalnum():
        return ("is a sign that passes for another", chars) if word in _SIGNS else ("", frozenset())
    if _MARK.search(word):
        return "has combining marks, which change the letter before them", frozenset(
            filter(_MARK.match, chars)
        )
    if odd := frozenset(char for char in chars if char in _LATIN_PASSES or _is_another_form(char)):
        return "has letters that pass for others", odd
    if strokes := frozenset(_STROKES.findall(word)):
        return "has letters that pass for others", strokes
    scripts = {_script(char) for char in word if char.isalpha()}
    if len(scripts) > 1 and not any(scripts <= group for group in _TOGETHER):
        listed = " and ".join(sorted(name.capitalize() for name in scripts))
        return f"mixes {listed} letters", frozenset(
            char for char in chars if char.isalpha() and _script(char) != "LATIN"
        )
    digits = {unicodedata.name(char, "").rpartition(" DIGIT ")[0] for char in word if char.isdigit()}
    if len(digits) > 1:
        return "mixes digits of several scripts", frozenset(char for char in chars if char.isdigit())
    letters = {char for char in word if char.isalpha()}
    if letters and letters <= _PASSES and scripts.isdisjoint(plain):
        return "passes for a word in ASCII letters", chars
    return "", frozenset()


def _is_another_form(char: str) -> bool:
    """A wide, mathematical, circled or other form of something in ASCII."""
    folded = unicodedata.normalize("NFKC", char)
    return folded != char and folded.isascii() and folded.isalnum() and not _is_script_digit(char)


def _is_script_digit(char: str) -> bool:
    return unicodedata.category(char) == "No" and char in "¹²³⁴⁵⁶⁷⁸⁹⁰₀₁₂₃₄₅₆₇₈₉½¼¾"


@lru_cache(maxsize=4096)
def _script(char: str) -> str:
    name = unicodedata.name(char, "UNNAMED")
    first = name.split(" ", 1)[0]
    if first in (
        "FULLWIDTH",
        "MATHEMATICAL",
        "MODIFIER",
        "SMALL",
        "DOUBLE-STRUCK",
        "SCRIPT",
        "FEMININE",
        "MASCULINE",
        "MICRO",
    ):
        return "LATIN"
    return _NAMED.get(first, first)
