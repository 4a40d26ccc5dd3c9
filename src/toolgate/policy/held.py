"""Files that toolgate runs outside the sandbox: writing one asks a human, whatever the rules and grants say.

Which files these are is found out when a gate opens (`project/plugins.py`). Here they are places in mounts, and a Change is
compared with them by name alone: no file is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from toolgate.core.decision import Decision, Verdict
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass, field, replace
from toolgate.policy.globs import fold

RULE = "hard:held"
MOST_NAMED = 5
PYTHON = (".py", ".pyc", ".pyo", ".pyd", ".so", ".pth", ".egg", ".zip", "pyvenv.cfg")
NODE = (
    ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".node", ".wasm", "package.json", "tsconfig.json",
    "deno.json", "deno.jsonc", "bunfig.toml",
)  # fmt: skip
SHELL = (".sh", ".bash", ".zsh", ".fish")
FAMILIES: tuple[tuple[str, ...], ...] = (
    PYTHON,
    NODE,
    SHELL,
    (".rb", ".so", "gemfile"),
    (".pl", ".pm", ".so"),
    (".php", ".phar"),
    (".lua", ".so"),
    (".jar", ".class", ".war"),
    (".r", ".so"),
    (".jl", ".so"),
    (".go", "go.mod", "go.sum"),
    (".rs", "cargo.toml", "cargo.lock"),
    (".dll", ".exe", ".runtimeconfig.json"),
    (
        ".cs",
        ".fs",
        ".vb",
        ".csproj",
        ".fsproj",
        ".vbproj",
        ".props",
        ".targets",
        "nuget.config",
        "global.json",
    ),
    (".ex", ".exs", ".erl"),
    (".swift",),
    (".ps1", ".psm1", ".psd1"),
)
"""How names of files end that a program in one of these languages loads from beside itself."""


def family_of(name: str) -> tuple[str, ...]:
    """The endings of a file's language; nothing where its name tells none."""
    lower = name.lower()
    return next((one for one in FAMILIES if any(lower.endswith(end) for end in one if end[0] == ".")), ())


@dataclass(frozen=True, slots=True)
class HeldPlace:
    """A file, or a directory with all below it or only the files whose names end in one of these ways."""

    path: MountPath
    by: str
    """Who runs it: `the server weather`."""
    endings: tuple[str, ...] = ()

    def takes(self, below: tuple[str, ...]) -> bool:
        """Whether it is about what these folded names lead to from it."""
        if not below or not self.endings:
            return True
        return below[-1].endswith(self.endings) or "node_modules" in below


Place = tuple[str, ...]


@dataclass(slots=True)
class Held:
    """Every held place by mount and folded names; asking takes as long as the path is deep."""

    places: tuple[HeldPlace, ...] = ()
    _at: dict[tuple[str, Place], list[HeldPlace]] = field(default_factory=dict)
    _above: dict[tuple[str, Place], HeldPlace] = field(default_factory=dict)
    """The directories that lead to one: with another in its place, something else would be run."""

    @classmethod
    def of(cls, places: Iterable[HeldPlace]) -> Held:
        made = cls(tuple(dict.fromkeys(places)))
        for one in made.places:
            mount, names = one.path.mount, _names(one.path)
            made._at.setdefault((mount, names), []).append(one)
            for length in range(1, len(names)):
                made._above.setdefault((mount, names[:length]), one)
        return made

    def find(self, path: MountPath) -> HeldPlace | None:
        if not self._at:
            return None
        mount, names = path.mount, _names(path)
        for length in range(len(names) + 1):
            for one in self._at.get((mount, names[:length]), ()):
                if one.takes(names[length:]):
                    return one
        return self._above.get((mount, names))

    def among(self, paths: Sequence[MountPath]) -> list[tuple[MountPath, HeldPlace]]:
        if not self._at:
            return []
        return [(path, one) for path in paths if (one := self.find(path)) is not None]


def asked(decision: Decision, found: Sequence[tuple[MountPath, HeldPlace]]) -> Decision:
    """The decision, made to ask. Only an approval of this very call counts, no grant; a deny stays one."""
    if not found or decision.verdict is Verdict.DENY:
        return decision
    named = [f"{path.shown} is run by toolgate outside the sandbox, as {one.by}" for path, one in found]
    more = f" and {len(named) - MOST_NAMED:,} more files" if len(named) > MOST_NAMED else ""
    reason = f"{'; '.join(named[:MOST_NAMED])}{more}: whoever writes it decides what runs with your rights"
    if decision.verdict is Verdict.ASK:
        return replace(decision, reason=f"{reason}; and {decision.reason}", rule=RULE, step=1, singly=True)
    return Decision(Verdict.ASK, reason, RULE, 1, singly=True)


@lru_cache(maxsize=4096)
def _names(path: MountPath) -> Place:
    """Remembered: a call's paths are asked about when it is planned, decided and begun."""
    return tuple(fold(name) for name in path.relative.split("/") if name not in ("", "."))
