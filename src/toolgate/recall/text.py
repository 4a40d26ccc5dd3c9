"""Text analysis for search: terms, stop words, passages and speakers. It stores nothing.

Terms are what the lexical index is made of: words of any script in lower case, without accents, identifiers also by
their parts, scripts without spaces by pairs of characters. Stemming is the database's.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

PASSAGE_WORDS = 200
"""Long texts are searched by passages of about so many words; the best passage counts."""
HEADING_WORDS = 15
_SAYING_LITTLE = """a about after again all also am an and any are aren't as at be because been before being but by can could
    couldn't did didn't do does doesn't doing don't done down each ever few for from further get gets getting go goes
    going gonna got had hadn't has hasn't have haven't having he he's her here hers herself hi hey hello him himself his
    how i i'd i'll i'm i've if in into is isn't it it's its itself just kind let let's like lot lots many may me might more
    most much must my myself no nor not now of off oh ok okay on once only or other our ours out over own really s same she
    she's should so some something such sure t than thanks that that's the their theirs them themselves then there there's
    these they they're this those through to too under until up us very was wasn't we we're well were what what's when
    where which while who whom whose why will with won't would wow yeah yes yet you you're your yours yourself tell know
    please mention mentioned said say says"""
STOP_WORDS = frozenset(_SAYING_LITTLE.split())
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_SPEAKER = re.compile(
    r"\s*(?:(?:\[[^\]\n]{1,40}\]|\([^)\n]{1,40}\)|\d{1,4}[-/.]\d\d?[-/.]\d{1,4}(?:[ T]\d\d?:\d\d[\d:.Z]*)?)[,:]?[ -]*)?"
    r"([^\W\d_][\w.'’-]{0,30}(?: [A-Z][\w.'’-]{0,30}){0,2}):\s+"
)
_OPENING = """answer attention caution decision error example fact fix fyi goal hint important info issue link name note
    notes plan preference problem question reason reminder result rule source status subject summary task tip title todo
    topic update url warning"""
_LABELS = frozenset(_OPENING.split())
"""What texts begin with that nobody speaks."""
ASKING, ANSWERING = frozenset({"user", "human", "me"}), frozenset({"assistant", "ai", "bot"})
"""Who says `I` and who is meant by `you` where somebody asks an assistant. Inside a text these are plain words."""
_TALKING = re.compile(r"[!?]|\b(?:i|me|my|mine|we|us|our|you|your|yours|hey|hi|thanks)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?…。！？])\s+|\n+")


def clean(text: str) -> str:
    """What every database can store: no NUL, no halves of characters."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def terms(text: str) -> list[str]:
    """In their order, with repetitions."""
    if not text.isascii():
        text = _without_accents(text)
    found: list[str] = []
    for match in _WORD.finditer(text):
        word = match.group()
        if not word.isascii() and _UNSPACED.search(word):
            found += _pairs(word)
            continue
        plain = word.replace("’", "'")
        if plain.endswith(("'s", "'S")):
            plain = plain[:-2]
        lower = plain.replace("'", "").lower()
        found.append(lower)
        if not (plain.islower() or plain.isdigit() or plain.istitle()):
            parts = [part.lower() for part in _PARTS.findall(plain)]
            found += parts if len(parts) > 1 else []
    return found


def _without_accents(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(c for c in apart if not "\u0300" <= c <= "\u036f"))


def _pairs(word: str) -> Iterable[str]:
    for run in re.split(rf"({_UNSPACED.pattern})", word):
        if _UNSPACED.fullmatch(run):
            yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))
        elif run:
            yield run.lower()


def telling(words: Iterable[str]) -> list[str]:
    """Those that say what is meant, each once; all of them, if there are no others."""
    every = list(dict.fromkeys(words))
    return [word for word in every if word not in _STOPPED] or every


_STOPPED = STOP_WORDS | {word.replace("'", "") for word in STOP_WORDS}


def passages(text: str, words: int = PASSAGE_WORDS) -> list[str]:
    """The text in pieces of about so many words, cut between sentences where there are any. A heading in the first
    line stands over each of them; the first turn of a conversation is none."""
    if len(text) < words * 4 or len(text.split()) <= words * 1.25:
        return [text]
    found: list[str] = []
    pending: list[str] = []
    count = 0
    for sentence in _sentences(text, words):
        length = len(sentence.split())
        if pending and count + length > words:
            found.append(" ".join(pending))
            pending, count = [], 0
        pending.append(sentence)
        count += length
    if pending:
        found.append(" ".join(pending))
    heading, _, rest = text.strip().partition("\n")
    if rest and len(heading.split()) <= HEADING_WORDS and not is_turn(heading):
        found[1:] = [f"{heading}\n{piece}" for piece in found[1:]]
    return found


def _sentences(text: str, words: int) -> Iterable[str]:
    for sentence in _SENTENCE.split(text):
        pieces = sentence.split()
        if not pieces:
            continue
        if len(pieces) <= words and len(sentence) <= words * 12:
            yield sentence.strip()
            continue
        for at in range(0, len(pieces), words):  # no sentence is that long: a log, or a script without spaces
            run = " ".join(pieces[at : at + words])
            yield from (run[cut : cut + words * 12] for cut in range(0, len(run), words * 12))


def _opening(text: str) -> re.Match[str] | None:
    found = _SPEAKER.match(text)
    return found if found and found.group(1).lower() not in _LABELS else None


def speaker(text: str) -> str:
    """Who says it, where a text begins with `Name: `, or with a date before that."""
    found = _opening(text)
    return found.group(1) if found else ""


def is_turn(text: str) -> bool:
    """Whether somebody talks here to somebody: `Coffee: black` is a title and a fact, `Mina: I like it black` is not."""
    found = _opening(text)
    return found is not None and _TALKING.search(text, found.end()) is not None


def without_names(text: str, names: Iterable[str]) -> str:
    """For embeddings only: names of speakers swamp a small model."""
    found = _opening(text)
    if found:
        text = text[found.end() :]
    known = [re.escape(name) for name in names if name.lower() not in ASKING | ANSWERING]
    if known:
        text = re.sub(rf"[,\s]*\b(?:{'|'.join(known)})\b(?:['’]s)?", "", text, flags=re.IGNORECASE)
    return text.strip()
