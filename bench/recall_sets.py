"""Labelled sets for recall: conversations over time, made from hand-written exchanges, and sections of technical documents.

Everything is in `tests/recall/data`. Each set has a half for tuning and one for reporting. They share no exchange, and no
document that is asked about; names, small talk and the searched sections are common to both. Weights are chosen on the
first and figures are given for the second.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from toolgate.recall.engine import Item

DATA = Path(__file__).parents[1] / "tests" / "recall" / "data"
PAIRS = [
    ("Caroline", "Melanie"), ("Jon", "Gina"), ("Nadia", "Tomas"), ("Priya", "Owen"), ("Lucia", "Henrik"), ("Amara", "Felix"),
]  # fmt: skip
PARTS = 3
"""How often a pair tells the same kind of story, with other facts: who asks must say which one by its facts."""


class Asked(NamedTuple):
    scope: str
    query: str
    gold: frozenset[str]


class LabelledSet(NamedTuple):
    name: str
    items: list[Item]
    queries: list[Asked]


class _Exchange(NamedTuple):
    name: str
    split: str
    turns: list[tuple[str, str]]
    questions: list[tuple[str, list[int]]]


def conversations(split: str) -> LabelledSet:
    """Six pairs of people, each pair with its own conversations over a year. Everybody is in one scope, as the notes of
    one assistant are: names and facts have to tell them apart."""
    words = dict(_words())
    exchanges = [each for each in _exchanges() if each.split == split]
    chatter = _lines("chatter.txt")
    items: list[Item] = []
    queries: list[Asked] = []
    for number, pair in enumerate(PAIRS):
        dice = random.Random(f"{split} {number}")
        told = [each for each in exchanges if dice.random() < 0.6]
        sessions = [told[at : at + 3] for at in range(0, len(told), 3)]
        at = datetime(2026, 1, 5 + number, 18, tzinfo=UTC)
        for index, session in enumerate(sessions):
            at += timedelta(days=dice.randrange(9, 40), minutes=dice.randrange(600))
            where = f"{pair[0].lower()}-{index}"
            _session(session, pair, where, at, dice, words, chatter, items, queries)
    return LabelledSet(f"conversations, {split}", items, queries)


def _session(
    told: list[_Exchange], pair: tuple[str, str], where: str, at: datetime, dice: random.Random,
    words: dict[str, list[str]], chatter: list[str], items: list[Item], queries: list[Asked],
) -> None:  # fmt: skip
    place = 0

    def say(who: str, text: str) -> str:
        nonlocal place
        place += 1
        made = Item(
            f"{where}:{place}",
            "me",
            f"{who}: {text}",
            "turn",
            (),
            at + timedelta(minutes=place),
            "",
            where,
            place,
        )
        items.append(made)
        return made.id

    def small_talk(least: int) -> None:
        for turn in range(dice.randrange(least, least + 4)):
            who, other = pair if turn % 2 == 0 else (pair[1], pair[0])
            line = (
                dice.choice(chatter)
                .replace("{B2}", dice.choice(["Sam", "Ruth", "Pavel"]))
                .replace("{B}", other)
            )
            say(who, _filled(line, {}, words, dice))

    small_talk(2)
    for exchange in told:
        a, b = pair if dice.random() < 0.5 else (pair[1], pair[0])
        chosen = {"A": a, "B": b}
        ids = [say(chosen[who], _filled(text, chosen, words, dice)) for who, text in exchange.turns]
        for question, gold in exchange.questions:
            queries.append(
                Asked("me", _filled(question, chosen, words, dice), frozenset(ids[g - 1] for g in gold))
            )
        small_talk(1)


def _filled(text: str, chosen: dict[str, str], words: dict[str, list[str]], dice: random.Random) -> str:
    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in chosen:
            chosen[name] = dice.choice(words[name])
        return chosen[name]

    return re.sub(r"\{(\w+)\}", fill, text)


def documents(split: str) -> LabelledSet:
    """All sections; of the questions those about every second document."""
    rows = [json.loads(line) for line in (DATA / "documents.jsonl").read_text(encoding="utf-8").splitlines()]
    items = [Item(row["id"], "docs", row["text"], "section") for row in rows]
    names = sorted({row["id"].partition("#")[0] for row in rows})
    mine = set(names[::2] if split == "tuning" else names[1::2])
    queries = []
    for line in _lines("questions.txt"):
        gold, _, question = line.partition(": ")
        if gold.partition("#")[0] in mine:
            queries.append(Asked("docs", question, frozenset([gold])))
    return LabelledSet(f"documents, {split}", items, queries)


def _lines(name: str) -> list[str]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _words() -> Iterator[tuple[str, list[str]]]:
    for line in _lines("words.txt"):
        name, _, values = line.partition(": ")
        yield name, values.split("; ")


def _exchanges() -> Iterator[_Exchange]:
    for block in (DATA / "exchanges.txt").read_text(encoding="utf-8").split("\n@ ")[1:]:
        head, *lines = block.strip().splitlines()
        name, split = re.fullmatch(r"(\w+) \[(\w+)\]", head).groups()  # type: ignore[union-attr]
        turns, questions = [], []
        for line in lines:
            if line.startswith("? "):
                question, _, gold = line[2:].partition(" -> ")
                questions.append((question, [int(number) for number in gold.split(",")]))
            else:
                turns.append((line[0], line[3:]))
        yield _Exchange(name, split, turns, questions)
