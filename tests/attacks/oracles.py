"""Two projects that differ only in the characters of their secrets, and ways of asking about those characters."""

from __future__ import annotations

import base64
import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from repositories import Repo
from toolgate.facade import Gate

CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "ada",
    "personas": {"ada": {"phase": "contribute"}},
    "limits": {
        "persona": {"per_minute": 1_000_000, "per_hour": 1_000_000},
        "global": {"per_minute": 1_000_000, "per_hour": 1_000_000},
    },
    "mounts": {"project": {"path": ".", "max_bytes": 20_000}},
    "policy": {
        "rules": [{"name": "a", "persona": "*", "tools": ["fs.*", "code.*", "events.*"], "decision": "allow"}]
    },
}


class Values(NamedTuple):
    token: str
    """One line."""
    rows: str
    """Several short ones."""


ONE = Values("a7Qk2mZx9" + "LpR4tVw8Y" + "bN3cDf6GhJ5sKe", "u7-k\nq2-m\nx9-p\nr4-t")
OTHER = Values("-b3nTxE8w" + "M1vC6pL0o" + "S4uA9iR2yHd5FZ", "-b3n\nt0-e\nw8-1\nv6-c")
assert [len(value) for value in ONE] == [len(value) for value in OTHER]


def files(values: Values) -> dict[str, str | bytes]:
    token, rows = values
    coded = base64.b64encode(f"user=app;key={token};".encode()).decode()
    return {
        "config.py": f'"""Settings."""\nAPI = "{token}"\n\n\ndef key():\n    return API\n',
        "src/bare.py": f"{token}\nafter = 1\n",
        "rows.txt": f"begin\n{rows}\nend\n",
        "wrapped.txt": "begin\n" + "\n".join(textwrap.wrap(coded, 9)) + "\nend\n",
        "dump.txt": "begin\n" + "\n".join(token.encode().hex(" ").split()) + "\nend\n",
        "url.txt": "q=" + "".join(f"%{ord(char):02X}" for char in token) + "&r=1\n",
        "wide.txt": b"\xff\xfe" + f'API = "{token}"\nnext\n'.encode("utf-16-le"),
        "long.txt": "x" * 470 + f"needle {token} tail " + "y" * 600 + "\n",
        "outline.py": f"def f_{token}():\n    pass\n\n\ndef g():\n    pass\n",
        "big.log": "line\n" * 6_000 + f"{rows}\n" + "line\n" * 10 + f'API = "{token}"\n',
        f"names/key-{token}.txt": "named\n",
        "names/other.txt": "named too\n",
    }


def make(root: Path, values: Values, fillers: int) -> None:
    repo = Repo(root)
    first = files(values)
    more = {f"filler/f{number}.txt": f"filler {number}\n" for number in range(fillers)}
    repo.commit("begin", {".gitignore": ".toolgate\nfiller\n", **first, **more})
    repo.commit(f"use {values.token} from now on\n\nand\n{values.rows}\nfor the rest", {"a.txt": "a\n"})
    changed = str(first["rows.txt"]).replace("\nend", "\nthe end")
    repo.commit("change a row", {"rows.txt": changed})
    repo.write({"dump.txt": str(first["dump.txt"]).replace("\nend", "\nthe end")})


class Way(NamedTuple):
    tool: str
    args: dict[str, Any]


def ways() -> Iterator[Way]:
    """Guesses are of the one value: where an answer depends on the characters, the other project says something else."""
    for part in (_searches, _reads, _changes, _history, _names):
        yield from part()


token, rows = ONE
row = rows.split("\n")
hexed = token.encode().hex(" ").split()
coded = base64.b64encode(f"user=app;key={token};".encode()).decode()


def _searches() -> Iterator[Way]:
    for tool in ("code.search", "fs.search"):
        for pattern in (
            'API = ".{8}', 'API = ".{16}(.*)$', f'API = "{token[:4]}', 'API = "[a-m]', 'API = "[^a-m]', f"{token[:3]}",
            f"{token[3:6]}", r'API = "\b', r'API = "\B', r'"\w', f"^{token[0]}", f"{token[-1]}$", f'{token[-1]}"$',
            r"^\w{32}$", "^[a-z0-9]{32}$", r'(?i)api = "(?P<x>[a-m])', r'API = "\p{Ll}', r"API.*\d{2}", f"^{row[1]}$",
            row[0][:2], r"^\w\d-\w$", f"^{hexed[0]}$", coded[14:18], "%61%37", f"needle {token[0]}", r"needle \w+ tail",
            "(secret:|x)TOKEN", rf"{token[:2]}|after", r"^after", r"\]", "^$",
        ):  # fmt: skip
            yield Way(tool, {"pattern": pattern})
    for pattern in (f"API.*{token[:5]}", 'API = "[0-9]', r'API = "\S{31}e"'):
        yield Way("code.search", {"pattern": pattern, "case_sensitive": True, "paths": ["config.py"]})
        yield Way("code.search", {"pattern": pattern, "max_matches": 1, "context_lines": 5})
    yield Way("code.search", {"pattern": "named", "file_pattern": f"key-{token[0]}*"})
    yield Way("code.search", {"pattern": "named", "exclude_patterns": [f"key-{token[0]}*"]})


