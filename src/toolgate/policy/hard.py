"""Hard blocks on paths: what no rule, no persona and no answer can open.

Blocked names are matched on every segment of the mount-relative path, folded, so that no spelling slips past.
A mount may narrow the list with `unblock`; toolgate's own files stay shut. So do the files that the configuration
names, by every mount that leads to them, and a directory that is a mount of its own is reached as that mount only.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from toolgate.core.decision import Decision, Verdict
from toolgate.core.effects import FILE_WORDS, Effects
from toolgate.core.errors import ConfigError
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass, field, replace
from toolgate.feature import KINDS, MountKind, kind_of
from toolgate.policy.dotfiles import USUAL, Dotfiles
from toolgate.policy.globs import PathGlob, alternatives, fold, path_glob, text_glob
from toolgate.policy.held import Held

if TYPE_CHECKING:
    from toolgate.policy.model import MountSpec

BLOCKED: tuple[str, ...] = (
    ".git",
    ".env*",
    "*.env",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*private*key*",
    "id_{rsa,dsa,ecdsa,ed25519}*",
    ".ssh",
    ".gnupg",
    ".aws",
    ".kube",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    "{secret,secrets,password,passwords,credentials}",
    "*{secret,secrets,password,passwords,credentials}.{txt,json,yaml,yml,toml,ini,env,csv,cfg,conf,xml,properties}",
    "*{client,app,oauth}?secret*.{json,txt,yaml,yml,toml,ini,cfg}",
    "*secret?key*.{json,txt,yaml,yml,toml,ini,cfg,conf}",
    "service-account*.json",
)
"""Names that no tool may read or write, unless their mount unblocks them. Words such as `password` count in names of
data, at their end: source code and templates are full of them (`password_reset.html`, `secrets.py`)."""
TELLING = (
    ".git", ".env", ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", "private", "id_", ".ssh", ".gnupg",
    ".aws", ".kube", "netrc", ".pgpass", ".npmrc", ".pypirc", ".htpasswd", "secret", "password", "credentials",
    "service-account",
)  # fmt: skip
"""Each of those names has one of these in it: one that has none is not looked at closer."""
SHUT = frozenset({"hard:blocked-name", "hard:dotfile", "hard:hidden"})
"""Rules about a name, whoever asks: their refusals are `blocked_path`, as that of a link which leads to the name is."""
ALWAYS_BLOCKED = ".toolgate"
NEVER_WRITTEN = "toolgate.yaml"
FILE_WRITES = FILE_WORDS | {"branch", "outside"}
"""Effects under which every path of the call counts as written: which of them is, the call does not say."""
FREE = Decision(Verdict.ALLOW, "describing the tools needs no permission", "free", 1)
UNTRUSTED = Decision(
    Verdict.DENY,
    "this project is not trusted yet; run `toolgate trust` after reading its toolgate.yaml",
    "hard:untrusted",
    1,
)
HUMAN_ONLY = Decision(
    Verdict.DENY, "only a human does this: use the command line or the console", "hard:human-only", 1
)
_REPLACES = " (a list there replaces the usual one)"


@dataclass(frozen=True, slots=True)
class Refusal:
    rule: str
    reason: str
    fix: str = ""

    @property
    def decision(self) -> Decision:
        return Decision(Verdict.DENY, self.reason, self.rule, 1, fix=self.fix)


Place = tuple[str, ...]
"""Folded names that lead somewhere from the root of the project."""


def place(path: str) -> Place:
    """Where a configured path is, by its words alone; an absolute one begins with an empty name."""
    parts = posixpath.normpath(path).split("/")
    return tuple(fold(part) for part in parts if part != ".")


@dataclass(frozen=True, slots=True)
class Named:
    """Files that the configuration names: whoever could write them would decide what runs or what is believed."""

    never_written: frozenset[Place] = frozenset()
    never_used: frozenset[Place] = frozenset()
    own: frozenset[tuple[str, Place]] = frozenset()
    """What toolgate loads, by the mounts and the names in them that really lead there; with all below it."""

    @classmethod
    def of(cls, never_written: Sequence[str], never_used: Sequence[str]) -> Named:
        return cls(frozenset(map(place, never_written)), frozenset(map(place, never_used)))

    def also(self, paths: Iterable[MountPath]) -> Named:
        more = {(path.mount, place(path.relative)) for path in paths if path.relative != "."}
        return replace(self, own=self.own | more)

    def described(self) -> list[list[Any]]:
        return [sorted(self.never_written), sorted(self.never_used)]


@dataclass(slots=True)
class MountRules:
    """What one mount refuses, compiled."""

    name: str
    writable: tuple[PathGlob, ...] | None
    unblock: tuple[PathGlob, ...]
    unblock_names: tuple[str, ...]
    hidden: tuple[PathGlob, ...]
    dotfiles: Dotfiles
    hard_links: bool
    worktree: bool
    max_bytes: int
    base: Place = ()
    named: Named = Named()
    held: Held = field(default_factory=Held)
    """What toolgate runs of it: for those who write without a question."""
    inner: dict[Place, str] = field(default_factory=dict)
    """The mounts that lie within this one."""
    kind: MountKind = KINDS["files"]
    placed: frozenset[str] = frozenset()
    """The last names of what is refused for where it is, folded: only of these the place must be looked at."""

    @classmethod
    def all_of(
        cls, specs: Mapping[str, MountSpec], named: Named, held: Held | None = None,
        kinds: Mapping[str, MountKind] = KINDS,
    ) -> dict[str, MountRules]:  # fmt: skip
        found = {name: cls.of(name, spec, kinds) for name, spec in specs.items()}
        for one in found.values():
            one.named, one.held = named, held or one.held
            one.inner = {
                other.base: other.name
                for other in found.values()
                if len(other.base) > len(one.base) and other.base[: len(one.base)] == one.base
            }
            one.placed = frozenset(where[-1] for where in (*one.inner, *named.never_used) if where)
        return found

    @classmethod
    def of(cls, name: str, spec: MountSpec, kinds: Mapping[str, MountKind] = KINDS) -> MountRules:
        kind = kind_of(name, spec.kind, kinds)
        if kind is None:
            known = ", ".join(kinds)
            raise ConfigError(f"mounts.{name}.kind: there is no kind {spec.kind!r}", f"use one of: {known}")

        def globs(texts: tuple[str, ...]) -> tuple[PathGlob, ...]:
            return tuple(path_glob(text, name) for text in texts)

        writable = spec.writable
        if writable is None:
            writable = ("**",) if kind.whole else ()
        names = tuple(text for text in spec.unblock if "/" not in text)
        # A name that the mount unblocks is open, whether or not it begins with a dot.
        dots = Dotfiles.of(name, (*(USUAL if spec.dotfiles is None else spec.dotfiles), *spec.unblock))
        return cls(
            name, globs(writable), globs(spec.unblock), names, globs(spec.hidden), dots, spec.hard_links,
            spec.worktree, spec.max_bytes, place(spec.path), kind=kind,
        )  # fmt: skip

    def refuse(self, path: MountPath, written: bool) -> Refusal | None:
        blocked = self._blocked(path, written)
        if blocked:
            reason = f"{path.shown} has the blocked name `{blocked}`"
            return Refusal("hard:blocked-name", reason, self._unblocking(blocked))
        refusal = self._placed(path, written)
        if refusal is not None:
            return refusal
        shut = self.dotfiles.shuts(path)
        if shut:
            reason = f"{path.shown} is hidden: `dotfiles` of the mount {self.name} does not list `{shut}`"
            return Refusal("hard:dotfile", reason, self._opening(shut, "dotfiles", _REPLACES))
        if any(glob.catches(path) for glob in self.hidden):
            return Refusal("hard:hidden", f"{path.shown} is hidden in the mount {self.name}")
        if written and not any(glob.matches(path) for glob in self.writable or ()):
            return Refusal("hard:mount", f"{path.shown} is not writable in the mount {self.name}")
        return None

    def foreign(self, path: MountPath, user: str | None) -> Refusal | None:
        """Whether it is beyond what this user's personas see of the mount; in the same words whatever is there."""
        if not self.kind.scope or user is None:
            return None
        own = self.kind.scope.format(user=user)
        if path.relative == own or path.relative.startswith(own + "/"):
            return None
        reason = f"{path.shown} is not the {self.kind.name} of the user {user}, which is {self.name}:{own}"
        return Refusal("hard:mount", reason, f"use a path at or below {self.name}:{own}")

    def plain(self, name: str) -> bool:
        """Whether nothing here could refuse to show this name, whatever it is in, provided that is shown."""
        ordinary = not self.hidden and name.isascii() and not name.startswith(".")
        return ordinary and not is_blocked(name) and not (self.placed and fold(name) in self.placed)

    def _blocked(self, path: MountPath, written: bool) -> str:
        names = path.relative.split("/")
        for index, name in enumerate(names):
            loose = fold(name)
            if loose == ALWAYS_BLOCKED or (written and loose == NEVER_WRITTEN):
                return name
            if is_blocked(name) and not self.unblocked(names[: index + 1]):
                return name
        return ""

    def _unblocking(self, name: str) -> str:
        """Some names stay shut whatever a mount says."""
        return "" if fold(name) in (ALWAYS_BLOCKED, NEVER_WRITTEN) else self._opening(name, "unblock")

    def _opening(self, name: str, word: str, but: str = "") -> str:
        return f"the owner can add `{name}` to `{word}` of the mount {self.name} in toolgate.yaml{but}"

    def _placed(self, path: MountPath, written: bool) -> Refusal | None:
        """What is refused because of where the path leads, whatever its names are."""
        names = path.relative.split("/")
        full = self.base + place(path.relative)
        if full in self.named.never_used:
            return Refusal("hard:blocked-name", f"{path.shown} is the key of the ledger: no tool uses it")
        if written and full in self.named.never_written:
            return Refusal(
                "hard:blocked-name", f"{path.shown} is a plugin of toolgate.yaml: only a human writes it"
            )
        if written and self.named.own:
            here = place(path.relative)
            if any((self.name, here[:length]) in self.named.own for length in range(1, len(here) + 1)):
                return Refusal(
                    "hard:blocked-name", f"{path.shown} is loaded by toolgate itself: only a human writes it"
                )
        for length in range(len(full), len(self.base), -1) if self.inner else ():
            other = self.inner.get(full[:length])
            if other is not None:
                rest = "/".join(names[length - len(self.base) :]) or "."
                return Refusal("hard:mount", f"{path.shown} is in another mount: use {other}:{rest}")
        return None

    def unblocked(self, names: list[str]) -> bool:
        """By the path up to and including the blocked name, or by the name alone."""
        upto = MountPath(f"{self.name}:{'/'.join(names)}")
        last = MountPath(f"{self.name}:{names[-1]}")
        return any(
            glob.matches(upto) or (glob.text in self.unblock_names and glob.matches(last))
            for glob in self.unblock
        )


