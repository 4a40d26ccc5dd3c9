"""What comes back from the gate, the same in Python, `--json`, HTTP and MCP; as a model reads it; and the call that follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from toolgate.core.canonical import compact
from toolgate.core.records import dataclass, field

if TYPE_CHECKING:
    from toolgate.core.errors import CallError, Code


@dataclass(frozen=True, slots=True)
class Problem:
    code: Code
    message: str
    fix: str


@dataclass(slots=True)
class Meta:
    call_id: str = ""
    event_id: int | None = None
    """The journal row that settled or refused it; None where nothing was recorded."""
    duration_ms: float = 0.0
    tokens: int = 0
    cached: bool = False
    truncated: bool = False


@dataclass(slots=True)
class Result:
    ok: bool
    tool: str
    data: Any = None
    error: Problem | None = None
    meta: Meta = field(default_factory=Meta)
    note: str = ""
    """A remark of the gate for the model, such as that it repeats itself."""
    text: str | None = field(default=None, repr=False, compare=False)
    """As a reader of text was handed it; no part of the result's shape."""

    @classmethod
    def refused(cls, tool: str, error: CallError, meta: Meta) -> Result:
        data = dict(error.data) if error.data else None
        return cls(False, tool, data, Problem(error.code, error.message, error.fix), meta)

    def unwrap(self) -> Any:
        """The data of a call that went well; else the error of its code, such as `toolgate.core.errors.NotFound`."""
        if self.error is None:
            return self.data
        from toolgate.core.errors import CallError

        data = self.data if isinstance(self.data, dict) else None
        raise CallError.of(self.error.code, self.error.message, self.error.fix, data)

    def as_dict(self) -> dict[str, Any]:
        """The data itself, not a copy: it may be large, and each call's answer passes here."""
        error = self.error
        told = {"note": self.note} if self.note else {}
        return {
            "ok": self.ok,
            "tool": self.tool,
            "data": self.data,
            "error": None if error is None else {name: getattr(error, name) for name in Problem.__slots__},
            "meta": {name: getattr(self.meta, name) for name in Meta.__slots__},
            **told,
        }


_KNOWN = frozenset(
    {"rule", "problems", "near", "limit", "expires_at", "hunk", "why", "problem", "left", "match_count"}
)
"""What the message of a refusal says already, in words."""


def of_error(error: Problem, data: Any = None, told: str | None = None) -> str:
    """What went wrong and what to do about it, in two lines; then what there is to show for it all the same."""
    lines = [f"{error.code.value}: {error.message}"]
    if error.fix:
        lines.append(f"fix: {error.fix}")
    said = "\n".join(lines)
    if told is None and isinstance(data, dict):
        rest = {name: value for name, value in data.items() if name not in _KNOWN and str(value) not in said}
        told = of_data(rest) if rest else ""
    return f"{said}\n{told}" if told else said


def of_data(data: Any) -> str:
    """Plain lines, with long texts as they are instead of as JSON."""
    if isinstance(data, str):
        return data
    if isinstance(data, dict):
        return _object(data)
    if isinstance(data, list):
        return "\n".join(_one_line(item) for item in data) or "[]"
    return _one_line(data)


def _object(data: dict[str, Any]) -> str:
    """Short values first, one a line; texts of many lines and lists below, under their names."""
    short, long = [], []
    for name, value in data.items():
        if isinstance(value, str) and "\n" in value:
            long.append(f"{name}:\n{value}")
        elif isinstance(value, list) and len(value) > 1:
            long.append(f"{name}:\n" + "\n".join(map(_one_line, value)))
        else:
            short.append(f"{name}: {_one_line(value)}")
    return "\n".join(short + long)


def _one_line(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return compact(value)
    except TypeError:  # an integer beyond 64 bits
        return str(value)


@dataclass(frozen=True, slots=True)
class Follow:
    """A call that leads to another: what a program changed is proposed as a write, which must pass the gate itself.

    The first call is settled before the second begins, and each has its own decision, question and events. What became of
    the second is told in the result of the first.
    """

    next: Callable[[Any], tuple[str, Mapping[str, Any]] | None]
    """From the first call's data, the tool and arguments of the second; None where there is nothing to do."""
    told: Callable[[Any, Result], Any]
    """The first call's data, with what became of the second."""
