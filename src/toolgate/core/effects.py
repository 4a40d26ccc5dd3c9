"""What a tool reads and writes, in a closed set of words.

Policy, annotations and the questions put to humans all speak in these words, so a new one is a design decision,
not a string somebody made up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from toolgate.core.errors import SetupError
from toolgate.core.records import dataclass, field

ReadWord = Literal[
    "project", "garden", "scratch", "ledger", "tools", "system", "memory", "search", "internet", "database", "model",
    "secrets", "outside",
]  # fmt: skip
WriteWord = Literal[
    "project", "garden", "scratch", "ledger", "memory", "internet", "database", "model", "process", "branch", "history",
    "outside",
]  # fmt: skip
"""The words as types, so that editors complete them; `READS` and `WRITES` say what they mean."""
READS: dict[str, str] = {
    "project": "files of the project",
    "garden": "the Markdown memory",
    "scratch": "scratch files",
    "ledger": "recorded events",
    "tools": "the list of tools",
    "system": "this machine's state",
    "memory": "remembered facts",
    "search": "a web search engine",
    "internet": "hosts on the internet",
    "database": "a database",
    "model": "a language model",
    "secrets": "secrets, by name",
    "outside": "something outside toolgate's knowledge",
}
WRITES: dict[str, str] = {
    "project": "files of the project",
    "garden": "the Markdown memory",
    "scratch": "scratch files",
    "ledger": "annotations in the ledger",
    "memory": "remembered facts",
    "internet": "hosts on the internet",
    "database": "a database",
    "model": "a language model",
    "process": "a program in the sandbox",
    "branch": "branches and test files",
    "history": "commits, pushes and pull requests",
    "outside": "something outside toolgate's knowledge",
}

FILE_WORDS = frozenset({"project", "garden", "scratch"})
"""Words about the files of a mount, by the mount's kind."""
_VERBS = {"process": "runs", "internet": "sends to", "model": "sends to"}


def verb(write: str) -> str:
    """What a call does to what it writes: nobody changes a host or a program."""
    return _VERBS.get(write, "changes")


@dataclass(frozen=True, slots=True)
class Effects:
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    reach: tuple[str, ...] = field(default=(), compare=False)
    """What it reaches in particular, such as `host api.example.com`. Policy goes by the words above; a grant covers no
    call that reaches more than the one it was given for."""
    keeps: tuple[str, ...] = field(default=(), compare=False)
    """The arguments that `reach` says it all of."""
    effectful: bool = field(init=False, compare=False, repr=False)
    """Whether the call changes anything beyond annotations: decides durability and what a time-out means."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "effectful", bool(self.writes) and self.writes != ("ledger",))

    @classmethod
    def of(cls, reads: Sequence[str] = (), writes: Sequence[str] = ()) -> Effects:
        for words, known, side in ((reads, READS, "reads"), (writes, WRITES, "writes")):
            if isinstance(words, str):
                raise SetupError(
                    f"{side}={words!r} is a text, not a list of effects", f"write {side}=[{words!r}]"
                )
            for word in words:
                if word not in known:
                    raise _no_effect(side, word, known)
        return cls(tuple(sorted(set(reads))), tuple(sorted(set(writes))))

    @classmethod
    def recorded(cls, body: Mapping[str, Any]) -> Effects:
        """From what `described` gave."""
        return cls(*(tuple(body.get(side, ())) for side in ("reads", "writes", "reach", "keeps")))

    def described(self) -> dict[str, list[str]]:
        found = {"reads": list(self.reads), "writes": list(self.writes)}
        more = {"reach": list(self.reach), "keeps": list(self.keeps)}
        return found | {name: words for name, words in more.items() if words}

    def cover(self, other: Effects) -> bool:
        """Whether the other has nothing that this has not."""
        sides = ((self.reads, other.reads), (self.writes, other.writes), (self.reach, other.reach))
        return all(set(ours).issuperset(theirs) for ours, theirs in sides)

    def words(self) -> str:
        parts = []
        if self.reads:
            parts.append("reads " + ", ".join(self.reads))
        if self.writes:
            parts.append("writes " + ", ".join(self.writes))
        return "; ".join(parts) or "touches nothing"

    def sentence(self) -> str:
        """The same for people: `reads files of the project; runs a program in the sandbox`."""
        groups: dict[str, list[str]] = {}
        for word in self.reads:
            groups.setdefault("reads", []).append(READS.get(word, word))
        for word in self.writes:
            groups.setdefault(verb(word), []).append(WRITES.get(word, word))
        return "; ".join(f"{does} {', '.join(what)}" for does, what in groups.items()) or "touches nothing"


def _no_effect(side: str, word: str, known: dict[str, str]) -> SetupError:
    """The words are in the message: whoever writes a tool sees a traceback, and no fix beside it."""
    import difflib  # for a mistake only

    near = difflib.get_close_matches(str(word), known, n=1)
    fix = (
        f"did you mean {near[0]!r}?" if near else "use the nearest; `outside` is what toolgate does not know"
    )
    return SetupError(f"{side}={word!r} is not an effect; the words are: {', '.join(sorted(known))}", fix)
