"""Knowledge: folders of documents, indexed piece by piece for everybody in the project.

A human names a folder; its texts are cut at their headings within the model's budget, code blocks stay whole. A file is taken in as one: whoever is
interrupted goes on with the next. What looks like a secret is masked before it is indexed, hidden files are left out.
So is what the folder's mount refuses to show, and whatever lies in another mount: everybody reads what is indexed.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toolgate.core.errors import BlockedPath, CallError, InvalidArgs, NotFound
from toolgate.core.paths import MountPath
from toolgate.features.memory.memory import Memory
from toolgate.policy.hard import is_blocked
from toolgate.recall.chunking import chunk, token_counter
from toolgate.recall.engine import Item
from toolgate.storage.tables import Statement

if TYPE_CHECKING:
    from toolgate.facade import Gate

SCOPE = "knowledge"
SUFFIXES = frozenset({".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".yaml", ".yml"})
KINDS = ("document", "tool", "agent", "task", "template")
MAX_FILE = 4 << 20
Progress = Callable[[float, str], None]


class DocumentPiece(NamedTuple):
    heading: str
    content: str


class Synced(NamedTuple):
    files: int
    """That were new or others."""
    same: int
    gone: int
    pieces: int


class Knowledge:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def sync(self, folder: Path, kind: str, progress: Progress) -> Synced:
        """Take in what is new or another, and take out what is gone."""
        await self._memory.index()
        root = await asyncio.to_thread(_placed, folder)
        if root is None:
            raise NotFound(f"there is no folder {str(folder)[:200]!r}", "name a folder of documents")
        known = {
            row["path"]: row
            for row in await self._rows("SELECT * FROM knowledge_files WHERE folder = ?", str(root))
        }
        opened = OpenFolder(self._memory.context.gate, root)
        files = await asyncio.to_thread(lambda: sorted(_documents(root, opened)))
        changed, same, pieces = 0, 0, 0
        for number, path in enumerate(files):
            progress((number + 1) / len(files), path)
            raw = await asyncio.to_thread(_read, root / path)
            digest = hashlib.sha256(raw + kind.encode()).hexdigest()
            if path in known and known[path]["digest"] == digest:
                same += 1
                continue
            changed += 1
            pieces += await self._take_in(str(root), path, kind, raw, digest)
        gone = sorted(set(known) - set(files))
        for path in gone:
            await self._take_out(str(root), path)
        return Synced(changed, same, len(gone), pieces)

    async def _take_in(self, folder: str, path: str, kind: str, raw: bytes, digest: str) -> int:
        clean = self._memory.context.services.scanner.hide(raw)
        text = str(self._memory.context.gate.redact(clean.decode("utf-8", "replace").replace("\0", "")))
        make = self._memory.tokenizer
        found = await asyncio.to_thread(
            lambda: list(pieces_of(text, Path(path).stem, make() if make else None))
        )
        ids = [_ident(folder, path, number) for number in range(len(found))]
        old = [
            row["id"]
            for row in await self._rows(
                "SELECT id FROM knowledge_pieces WHERE folder = ? AND path = ?", folder, path
            )
        ]
        index = await self._memory.index()
        await index.put(
            [
                Item(ident, SCOPE, f"{one.heading}\n{one.content}", kind)
                for ident, one in zip(ids, found, strict=True)
            ]
        )
        if left := sorted(set(old) - set(ids)):
            await index.remove(SCOPE, left)
        now = self._memory.now
        await (await self._memory.records()).tables.transaction(
            [
                Statement("DELETE FROM knowledge_pieces WHERE folder = ? AND path = ?", (folder, path)),
                *(
                    Statement(
                        "INSERT INTO knowledge_pieces (id, folder, path, number, kind, heading, content) VALUES (?, ?, ?, ?, ?, ?, ?)",
                        (ident, folder, path, number, kind, one.heading, one.content),
                    )
                    for number, (ident, one) in enumerate(zip(ids, found, strict=True))
                ),
                Statement(
                    "INSERT INTO knowledge_files (folder, path, digest, kind, pieces, at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT"
                    " (folder, path) DO UPDATE SET digest = excluded.digest, kind = excluded.kind, pieces = excluded.pieces,"
                    " at = excluded.at",
                    (folder, path, digest, kind, len(found), now),
                ),
            ]
        )  # fmt: skip
        return len(found)

    async def _take_out(self, folder: str, path: str) -> None:
        rows = await self._rows("SELECT id FROM knowledge_pieces WHERE folder = ? AND path = ?", folder, path)
        await (await self._memory.index()).remove(SCOPE, [row["id"] for row in rows])
        await (await self._memory.records()).tables.transaction(
            [
                Statement("DELETE FROM knowledge_pieces WHERE folder = ? AND path = ?", (folder, path)),
                Statement("DELETE FROM knowledge_files WHERE folder = ? AND path = ?", (folder, path)),
            ]
        )

    async def reset(self, folder: str = "") -> int:
        """Forget a folder, or all of them; the documents themselves stay where they are. How many files."""
        where = str(await asyncio.to_thread(_resolved, Path(folder))) if folder else ""
        rows = await self._rows(
            "SELECT folder, path FROM knowledge_files WHERE folder = ? OR ? = ''", where, where
        )
        for row in rows:
            await self._take_out(row["folder"], row["path"])
        return len(rows)

    async def folders(self) -> list[dict[str, Any]]:
        return await self._rows(
            "SELECT folder, kind, COUNT(*) AS files, SUM(pieces) AS pieces FROM knowledge_files GROUP BY folder, kind ORDER BY folder"
        )

    async def search(self, query: str, kinds: Sequence[str], limit: int) -> dict[str, Any]:
        if not query.strip():
            raise InvalidArgs("there is nothing to look for", "give a `query`")
        await self._conceal()
        found = await (await self._memory.index()).search(query, scope=SCOPE, limit=limit, kinds=kinds)
        rows = await self._by_id([hit.id for hit in found.hits])
        told = [
            {"source": row["path"], "heading": row["heading"], "kind": row["kind"], "content": row["content"],
             "relevance": round(hit.score, 4)}
            for hit in found.hits if (row := rows.get(hit.id)) is not None
        ]  # fmt: skip
        return {"success": True, "results": told} | ({"degraded": found.degraded} if found.degraded else {})

    async def _conceal(self) -> None:
        clean, index = self._memory.context.gate.redact, await self._memory.index()
        async for rows in self._memory.holding_secrets("knowledge_pieces", ("heading", "content")):
            texts = [(str(clean(row["heading"])), str(clean(row["content"]))) for row in rows]
            items = [
                Item(row["id"], SCOPE, f"{heading}\n{content}", row["kind"])
                for row, (heading, content) in zip(rows, texts, strict=True)
            ]
            await index.put(items)
            await (await self._memory.records()).tables.transaction(
                [
                    Statement(
                        "UPDATE knowledge_pieces SET heading = ?, content = ? WHERE id = ?",
                        (*text, row["id"]),
                    )
                    for row, text in zip(rows, texts, strict=True)
                ]
            )

    async def _by_id(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        if not ids:
            return {}
        marks = ", ".join("?" * len(ids))
        return {
            row["id"]: row
            for row in await self._rows(f"SELECT * FROM knowledge_pieces WHERE id IN ({marks})", *ids)
        }

    async def _rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        return await (await self._memory.records()).tables.fetch(sql, *values)


def _resolved(folder: Path) -> Path:
    return folder.expanduser().resolve()


def _placed(folder: Path) -> Path | None:
    root = _resolved(folder)
    return root if root.is_dir() else None


class OpenFolder:
    """What of a folder may be shown to everybody: what its own mount shows, and nothing of any other mount in it."""

    def __init__(self, gate: Gate, root: Path) -> None:
        self._places = {(gate.root / spec.path).resolve(): name for name, spec in gate.config.mounts.items()}
        self._home = self._mount_of(root)
        self._rules = gate.policy.mounts.get(self._home[1]) if self._home else None
        if self._rules is not None and self._rules.kind.scope:
            raise BlockedPath(
                f"{str(root)[:200]} is in the mount {self._rules.name}, which belongs to single users",
                "index a folder that everybody may read",
            )

    def shows(self, path: Path) -> bool:
        home = self._mount_of(path)
        if home != self._home:
            return False
        if home is None or self._rules is None:
            return not is_blocked(path.name)
        try:
            inside = MountPath.parse(f"{home[1]}:{path.relative_to(home[0]).as_posix()}")
        except CallError:
            return False
        return self._rules.refuse(inside, written=False) is None

    def _mount_of(self, path: Path) -> tuple[Path, str] | None:
        """The innermost one."""
        return next(((one, self._places[one]) for one in (path, *path.parents) if one in self._places), None)


def _documents(root: Path, opened: OpenFolder) -> Iterator[str]:
    """Names relative to the folder. Links are not followed, hidden names are left out."""
    for where, folders, names in os.walk(root, followlinks=False):
        folders[:] = [
            name for name in folders if not name.startswith(".") and opened.shows(Path(where, name))
        ]
        for name in names:
            path = Path(where, name)
            if name.startswith(".") or path.suffix.lower() not in SUFFIXES or path.is_symlink():
                continue
            if opened.shows(path):
                yield str(path.relative_to(root))


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_FILE)


def _ident(folder: str, path: str, number: int) -> str:
    return "k_" + hashlib.sha256(f"{folder}\0{path}\0{number}".encode()).hexdigest()[:32]


def pieces_of(text: str, title: str, tokenizer: Any = None) -> Iterator[DocumentPiece]:
    """Within the model's budget, each under the headings that it stands under."""
    for one in chunk(text, token_counter(tokenizer)):
        heading = " > ".join(one.headings)
        content = one.text.removeprefix(heading).strip()
        if content:
            yield DocumentPiece(" > ".join((title, *one.headings)), content)
