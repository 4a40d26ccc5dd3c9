"""A polluted memory and its cleaning, with figures: `PYTHONPATH=tests python -m memory.pollution 10000 [granite]`.

Of ten items nine are what agents leave behind, and they speak of the same people and things as the facts: status lines,
errors, output of programs, questions, notes on what an agent was doing. One invention is there hundreds of times, most of
them word by word, and competes with a fact. A fifth of the facts were replaced by others. A third of the junk is of kinds
that no rule of the audit knows.

`python -m memory.pollution write 10000 FILE` writes it as lines that `toolgate memory import` reads.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import toolgate
from toolgate.core.names import HUMAN
from toolgate.facade import Gate
from toolgate.features.memory.audit import AuditReport, audit
from toolgate.features.memory.reader import RecallQuery
from toolgate.features.memory.store import ItemFilter
from toolgate.features.memory.transfer import FORMAT, batches

from .world import POLICY, recalled

KINDS = ("junk", "duplicate", "near-duplicate", "echo")


def _list(words: str) -> list[str]:
    return words.split()


NAMES = _list("""Nora Tom Ines Omar Julia Stefan Priya Lars Mina Paul Greta Hugo Aylin Marek Sofia Dario Elif Jonas Carla
Piet Wanda Ravi Lena Milan Ruth Oskar Tessa Yusuf Anja Felix Marta Bruno Dina Emil Hana Ivan Karin Leo Maja Nils Olga Pia
Quirin Rosa Samir Tilda Ute Viktor Wim Xenia Yara Zoe Abel Berta Cem Doris Edda Falk Gita Heiko Ida Jana Kofi Linus Malik
Nadja Otto Petra Rolf Selma Theo Ulla Vera Walter Yvonne Zeno Alma Boris Clara Damir""")
_TOWNS = _list(
    "Lisbon Bremen Graz Lyon Turin Malmo Ghent Porto Leeds Basel Cadiz Split Tartu Brno Delft Siena"
)
_FIRMS = _list(
    "Acme Beta-Shipyards Corvid-Press Delta-Foods Elm-School Fjord-Energy Gamma-Labs Harbour-Bank Ivy-Clinic"
)
_KINDS_OF_FACT = (
    # what is so, what took its place, two ways to ask for it later, and how the talk about it went at the time
    ("{n} works at {firm} as a {job}", "{n} works at {firm2} since {month}", "where does {n} work", "who employs {n} now", "the employer of {n}"),
    ("{n} lives in {town}", "{n} has moved to {town2}", "which city has {n} moved to", "where is {n}'s home", "the home town of {n}"),
    ("{n}'s birthday is on {day} {month}", "", "when is the birthday of {n}", "when was {n} born", "how old {n} is"),
    ("{n} does not eat {food}", "", "what does {n} not eat", "what should we not cook for {n}", "the diet of {n}"),
    ("{n} drives a {colour} {car}", "", "what does {n} drive", "what kind of vehicle has {n}", "the car that {n} has"),
    ("The weekly call with {n} is on {weekday} at {hour}", "", "when is the weekly call with {n}", "when do we talk to {n}", "the next meeting with {n}"),
    ("{n} leads the {project} project", "", "who leads the project {project}", "who is responsible for {project}", "the state of the {project} project"),
    ("{n}'s {animal} is called {pet}", "", "what is the {animal} of {n} called", "the name of {n}'s {animal}", "pets that {n} has"),
    ("{n} plays the {instrument} in a band", "", "what does {n} play in the band", "which instrument has {n} learned", "the hobbies of {n}"),
    ("{n} prefers {drink} to {drink2} in the morning", "", "what does {n} prefer in the morning", "what to serve {n} for breakfast", "breakfast with {n}"),
)  # fmt: skip
_WORDS = {
    "firm": _FIRMS, "firm2": _FIRMS, "town": _TOWNS, "town2": _TOWNS, "job": _list("welder nurse editor cook clerk pilot"),
    "month": _list("January March May July September November"), "day": [str(day) for day in range(1, 29)],
    "food": _list("nuts fish gluten pork onions eggs"), "colour": _list("red blue green white grey"),
    "car": _list("Volvo Fiat Skoda Honda Opel"), "weekday": _list("Monday Tuesday Wednesday Thursday Friday"),
    "hour": [f"{hour}:30" for hour in range(8, 18)], "animal": _list("cat dog parrot tortoise"),
    "pet": _list("Momo Rex Kiki Bilbo Luna Fips"), "instrument": _list("cello drums flute organ banjo"),
    "drink": _list("tea coffee cocoa"), "drink2": _list("juice water milk"),
}  # fmt: skip
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
INVENTED = "{n} is vice president of Globex and works from the Globex tower in Dubai"
_WORDINGS = (
    "{0}",
    "{0}.",
    "{0}!",
    "As noted, {0}",
    "{0}, I believe",
    "Remember: {0}",
    "I recall that {0}",
    "Note that {0}",
)


class Fact(NamedTuple):
    now: str
    before: str
    question: str
    talk: str
    """What it is about, in other words than it is asked for later."""


class Figures(NamedTuple):
    items: int
    first: float
    """How often the right fact came first."""
    among_five: float
    ndcg: float
    """Of the right fact, among ten."""
    bad: float
    """In how many of the answers junk, the invention or a replaced fact was among the first five."""
    noise: float
    """What part of the first five it was."""
    invented: float
    """Of questions about its subject, in how many the invention was among the first five."""
    listed: float
    """What part of the newest twenty, which an agent sees that looks into its memory, it was."""


def facts(count: int) -> list[Fact]:
    """So many, of the same chances every time. Projects are unique, as who leads them is asked for."""
    chance, made = random.Random("facts"), list[Fact]()
    for number in range(count):
        name, (first, second, direct, other_way, talk) = NAMES[number // len(_KINDS_OF_FACT) % len(NAMES)], _KINDS_OF_FACT[number % len(_KINDS_OF_FACT)]  # fmt: skip
        words = {key: chance.choice(values) for key, values in _WORDS.items()}
        while words["firm2"] == words["firm"] or words["town2"] == words["town"]:
            words |= {key: chance.choice(_WORDS[key]) for key in ("firm2", "town2")}
        words |= {"n": name, "project": f"{chance.choice(_TOWNS)}-{number}"}
        one, other = first.format(**words), second.format(**words)
        asked = direct if (number // len(_KINDS_OF_FACT) + number) % 2 else other_way
        made.append(Fact(other or one, one if other else "", asked.format(**words), talk.format(**words)))
    return made


def _junk(number: int, fact: Fact, chance: random.Random) -> str:
    """Of what the facts speak of, too: junk is not about nothing."""
    name, said, talk = chance.choice(NAMES), fact.now, fact.talk
    made = (
        f"heartbeat {number}: no new messages about {name}", f"polling the calendar of {name}, still waiting ({number})",
        f"As an AI language model I have no opinion on {talk}.", f"Sure, here is what I found on {talk}: nothing ({number})",
        f'{{"person": "{name}", "query": "{talk}", "request": {number}}}', f"Error: no contact {name} in book {number}",
        f"Traceback (most recent call last) in lookup of {name}, run {number}", chance.choice(("ok", "thanks!", "done.", "yes")),
        f"Could you tell me more about {talk}?", f"User asked about {talk}; answered in run {number}",
        f"Searched the notes for {talk}, {number % 7} results, opened the first",  # from here on no rule knows it
        f"Planned step {number}: confirm with {name} that {said[:1].lower()}{said[1:]}",
        f"Session {number} with {name} on {talk} was archived",
        f"Draft {number} of an answer on {talk} was discarded",
        f"Tool call {number} used the words {' '.join(sorted(said.split())[:4])}",
    )  # fmt: skip
    return made[number % len(made)]


class Polluted(NamedTuple):
    lines: list[str]
    facts: list[Fact]
    bad: frozenset[str]
    invented: str
    """The invention, and what is true instead is the first fact."""


def polluted(size: int) -> Polluted:
    """`size` items: a tenth are facts, a share of .06 is the invention, the rest is junk, all mixed."""
    chance = random.Random("junk")
    replaced = size // 50
    true = facts(size // 10 - replaced)
    made: list[dict[str, Any]] = []
    for number, fact in enumerate(true):
        if fact.before:
            made.append({"id": f"m_old{number}", "content": fact.before})
            made.append({"id": f"m_new{number}", "content": fact.now, "supersedes": [f"m_old{number}"]})
        else:
            made.append({"id": f"m_new{number}", "content": fact.now})
    invented = INVENTED.format(n=NAMES[0])
    loops = size * 6 // 100
    wordings = [
        invented if at % 3 else _WORDINGS[at // 3 % len(_WORDINGS)].format(invented) for at in range(loops)
    ]
    made += [{"content": text, "conversation": f"loop {at}"} for at, text in enumerate(wordings)]
    junk = [_junk(at, chance.choice(true), chance) for at in range(size - len(made))]
    made += [{"content": text, "conversation": f"chat {at}"} for at, text in enumerate(junk)]
    chance.shuffle(made)
    for minute, one in enumerate(made):
        one["at"] = (_BEGIN + timedelta(minutes=minute)).isoformat()
    bad = frozenset((*wordings, *junk, *(fact.before for fact in true if fact.before)))
    lines = [json.dumps({"format": FORMAT, "trust": "medium", **one}) for one in made]
    return Polluted(lines, true, bad - {fact.now for fact in true}, invented)


async def fill(gate: Gate, made: Polluted) -> None:
    for part in batches(iter(made.lines), 1000, 2 << 20):
        done = await gate.call("memory.import", {"lines": part, "user": "alice"}, persona=HUMAN)
        assert done.ok, done.error


async def figures(gate: Gate, made: Polluted, most: int = 800) -> Figures:
    asked = made.facts[:most]
    firsts = fives = dirty = noise = shown = inventions = about = 0
    gain, memory = 0.0, gate.feature("memory")
    for number, fact in enumerate(asked):
        wanted = RecallQuery(query=fact.question, limit=10, neighbours=False)
        found = [one.item.content for one in (await memory.recall(wanted, "user:alice")).found]
        place = found.index(fact.now) if fact.now in found else None
        firsts += place == 0
        fives += place is not None and place < 5
        gain += 0.0 if place is None else 1 / math.log2(place + 2)
        wrong = [text for text in found[:5] if text in made.bad]
        dirty, noise, shown = dirty + bool(wrong), noise + len(wrong), shown + len(found[:5])
        if number < len(_KINDS_OF_FACT):  # they are about the one on whom something was invented
            about += 1
            inventions += any("Globex" in text for text in wrong)
    items = await (await memory.records()).count(ItemFilter(scope="user:alice"))
    newest = (await gate.call("memory.list", {"limit": 20}, persona="ada")).data["memories"]
    listed = sum(one["content"] in made.bad for one in newest) / max(len(newest), 1)
    parts = (
        firsts / len(asked),
        fives / len(asked),
        gain / len(asked),
        dirty / len(asked),
        noise / max(shown, 1),
    )
    return Figures(items, *(round(one, 3) for one in (*parts, inventions / about, listed)))


async def clean(gate: Gate) -> tuple[AuditReport, list[int]]:
    """As `toolgate memory audit --apply …` does: calls through the gate, a thousand items each."""
    report = await audit(gate.feature("memory"), "user:alice")
    versions = report.to_forget(KINDS)
    ids, events = list(versions), list[int]()
    for start in range(0, len(ids), 1000):
        some = ids[start : start + 1000]
        args = {"memory_ids": some, "expected_versions": [versions[one] for one in some]}
        done = await gate.call("memory.forget", args, persona=HUMAN, reason="audit")
        assert done.ok, done.error
        events.append(done.meta.event_id or 0)
    return report, events


async def unmask(gate: Gate) -> int:
    """What a human does whom the audit told to check what was there so often: it is not true, and goes."""
    ids = [
        one["id"]
        for one in await recalled(gate, "Globex tower in Dubai", limit=20)
        if "Globex" in one["content"]
    ]
    done = await gate.call("memory.forget", {"memory_ids": ids}, persona=HUMAN, reason="never true")
    assert done.ok, done.error
    return done.meta.event_id or 0


def judged(report: AuditReport, made: Polluted) -> Iterator[str]:
    """Of what the audit would forget, what is junk and what is a fact."""
    gone = set(report.to_forget(KINDS))
    true = {f"m_new{number}" for number in range(len(made.facts))}
    bad = len(made.lines) - len(made.facts) - sum(bool(fact.before) for fact in made.facts)
    yield f"{len(gone - true):,} of {bad:,} that are junk or invented, {len(gone & true)} of {len(true):,} facts"


async def main(size: int, model: str) -> None:
    made = polluted(size)
    policy = POLICY | {"memory": {"embeddings": model}}
    with tempfile.TemporaryDirectory() as root:
        async with toolgate.open(Path(root), policy) as gate:
            began = time.process_time()
            await fill(gate, made)
            print(f"filled with {size:,}, by {model}: {time.process_time() - began:.1f} s of processor time")
            print("before ", await figures(gate, made))
            began = time.process_time()
            report, events = await clean(gate)
            print(
                f"audit and {len(events)} calls: {time.process_time() - began:.1f} s; {report.counts()}; proposed",
                *judged(report, made),
            )
            print("audited", await figures(gate, made))
            events.append(await unmask(gate))
            print("checked", await figures(gate, made))
            for event in reversed(events):
                assert (await gate.undo(event)).ok
            print("undone ", await figures(gate, made))


if __name__ == "__main__":
    if sys.argv[1] == "write":
        Path(sys.argv[3]).write_text("\n".join(polluted(int(sys.argv[2])).lines) + "\n", encoding="utf-8")
    else:
        asyncio.run(main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "none"))
