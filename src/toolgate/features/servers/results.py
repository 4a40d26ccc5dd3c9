"""Results and errors of a server. What it answers is a stranger's word: checked against its schema, cut to size, made harmless to show, marked with where it is from."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from typing import Any

from toolgate.core.canonical import canonical
from toolgate.core.context import Context
from toolgate.core.display import encodable, spelled_out
from toolgate.core.errors import CallError, ConfigError, Failed, TimedOut, Unavailable, UnknownOutcome
from toolgate.features.servers.definitions import Definition, sort_out
from toolgate.policy.linear import Linear

# Values against JSON schemas that a stranger wrote: nothing is fetched, nothing hangs. Patterns run in
# linear time; one that needs backtracking is not checked here (the server will). The number of steps is
# bounded, because schemas can refer to themselves.

MAX_STEPS = 50_000
MAX_PATTERN_TEXT = 10_000


class Unusable(Exception):
    """The schema itself is broken, or takes too long."""


class Checker:
    """One schema, compiled when it is first needed."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = dict(schema)
        self._validator: Any = None
        self._steps = 0

    def problems(self, value: Any, most: int = 5) -> list[str]:
        """What does not fit, each with its place; empty if it fits. Raises Unusable."""
        found: list[str] = []
        self._steps = 0
        try:
            for error in self._compiled().iter_errors(value):
                where = ".".join(map(str, error.absolute_path))
                found.append(f"{where}: {error.message[:200]}" if where else error.message[:200])
                if len(found) == most:
                    break
        except Unusable:
            raise
        except RecursionError:
            raise Unusable("it refers to itself without end") from None
        except (
            Exception
        ) as error:  # a schema is a stranger's program: whatever it breaks, it breaks only itself
            raise Unusable(f"{type(error).__name__}: {str(error)[:200]}") from None
        return found

    def check(self) -> None:
        """Raise Unusable if the schema is none."""
        self._compiled()

    def _compiled(self) -> Any:
        if self._validator is None:
            self._validator = self._compile()
        return self._validator

    def _compile(self) -> Any:
        from jsonschema import SchemaError, validators
        from referencing import Registry

        base = validators.validator_for(self._schema, default=validators.Draft202012Validator)
        try:
            base.check_schema(self._schema)
        except (SchemaError, RecursionError) as error:
            raise Unusable(str(getattr(error, "message", error))[:200]) from None
        own: dict[str, Any] = {
            "pattern": _pattern,
            "patternProperties": _pattern_properties,
            "uniqueItems": _unique,
        }
        words = {word: self._counted(own.get(word, check)) for word, check in base.VALIDATORS.items()}
        kind = validators.extend(base, words)
        return kind(self._schema, registry=Registry())  # an empty registry: no reference leads outside

    def _counted(self, check: Callable[..., Any]) -> Callable[..., Any]:
        def counted(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise Unusable("it takes too many steps to check")
            yield from check(validator, wanted, value, schema) or ()

        return counted


def _linear(pattern: str) -> Linear | None:
    try:
        return Linear(pattern)
    except ConfigError:
        return None


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    linear = _linear(pattern) if isinstance(value, str) and len(value) <= MAX_PATTERN_TEXT else None
    if linear is not None and not linear.search(value):
        yield ValidationError(f"{value[:80]!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    for pattern, part in wanted.items() if isinstance(value, dict) else ():
        linear = _linear(pattern)
        for name, item in value.items():
            if linear is not None and linear.search(name[:MAX_PATTERN_TEXT]):
                yield from validator.descend(item, part, path=name, schema_path=pattern)


def _unique(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not wanted or not isinstance(value, list):
        return
    try:
        repeats = len({canonical(item) for item in value}) < len(value)
    except CallError:
        return
    if repeats:
        yield ValidationError("it has an element twice")


MAX_BLOB = 48 * 1024
"""Of one image, sound or file, in base64; the result's own budget cuts texts, but half a picture is none."""
MAX_BLOCKS = 200
MAX_ERROR = 2000
LONGEST_SECRET = 20_000
_KEPT = frozenset("\n\t\r\u200c\u200d\ufe0e\ufe0f\u00ad")
"""Joiners and the selectors of emoji belong to ordinary text."""
_HIDDEN = ((0x200B, 0x200B), (0x2060, 0x206F), (0x115F, 0x1160), (0xFE00, 0xFE0D), (0xE0000, 0xE0FFF))

Scrub = Callable[[Any], Any]
"""A value without the secrets in it."""


def defused(text: str) -> str:
    """Characters that steer a terminal, reorder a line or hide a text, as `⟨U+XXXX⟩`. The rest stays as it is."""
    if text.isascii() and text.isprintable():
        return text
    return spelled_out(encodable(text), _harmless)


def words(text: str, scrub: Scrub, most: int) -> str:
    """The beginning of what a server says, for a message. It is scrubbed before it is cut to size, as half a secret would
    not be found; but of megabytes only as much as could matter."""
    return defused(str(scrub(text[: most + LONGEST_SECRET])))[:most]


def _harmless(char: str) -> bool:
    if char in _KEPT or " " <= char <= "~":
        return True
    code = ord(char)
    hidden = any(first <= code <= last for first, last in _HIDDEN)
    return not hidden and unicodedata.category(char) not in ("Cc", "Cf", "Zl", "Zp")


def cleaned(value: Any, scrub: Scrub) -> Any:
    """Every text in it defused, and the server's own secrets taken out."""
    return _harmless_all(scrub(value))


def _harmless_all(value: Any) -> Any:
    if isinstance(value, str):
        return defused(value)
    if isinstance(value, Mapping):
        return {defused(str(key)): _harmless_all(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_harmless_all(item) for item in value]
    return value


def blocks(content: Iterable[Mapping[str, Any]], scrub: Scrub) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for index, block in enumerate(content):
        if index == MAX_BLOCKS:
            made.append(
                {"type": "text", "text": f"[toolgate: more than {MAX_BLOCKS} parts; the rest is left out]"}
            )
            break
        made.append(cleaned(_small(block), scrub))
    return made


def _small(block: Mapping[str, Any]) -> dict[str, Any]:
    """Without data that is too large; what was left out is said."""
    kept = {key: value for key, value in block.items() if key not in ("_meta", "icons") and value is not None}
    inner = kept.get("resource")
    if isinstance(inner, Mapping):
        kept["resource"] = _small(inner)
    for key in ("data", "blob"):
        data = kept.get(key)
        if isinstance(data, str) and len(data) > MAX_BLOB:
            kept[key] = ""
            kept["omitted"] = f"{len(data) * 3 // 4:,} bytes are more than toolgate passes on"
    return kept


def presented(server: str, definition: Definition, raw: Mapping[str, Any], scrub: Scrub) -> dict[str, Any]:
    """The data of a call's result. Raises Failed where the server says that its tool failed."""
    content = blocks(raw.get("content") or (), scrub)
    if raw.get("isError"):
        raise said_failed(server, content)
    data: dict[str, Any] = {"source": server, "untrusted": True, "content": content}
    structured = raw.get("structuredContent")
    if structured is not None:
        data["structured"] = cleaned(structured, scrub)
    problem = _broken_promise(definition, raw)
    if problem:
        data["warning"] = f"the answer is not what {server} promised: {defused(scrub(problem))}"
    return data


def said_failed(server: str, content: list[dict[str, Any]]) -> CallError:
    text = "\n".join(
        str(block["text"]) for block in content if block.get("type") == "text" and "text" in block
    )
    if len(text) > MAX_ERROR:
        text = f"{text[:MAX_ERROR]}… [{len(text) - MAX_ERROR:,} more characters]"
    return Failed(
        f"{server} says that it failed: {text or 'without a reason'}", "these are the server's words"
    )


def _broken_promise(definition: Definition, raw: Mapping[str, Any]) -> str:
    schema = definition.output_schema
    if schema is None:
        return ""
    if "structuredContent" not in raw:
        return "there is no structured content"
    try:
        return "; ".join(Checker(schema).problems(raw["structuredContent"], most=3))
    except Unusable as error:
        return f"its output schema cannot be used: {error}"


# How a call to a server can end, in words: held, late, lost; and what is heard of it on the way.

_DOUBT = "; whether it took effect is unknown"
MANY = 20
"""Reports of progress that are passed on as they come; after that, not more than 20 a second."""
LONGEST_PROGRESS = 4000
"""Characters of what is said with it; looking for secrets in more takes too long."""
_LOOK = "look at what it did before you call again; it is not sent again by itself"


def late(server: str, seconds: float, effectful: bool) -> CallError:
    message = f"{server} did not answer in {seconds:g} s"
    return (
        UnknownOutcome(message + _DOUBT, _LOOK)
        if effectful
        else TimedOut(message, "call again, or raise `timeout_s`")
    )


def lost(server: str, why: str) -> CallError:
    """After it was sent, and before it was answered."""
    return UnknownOutcome(
        f"the connection to {server} was lost after the call was sent: {why}{_DOUBT}", _LOOK
    )


def why_held(server: str, why: str) -> tuple[str, str]:
    fix = f"a human looks at it with `toolgate servers diff {server}` and approves it with `toolgate servers approve {server}`"
    return f"held: {why}", fix


def as_read(error: CallError) -> CallError:
    """Of a call that only reads there is no doubt: it gave nothing."""
    return Unavailable(error.message.removesuffix(_DOUBT), "call again")


def told(
    server: str, context: Context, scrub: Scrub
) -> Callable[[float, float | None, str | None], Coroutine[Any, Any, None]]:
    last, heard = 0.0, 0

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        nonlocal last, heard
        now = time.monotonic()
        heard += 1
        if heard > MANY and now - last < 0.05 and progress != total:
            return  # a server may send thousands; people need a few
        last = now
        fraction = min(1.0, max(0.0, progress / total)) if total else 0.0
        words = message if message and len(message) <= LONGEST_PROGRESS else ""
        # cut last: half a secret would not be found
        context.progress(fraction, f"{server}: {defused(scrub(words))[:200]}")

    return tell


def unusable_tools(tools: list[dict[str, Any]]) -> dict[str, str]:
    """What is wrong with those of its tools whose schema is none."""
    refused: dict[str, str] = {}
    for local, definition in sort_out(tools)[0].items():
        try:
            Checker(definition.input_schema).check()
        except Unusable as error:
            refused[local] = f"its input schema cannot be used: {defused(str(error))}"
    return refused
