"""Names and aliases: one canonical name per tool, every spelling resolves to it.

`code.read` is canonical. `code/read`, `archon.code.read`, `code_read` and, for imported tools,
`mcp__server__tool` lead to the same tool. Two tools may not claim one name; a spelling that would lead to two
tools leads to none, and the error lists both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from threading import RLock
from typing import TYPE_CHECKING

from toolgate.core.errors import DuplicateName, SetupError, UnknownTool
from toolgate.core.late_pattern import late_pattern

if TYPE_CHECKING:
    from toolgate.core.tool import Tool

NAME = late_pattern(r"[a-z][a-z0-9_-]*(\.[A-Za-z0-9][A-Za-z0-9_-]*)+")
LONGEST = 64
PERSONA = late_pattern(rf"[A-Za-z][A-Za-z0-9_.-]{{0,{LONGEST - 1}}}")
MAX_NAME = 128
_USUAL = ("code.", "exec.", "fs.")
"""Of several tools that may be meant, those for files and programs are."""
HUMAN = "human"
"""The persona of the person who runs the gate; no configuration can define or change it."""


@lru_cache(maxsize=1024)
def is_persona(name: str) -> bool:
    """Kept for the next call: to be asked of nothing longer than the longest."""
    return PERSONA.fullmatch(name) is not None


def check_name(name: str) -> str:
    if len(name) > MAX_NAME or not NAME.fullmatch(name):
        raise SetupError(
            f"{name!r} is not a tool name", "use family.verb in lower case, such as `weather.now`"
        )
    return name


class Registry:
    """The tools of one gate, by name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._late: dict[str, Callable[[], Iterable[Tool]]] = {}
        """Names that are known, and what makes their tools once one of them is needed."""
        self._own: dict[str, tuple[str, ...]] = {}
        """Each tool's own other names."""
        self._loading = RLock()
        self._aliases: dict[str, str] = {}
        self._ambiguous: dict[str, set[str]] = {}
        self.refresh: Callable[[], None] | None = None
        """Told before anybody looks: tools of other servers come and go while a gate is open."""
        self.late: Callable[[str], Awaitable[bool]] | None = None
        """Asked about a name that is missing: whether it has arrived now."""
        for tool in tools:
            self.add(tool)

    def __iter__(self) -> Iterator[Tool]:
        if self.refresh is not None:
            self.refresh()
        for name in list(self._late):
            self._load(name)
        return iter(sorted(self._tools.values(), key=lambda tool: tool.name))

    def __len__(self) -> int:
        return len(self._own)

    def __contains__(self, name: str) -> bool:
        return name in self._own

    def names(self) -> list[str]:
        """Every tool's name, without loading any."""
        if self.refresh is not None:
            self.refresh()
        return sorted(self._own)

    def declare(
        self, names: Iterable[str], aliases: Mapping[str, str], load: Callable[[], Iterable[Tool]]
    ) -> None:
        """Tools that are made together, when one of them is called or described. What they are called is said now."""
        for name in names:
            self._claim(check_name(name), tuple(other for other, owner in aliases.items() if owner == name))
            self._late[name] = load

    def _load(self, name: str) -> None:
        with self._loading:
            load = self._late.get(name)
            if load is None:
                return
            family = {one for one, other in self._late.items() if other is load}
            made = {tool.name: tool for tool in load()}
            if made.keys() != family or any(
                set(tool.aliases) != set(self._own[one]) for one, tool in made.items()
            ):
                told = ", ".join(sorted(made.keys() ^ family)) or "their other names"
                raise SetupError(f"a feature does not make the tools that it names: {told}", "name them all")
            self._tools.update(made)
            for one in family:
                del self._late[one]

    def add(self, tool: Tool) -> None:
        if not hasattr(type(tool), "definition"):
            named = getattr(tool, "__name__", type(tool).__name__)
            raise SetupError(f"{named} is not a tool", 'make it one with @toolgate.tool("family.verb", ...)')
        self._claim(check_name(tool.name), tool.aliases)
        self._tools[tool.name] = tool

    def _claim(self, name: str, aliases: tuple[str, ...]) -> None:
        for claimed in (name, *aliases):
            owner = claimed if claimed in self._own else self._aliases.get(claimed, "")
            if owner and (claimed == owner or claimed in self._own[owner]):
                raise DuplicateName(
                    f"{name} and {owner} both claim the name {claimed!r}", "rename one of the two"
                )
        self._own[name] = aliases
        for alias in aliases:
            self._aliases[alias] = name
            self._ambiguous.pop(alias, None)
        for alias in _spellings(name):
            self._add_spelling(alias, name)

    def remove(self, name: str) -> None:
        if self._own.pop(name, None) is None:
            return
        self._tools.pop(name, None)
        self._late.pop(name, None)
        self._aliases = {alias: holder for alias, holder in self._aliases.items() if holder != name}
        for alias, holders in list(self._ambiguous.items()):
            holders.discard(name)
            if len(holders) == 1:  # it is clear again who is meant
                del self._ambiguous[alias]
                self._aliases[alias] = holders.pop()

    def _add_spelling(self, alias: str, name: str) -> None:
        holder = self._aliases.get(alias)
        if alias in self._own or (holder and alias in self._own[holder]):
            return
        if alias in self._ambiguous:
            self._ambiguous[alias].add(name)
        elif holder is None or holder == name:
            self._aliases[alias] = name
        else:
            del self._aliases[alias]
            self._ambiguous[alias] = {holder, name}

    def canonical(self, name: str) -> str | None:
        """The name of the tool that a spelling leads to, without loading it."""
        return name if name in self._own else self._aliases.get(name)

    def resolve(self, name: str) -> Tool:
        if self.refresh is not None:
            self.refresh()
        tool = self._tools.get(name)
        if tool is not None:
            return tool
        canonical = name if name in self._own else self._aliases.get(name)
        if canonical is None:
            raise self._miss(name)
        if canonical in self._late:
            self._load(canonical)
        return self._tools[canonical]

    def _miss(self, name: str) -> UnknownTool:
        shown = name if len(name) <= MAX_NAME else name[:MAX_NAME] + "…"
        if name in self._ambiguous:
            candidates = " or ".join(sorted(self._ambiguous[name]))
            return UnknownTool(f"{shown!r} could mean {candidates}", "use the dotted name")
        near = self.near(name)
        fix = f"did you mean {' or '.join(near)}?" if near else "call tools.list to see what there is"
        return UnknownTool(f"there is no tool {shown!r}", fix, data={"near": near})

    def near(self, name: str) -> list[str]:
        """Tools that may have been meant: spelled so, then named with the same words or words for the same thing."""
        import difflib  # for a mistake only

        spelled = name[:MAX_NAME].replace("/", ".").replace("__", ".").lower()
        close = difflib.get_close_matches(spelled, self._own, n=3, cutoff=0.75)
        verbs = {spelled.rpartition(mark)[2] for mark in "._"}
        same_verb = [tool for tool in self._own if tool.rpartition(".")[2] in verbs]
        less_close = difflib.get_close_matches(spelled, self._own, n=3, cutoff=0.6)
        return list(dict.fromkeys([*close, *same_verb, *_in_words(name[:MAX_NAME], self._own), *less_close]))[
            :3
        ]


def _in_words(name: str, known: Iterable[str]) -> list[str]:
    """`grep` is code.search to others, `cat` fs.read, `bash` exec.shell: best first. A tool's verb says more than its family."""
    from toolgate.core.words import alike, stems  # for a mistake only

    given = set(stems(name))
    like = set().union(*map(alike, given)) - given

    def worth(tool: str) -> int:
        family, _, verb = tool.partition(".")
        found = 0
        for weight, words in ((1, set(stems(family))), (3, set(stems(verb)))):
            found += weight * (2 * len(words & given) + len(words & like))
        return found

    ranked = sorted(
        ((worth(tool), tool) for tool in known),
        key=lambda pair: (-pair[0], not pair[1].startswith(_USUAL), pair[1]),
    )
    return [tool for score, tool in ranked if score >= 3]


def _spellings(name: str) -> tuple[str, ...]:
    return (name.replace(".", "/"), name.replace(".", "_"), f"archon.{name}", name.replace(".", "__"))