def _reads() -> Iterator[Way]:
    for lines in ([[2, 2]], [[3, 3]], [[3, 4]], [[1, 2], [4, 5]]):
        yield Way("fs.read", {"path": "rows.txt", "ranges": lines})
        yield Way("fs.read", {"path": "dump.txt", "ranges": lines})
        yield Way("fs.read", {"path": "wrapped.txt", "ranges": lines})
    yield Way("fs.read", {"path": "big.log", "ranges": [[6_002, 6_002]]})
    yield Way("fs.read", {"path": "big.log", "ranges": [[6_003, 6_020]]})
    yield Way("fs.read", {"path": "wide.txt"})
    yield Way("fs.read", {"path": "rows.txt"})
    for first in (2, 3, 5):
        for path in ("rows.txt", "dump.txt", "wrapped.txt"):
            yield Way("code.read", {"path": path, "start_line": first, "max_lines": 1, "include_lines": True})
            yield Way("code.blame", {"path": path, "start_line": first, "end_line": first})
    yield Way("code.read", {"path": "config.py", "syntax_highlight": True})
    yield Way("code.read", {"path": "outline.py"})
    yield Way("code.outline", {"path": "config.py"})
    yield Way("code.outline", {"path": "outline.py"})


def _changes() -> Iterator[Way]:
    for find in (
        f'API = "{token[:3]}', token[:2], f"{token[-2:]}\"", f"begin\n{row[0]}\n", row[1], "\n" + row[2] + "\n",
        f"begin\n{hexed[0]}", f'API = "{token}"', coded[14:18], "q=%61",
    ):  # fmt: skip
        for path in ("config.py", "rows.txt", "dump.txt", "wrapped.txt", "url.txt", "wide.txt"):
            yield Way("fs.edit", {"path": path, "find": find, "replace": "x"})
    for path, old, line in (
        ("rows.txt", row[0], 2), ("rows.txt", row[1], 3), ("dump.txt", hexed[0], 2), ("dump.txt", hexed[5], 7),
        ("config.py", f'API = "{token[:8]}"', 2), ("wrapped.txt", coded[:9], 2),
    ):  # fmt: skip
        hunk = f"@@ -{line},2 +{line},2 @@\n {old}\n-nothing\n+x\n"
        yield Way("fs.patch", {"path": path, "diff": hunk})
        yield Way("fs.patch", {"path": path, "diff": f"@@ -{line},1 +{line},1 @@\n-{old}\n+x\n"})
        yield Way("fs.patch", {"path": path, "diff": f"@@ -90,2 +90,2 @@\n {old}\n-nothing\n+x\n"})
    yield Way("fs.write", {"path": "config.py", "content": "x", "if_match": "sha256:" + "0" * 64})


def _history() -> Iterator[Way]:
    for grep in (token[:3], f"use {token[0]}", f"use {token}", row[0][:2], row[2], "from now", "secret:"):
        yield Way("code.log", {"grep": grep})
        yield Way("code.log", {"grep": grep, "include_diff": True, "path": "a.txt", "limit": 1, "skip": 1})
        yield Way("code.log", {"author": grep})
    yield Way("code.log", {"include_diff": True})
    yield Way("code.show", {"commit": "HEAD"})
    yield Way("code.show", {"commit": "HEAD~1"})
    for around in (0, 1, 2, 3):
        yield Way("code.diff", {"context_lines": around})
        yield Way(
            "code.diff", {"base": "HEAD~1", "compare": "HEAD", "context_lines": around, "view": "split"}
        )
        yield Way(
            "code.diff", {"base": "HEAD~2", "compare": "HEAD", "max_diff_size": 40, "context_lines": around}
        )


def _names() -> Iterator[Way]:
    for guess in (
        f"key-{token[0]}*",
        f"key-{token[:4]}*",
        f"*{token[-3:]}.txt",
        "key-[a-m]*",
        "key-????????????*",
    ):
        yield Way("fs.find", {"base": ".", "pattern": guess})
        yield Way("fs.list", {"path": "names", "glob": guess})
        yield Way("code.list", {"pattern": guess})
        yield Way("code.list", {"pattern": f"names/{guess}"})
    yield Way("fs.read", {"path": f"names/key-{token[:-3]}.txt"})
    yield Way("fs.list", {"path": "names", "details": False})
    yield Way("code.list", {"directory": "names"})
    yield Way("events.query", {"file_path": token[:8]})


_HASHES = re.compile(r"sha256:[0-9a-f]{64}|\b[0-9a-f]{40}\b|\b[0-9a-f]{10}\b")
"""Of whole files and of commits: they are documented."""
_MOVING = re.compile(
    r'"(last_modified|modified|duration_ms|duration_us|at|call_id|call|ref|took_us)": ?("[^"]*"|[0-9.]+)|c_[0-9a-zA-Z]+'
)


async def answer(gate: Gate, way: Way) -> str:
    told: list[str] = []
    done = await gate.call(way.tool, way.args, wait=False, part=lambda part: told.append(str(part)),
                           progress=lambda at, said: told.append(said))  # fmt: skip
    error = done.error
    shown = [done.data, error and [error.code, error.message, error.fix], sorted(told)]
    return _MOVING.sub("-", _HASHES.sub("#", json.dumps(shown, default=str)))


def pieces(values: Values) -> list[str]:
    """What would be some of a value; its rows are too short to be told from other text."""
    return [values.token[at : at + 6] for at in range(0, len(values.token) - 6, 2)]
