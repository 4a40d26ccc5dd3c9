"""What a server answers is a stranger's word: cut to size, made harmless to show, marked with where it is from."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolgate.core.display import encodable, spelled_out
from toolgate.core.errors import CallError, Failed
from toolgate.features.servers.definitions import Definition
from toolgate.features.servers.schema import Checker, Unusable

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
