"""What a tool reads and writes, in a closed set of words.

Policy, annotations and the questions put to humans all speak in these words, so a new one is a design decision,
not a string somebody made up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolgate.core.errors import SetupError

READS = {
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
WRITES = {
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

_VERBS = {"process": "runs", "internet": "sends to", "model": "sends to"}


def verb(write: str) -> str:
    """What a call does to what it writes: nobody changes a host or a program."""
    return _VERBS.get(write, "changes")


@dataclass(frozen=True, slots=True)
class Effects:
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    effectful: bool = field(init=False, compare=False, repr=False)
    """Whether the call changes anything beyond annotations: decides durability and what a time-out means."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "effectful", bool(self.writes) and self.writes != ("ledger",))

    @classmethod
    def of(cls, reads: tuple[str, ...] | list[str] = (), writes: tuple[str, ...] | list[str] = ()) -> Effects:
        for words, known, side in ((reads, READS, "reads"), (writes, WRITES, "writes")):
            for word in words:
                if word not in known:
                    raise SetupError(
                        f"{side}={word!r} is not an effect", f"use one of: {', '.join(sorted(known))}"
                    )
        return cls(tuple(sorted(set(reads))), tuple(sorted(set(writes))))

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
