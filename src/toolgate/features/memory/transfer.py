"""Export and import of memories: JSON lines that make the round trip, folders of basic-memory, exports of mem0.

An import keeps ids, dates, links and states, so that what was superseded stays so. Trust is not believed blindly: what
another program wrote comes in with low trust, unless the human who imports it says otherwise.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from toolgate.core.call import new_id
from toolgate.core.clock import SECOND
from toolgate.core.errors import InvalidArgs
from toolgate.features.memory.items import (
    CATEGORIES,
    NAMES,
    TRUST,
    ImportCount,
    MemoryItem,
    digest_of,
    has_instructions,
)
from toolgate.features.memory.memory import Memory
from toolgate.features.memory.periods import SUMMARY_TYPES, parse
from toolgate.features.memory.reader import tags_of
from toolgate.features.memory.store import ItemFilter, Writer

FORMAT = "toolgate-memory/1"
_OURS = frozenset({"scope", "version", "digest", "call", "op", "changed_at", "persona"})
"""What an import makes itself: who took it in, by which call."""
_TIMES = ("at", "created_at", "valid_from", "valid_to", "expires_at")
_LISTS = ("tags", "flags", "supersedes", "contradicts", "sources")
_PAGE = 500


async def exported(memory: Memory, scope: str, *, everything: bool = False) -> AsyncIterator[str]:
    """One item in each line, the oldest first; with `everything` also what is forgotten."""
    store = await memory.records()
    states = ("kept", "forgotten") if everything else ("kept",)
    wanted = ItemFilter(scope=scope, states=states, limit=_PAGE, oldest_first=True)
    while page := await store.find(wanted):
        for one in page:
            yield json.dumps(_line(one), ensure_ascii=False, sort_keys=True)
        if len(page) < _PAGE:
            return
        wanted = replace(wanted, after=(page[-1].at, page[-1].id))


def _line(item: MemoryItem) -> dict[str, Any]:
    told: dict[str, Any] = {"format": FORMAT}
    for name in NAMES:
        value = getattr(item, name)
        if name in _OURS or value in (None, "", ()):
            continue
        told[name] = (
            iso_exact(value) if name in _TIMES else list(value) if isinstance(value, tuple) else value
        )
    return told


def iso_exact(micros: int) -> str:
    return datetime.fromtimestamp(micros / SECOND, UTC).isoformat(timespec="microseconds")


async def take_in(memory: Memory, lines: str, scope: str, by: Writer) -> ImportCount:
    """All lines are read before the first is stored; one that is there already stays as it is."""
    items = [
        _item(number, line, scope, by) for number, line in enumerate(lines.splitlines(), 1) if line.strip()
    ]
    if not items:
        raise InvalidArgs("there is nothing to import", "give one JSON object in each line")
    for one in items:
        memory.checked(one.content)
    return await memory.put_imported(items)


def _item(number: int, line: str, scope: str, by: Writer) -> MemoryItem:
    try:
        given = json.loads(line)
    except (json.JSONDecodeError, RecursionError):
        raise InvalidArgs(f"line {number} is not JSON", "one object in each line") from None
    try:
        return _read(given, scope, by)
    except (KeyError, TypeError, ValueError, InvalidArgs) as error:
        raise InvalidArgs(
            f"line {number} is no memory: {error}", "see docs/memory.md for the format"
        ) from None


def _read(given: Any, scope: str, by: Writer) -> MemoryItem:
    if not isinstance(given, dict):
        raise ValueError(f"a {type(given).__name__}")
    unknown = set(given) - set(NAMES) - {"format"} | (set(given) & _OURS)
    if given.get("format") != FORMAT or unknown:
        raise ValueError(f"format {given.get('format')!r}, unknown fields {sorted(unknown)}")
    found: dict[str, Any] = {name: value for name, value in given.items() if name != "format"}
    for name in _TIMES:
        if name in found:
            moment = datetime.fromisoformat(found[name])
            found[name] = round(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * SECOND)
    for name in _LISTS:
        found[name] = tuple(str(one)[:500] for one in found.get(name, ()))
    found["evidence"] = tuple(
        {str(k): str(v)[:500] for k, v in one.items()} for one in found.get("evidence", ())
    )
    content = str(found.pop("content"))
    item = MemoryItem(
        **{**found, "id": str(found.get("id") or new_id("m")), "scope": scope, "content": content.strip()},
        changed_at=by.now, persona=by.persona, call=by.call, op="import", digest=digest_of(content),
    )  # fmt: skip
    item = replace(
        item, tags=tags_of(item.tags), at=item.at or by.now, created_at=item.created_at or item.at or by.now
    )
    _check(item)
    if "id" in given and (item.supersedes or item.place is not None):
        # what was put aside may be said again, and a turn at another place: each is one of its own, as it was
        item = replace(item, digest=digest_of(f"{item.id} {content}"))
    return replace(item, trust="low") if has_instructions(content) else item


def _check(item: MemoryItem) -> None:
    kinds = SUMMARY_TYPES if item.store == "summaries" else CATEGORIES
    if item.store not in ("user_memory", "summaries") or item.type not in kinds:
        raise ValueError(f"store {item.store!r}, type {item.type!r}")
    if item.trust not in TRUST or item.state not in ("kept", "forgotten"):
        raise ValueError(f"trust {item.trust!r}, state {item.state!r}")
    if item.priority is not None and not 0 <= item.priority <= 100:
        raise ValueError(f"priority {item.priority!r}")
    if item.period:
        parse(item.period)
    if not item.id.startswith("m_") or len(item.id) > 80:
        raise ValueError(f"id {item.id!r}")


def batches(lines: Iterator[str], most: int, size: int) -> Iterator[str]:
    """As many lines as one call takes."""
    part: list[str] = []
    room = size
    for line in lines:
        if part and (len(part) == most or len(line) >= room):
            yield "\n".join(part)
            part, room = [], size
        part.append(line)
        room -= len(line)
    if part:
        yield "\n".join(part)


# --- what other programs wrote ------------------------------------------------------------------------------


def read_source(path: Path, trust: str = "low") -> Iterator[str]:
    """Lines of ours from a file of JSON lines, a mem0 export (JSON), or a folder of basic-memory (Markdown)."""
    if path.is_dir():
        yield from (line for file in sorted(path.rglob("*.md")) for line in _notes(file, path, trust))
        return
    text = path.read_text("utf-8")
    if path.suffix == ".jsonl" or text.lstrip().startswith('{"format"') or f'"{FORMAT}"' in text[:2000]:
        yield from (line for line in text.splitlines() if line.strip())
        return
    try:
        data = json.loads(text)
    except json.JSONDecodeError:
        raise InvalidArgs(
            f"{path.name} is neither JSON nor JSON lines", "give a .jsonl, a mem0 .json or a folder"
        ) from None
    found = data.get("results", data.get("memories", data)) if isinstance(data, dict) else data
    if not isinstance(found, list):
        raise InvalidArgs(
            f"{path.name} holds no list of memories", "a mem0 export has `results` or `memories`"
        )
    yield from (line for one in found if (line := _mem0(one, trust)))


def _mem0(one: Any, trust: str) -> str:
    text = (one.get("memory") or one.get("data") or one.get("text")) if isinstance(one, dict) else None
    if not isinstance(text, str) or not text.strip():
        return ""
    kinds = one.get("categories") or (one.get("metadata") or {}).get("category") or ()
    words = [kinds] if isinstance(kinds, str) else list(kinds)
    told: dict[str, Any] = {
        "content": text, "trust": trust, "tags": [str(word) for word in words],
        "type": next((word for word in words if word in CATEGORIES), "fact"),
        "evidence": [{"ref": f"mem0:{one['id']}"}] if one.get("id") else [],
    }  # fmt: skip
    when = one.get("created_at")
    return _foreign(told | ({"at": when, "created_at": when} if isinstance(when, str) else {}))


def _notes(file: Path, root: Path, trust: str) -> Iterator[str]:
    """basic-memory: front matter, then observations `- [category] text #tag (context)` and relations."""
    text = file.read_text("utf-8", "replace")
    front, body = _front_matter(text)
    title = front.get("title", file.stem)
    for line in body.splitlines():
        said = line.strip()
        if not said.startswith("- ["):
            continue
        kind, _, rest = said[3:].partition("]")
        if len(kind.strip()) <= 1 and kind.strip().lower() in ("", "x"):
            continue  # a check box
        words = rest.split()
        tags = [word.lstrip("#") for word in words if word.startswith("#") and len(word) > 1]
        plain = " ".join(word for word in words if not word.startswith("#"))
        if plain:
            told = {
                "content": f"{title}: {plain}", "trust": trust, "tags": [*tags, kind.strip()],
                "type": kind.strip() if kind.strip() in CATEGORIES else "fact", "subject": title.casefold(),
                "evidence": [{"ref": f"basic-memory:{file.relative_to(root)}"}],
            }  # fmt: skip
            yield _foreign(told)


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    if not text.startswith("---\n") or "\n---" not in text[4:]:
        return {}, text
    head, _, body = text[4:].partition("\n---")
    pairs = (line.partition(":") for line in head.splitlines() if ":" in line)
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}, body


def _foreign(told: Mapping[str, Any]) -> str:
    kept = {name: value for name, value in told.items() if value not in ("", [], None)}
    return json.dumps({"format": FORMAT, **kept}, ensure_ascii=False)
