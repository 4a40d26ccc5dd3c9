"""What comes back from the gate, the same in Python, `--json`, HTTP and MCP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