@cache
def _blocked() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The names as they are spelled, and folded. One expression instead of many, for a walk asks about every name it
    meets; compiled when the first path is judged."""
    globs = [text_glob(name) for name in BLOCKED]
    exact = alternatives(one.exact.pattern for one in globs)
    loose = alternatives(one.loose.pattern for one in globs)
    return exact, exact if exact.pattern == loose.pattern else loose


@lru_cache(maxsize=8192)
def is_blocked(name: str) -> bool:
    """Whether the list has this name, in any spelling; a mount may still unblock it."""
    bare = fold(name)
    if not any(word in bare or word in name for word in TELLING):
        return False
    exact, loose = _blocked()
    if exact.fullmatch(name) is not None:
        return True
    return not (loose is exact and bare == name) and loose.fullmatch(bare) is not None


def writes_files(effects: Effects) -> bool:
    return not FILE_WRITES.isdisjoint(effects.writes)


def refuse_path(
    path: MountPath, written: bool, mounts: Mapping[str, MountRules], open_to: frozenset[str],
    user: str | None = None,
) -> Refusal | None:  # fmt: skip
    """What the mounts themselves refuse about one path. Without a user, all of a mount that it is open to is seen."""
    rules = mounts.get(path.mount)
    if rules is None:
        return Refusal("hard:mount", f"there is no mount {path.mount!r}; there are: {', '.join(mounts)}")
    if path.mount not in open_to:
        return Refusal("hard:mount", f"this persona may not use the mount {path.mount}")
    return rules.foreign(path, user) or rules.refuse(path, written)


def refuse_mounts(
    paths: tuple[MountPath, ...], effects: Effects, mounts: Mapping[str, MountRules], open_to: frozenset[str],
    user: str | None = None,
) -> Refusal | None:  # fmt: skip
    """The first thing that the mounts refuse about a call."""
    if not paths:
        return refuse_pathless(effects, mounts, open_to)
    written = writes_files(effects)
    refusals = (refuse_path(path, written, mounts, open_to, user) for path in paths)
    return next((refusal for refusal in refusals if refusal is not None), None)


def refuse_pathless(
    effects: Effects, mounts: Mapping[str, MountRules], open_to: frozenset[str]
) -> Refusal | None:
    """A call without paths may still be about mounts, such as a search through the garden."""
    about = FILE_WORDS & {*effects.reads, *effects.writes}
    if about and about.isdisjoint(mounts[name].kind.effect for name in open_to if name in mounts):
        return Refusal("hard:mount", f"this persona may not use the mount {' or '.join(sorted(about))}")
    return None


def paused(stopped: Mapping[str, str], line: Sequence[str]) -> Decision | None:
    """A pause of everybody, of the persona or of any of its parents."""
    for name in ("", *line):
        if name in stopped:
            why = f": {stopped[name]}" if stopped[name] else ""
            who = f"{name} is" if name else "everybody is"
            lift = f"`toolgate resume {name}`" if name else "`toolgate resume`"
            return Decision(Verdict.DENY, f"{who} paused{why}; {lift} lifts it", "hard:paused", 1)
    return None
