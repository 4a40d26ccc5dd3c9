"""Random trees and patterns for comparing the engines, and what a plain rg says about them."""

from __future__ import annotations

import base64
import json
import random
import subprocess
from pathlib import Path
from typing import Any

from toolgate.workspace.search.program import find_rg

TAME = [
    "a", "b", "k", "s", "A", "K", "_", "1", " ", "ab", "foo", ".", r"\.", r"\w", r"\d", r"\s", r"\b", r"\W", r"\S",
    r"\D", "^", "$", "[ab]", "[^a]", "[a-k]", r"[\w-]", r"[^\s]", r"\t", "-", "(a|b)", "(?:ab|k)", "]", "}", r"\-",
    "[^k]", r"\/", "&", "~", "#", "[^a-k]", "[k-]", "[.*]", "a|b",
]  # fmt: skip
WILD = [
    "é", "ſ", "K", "(|a)", "[[:alpha:]]", "[a&&b]", r"\B", r"\x41", r"\p{L}", "(?i)", "(?x)", "{", "[é]", "(?s).",
    r"\n", "(", "[]a]", "(?P<n>a)", r"\<", "a{900}", r"\u{6b}", "(?-u)b", "[z-a]",
]  # fmt: skip
REPEATS = ["", "", "", "", "*", "+", "?", "*?", "+?", "{2}", "{1,3}", "{2,}"]
WILD_REPEATS = [*REPEATS, "{0}", "{60}", "**"]
PIECES = [
    "a", "b", "K", "k", "s", "S", "ſ", "K", "é", "É", "foo", "ab", "aab", " ", "\t", "_", "1", "-", ".", "\x0b",
    "\x0c", "\r", "ü", "٣", "ß", "Σς", "&", "~", "]", "}", "{", "#", "/",
]  # fmt: skip

EXTRAS = [
    ".gitignore", ".ignore", ".rgignore", "z/.gitignore", ".hidden", ".config/x", ".github/w.yml", ".env", "a/.env.local",
    "secrets/k", "key.pem", "z/.hidden/x", ".editorconfig",
]  # fmt: skip


def pattern(dice: random.Random, depth: int = 0) -> str:
    out = ""
    atoms, repeats = (TAME, REPEATS) if dice.random() < 0.85 else (WILD, WILD_REPEATS)
    for _ in range(dice.randint(1, 4)):
        inner = depth < 2 and dice.random() < 0.2
        out += (f"({pattern(dice, depth + 1)})" if inner else dice.choice(atoms)) + dice.choice(repeats)
    if dice.random() < 0.2:
        out += "|" + (pattern(dice, depth + 1) if dice.random() < 0.8 else "")
    return out


def content(dice: random.Random, strange: bool) -> bytes:
    ascii_only = not strange or dice.random() < 0.6
    lines = [
        "".join(
            piece for piece in dice.choices(PIECES, k=dice.randint(0, 8)) if piece.isascii() or not ascii_only
        )
        for _ in range(dice.randint(0, 8))
    ]
    data = "\n".join(lines).encode() + (b"\n" if dice.random() < 0.7 else b"")
    odd = dice.random() if strange else 1.0
    if odd < 0.04:
        return data + b"a\0x\n"
    if odd < 0.08:
        return data + b"\xff\xfea a\n"
    if odd < 0.10:
        return b"\xef\xbb\xbf" + data
    if odd < 0.12:
        return "\ufeffab\nfoo a\n".encode("utf-16-le")
    return data.replace(b"\n", b"\r\n") if dice.random() < 0.15 else data


def grow(dice: random.Random, root: Path, strange: bool) -> None:
    """`strange`: with content that the engine in process leaves to rg."""
    for index in range(dice.randint(1, 8)):
        folder = root / dice.choice(["a", "b.d", "z/x", "z/y/w", "a-b", ".", "Z", "é"])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{index}{dice.choice(['.py', '.txt', '', '.é', ' '])}").write_bytes(
            content(dice, strange)
        )
    _surround(dice, root, strange)


def _surround(dice: random.Random, root: Path, strange: bool) -> None:
    """Ignore files, hidden and blocked names, links: what a walk must pass over, or must not."""
    for name in dice.sample(EXTRAS, dice.randint(0, 6)):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"*\n" if name.endswith("ignore") else content(dice, strange))
    if dice.random() < 0.5:
        (root / "link").symlink_to(dice.choice(["a", "z/x", "f0", ".env", "..", "link"]))


def plain_rg(root: Path, pattern: str, case_sensitive: bool) -> set[tuple[Any, ...]] | None:
    """File, line, column and text of every matching line; None where rg refuses the pattern."""
    program = find_rg()
    assert program is not None
    args = [
        "--no-config",
        "--no-ignore",
        "--hidden",
        "--json",
        "-s" if case_sensitive else "-i",
        "-e",
        pattern,
        ".",
    ]
    ran = subprocess.run([program, *args], cwd=root, capture_output=True, timeout=60)
    if ran.returncode == 2:
        return None
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    binary = {
        each["data"]["path"]["text"]
        for each in told
        if each["type"] == "end" and each["data"]["binary_offset"] is not None
    }
    hits = [each["data"] for each in told if each["type"] == "match"]
    return {_told(each) for each in hits if each["path"]["text"] not in binary}


def _told(data: dict[str, Any]) -> tuple[Any, ...]:
    lines = data["lines"]
    raw = lines["text"].encode() if "text" in lines else base64.b64decode(lines["bytes"])
    end = len(raw.removesuffix(b"\n"))
    first = next(
        iter(data["submatches"]), {"start": end, "end": end}
    )  # rg does not say: at the end of the file
    return (
        data["path"]["text"].removeprefix("./"),
        data["line_number"],
        len(raw[: first["start"]].decode("utf-8", "replace")) + 1,
        raw[first["start"] : first["end"]].removesuffix(b"\r").decode("utf-8", "replace"),
    )
