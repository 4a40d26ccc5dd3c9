"""Path tricks of every kind against every fs tool: nothing outside is read or written, no blocked name comes out.

Each trick is tried with each tool. What must hold afterwards is the same for all: what is outside is as it was, none of
its content was said, no file with a blocked name was read, changed or made.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.core.result import Result
from toolgate.policy.hard import is_blocked

CANARY = "canary-7f3a"
"""What is outside says this."""
SECRET = "secret-91bc"
"""What has a blocked name says this."""
ROOM = {"per_minute": 1_000_000, "per_hour": 1_000_000}
CONFIG: dict[str, Any] = {
    "version": 1,
    "scan": {"hidden": "allow"},  # odd names must be stopped by the mounts, or be harmless; not by a question
    "default_persona": "thief",
    "personas": {"thief": {"phase": "collaborate", "allow": ["fs.*"], "mounts": ["project", "scratch", "garden"]}},
    "mounts": {"garden": {"path": "garden"}},
    "limits": {"global": ROOM, "persona": ROOM},
}  # fmt: skip
BLOCKED_FILES = (
    ".env",
    ".git/config",
    "sub/.env.local",
    "id_rsa",
    "server.pem",
    "secrets/token",
    "my_private_key",
)

TOOLS: dict[str, dict[str, Any]] = {
    "list": {},
    "find": {"pattern": "*"},
    "read": {},
    "hash": {},
    "ensure_dir": {},
    "write": {"content": "owned"},
    "append": {"text": "owned"},
    "edit": {"find": "a", "replace": "owned", "all": True},
    "move": {"new_path": "loot"},
    "delete": {},
    "save": {"content": "owned"},
}

OUTWARDS = (
    "../outside/page", "..", "../", "a/../../outside/page", "./../outside/page", "sub/../../outside/page",
    "/etc/passwd", "//etc/passwd", "/", "///", "{outside}/page", "/proc/self/root{outside}/page",
    "~", "~/page", "~root/.bashrc", "file:///etc/passwd", "file:/etc/passwd", "file://localhost/etc/passwd",
    "FILE:///etc/passwd", "http://localhost/page", "C:\\page", "C:/page", "c:page", "D:", "\\\\host\\share\\page",
    "//host/share/page", "\\\\?\\C:\\page", "\\\\.\\pipe\\x", "..\\outside\\page", "sub\\..\\..\\outside\\page",
    "project:/etc/passwd", "project:../outside/page", "scratch:../../../outside/page", "garden:../../outside/page",
    "outside:page", "Project:a.txt", "project:project:a.txt", ":a.txt", "a.txt:stream", "a.txt::$DATA", "x:y:z",
    "a\0.txt", "\0", "../outside/page\0.txt", "a\n.txt", "a\r.txt", "a\x1b[31m.txt", "a\x7f.txt", "\x01",
    "n" * 256, "é" * 128, "d/" * 3000, "x" * 5000, "\ud800", "a/\udcff/b",
)  # fmt: skip
"""Spellings that no tool may accept."""

ODD = (
    "%2e%2e/outside/page", "%2e%2e%2foutside%2fpage", "..%2foutside", "%252e%252e/page", "..%c0%af..%c0%afpage",
    "\u2025/outside/page", "\uff0e\uff0e/outside/page", "\u2024\u2024/outside/page", "..\u2215outside\u2215page",
    "..\uff0foutside", "..\u2044outside", "..;/outside/page", ".../outside/page", "....//outside/page", ". ./outside/page",
    ".. /outside/page", "..\u200b/outside/page", "\u200b../outside/page", "..\u00ad/page", "$HOME/page", "${{HOME}}/page",
    "`id`", "$(id)", "a;id", "a|id", "-rf", "--output=x", "*", "?", "[a]", "{{a,b}}", "CON", "NUL", "aux.txt", "%00", "a%00.txt",
    "\u202egpj.exe", "sub/./././a.txt", "sub//a.txt", "a.txt/", "a.txt/.", "a.txt/x", "a.txt.", "a.txt ", " a.txt",
)  # fmt: skip
"""Spellings that may name something inside, but must not lead anywhere else."""

TRAPS = (
    "link_file", "link_dir", "link_dir/page", "link_root/etc/passwd", "link_up/outside/page", "link_chain", "sub/link_deep/page",
    "link_proc", "link_proc/environ", "link_fd", "link_dangling_out", "circle_a", "hard", "fifo", "null", "socket",
    "link_abs_inside", "garden:link_out", "garden:link_out/page",
)  # fmt: skip
"""What lies in the project and leads out of it, or is no file."""

SHUT = (
    ".env", ".ENV", ".Env", ".env.", ".env ", ".env. .", "\uff0eenv", ".\uff45\uff4e\uff56", ".e\u00adnv", ".env\u200b", "\u2060.env",
    ".\u2139env".replace("\u2139", ""), "./.env", "sub/../.env".replace("sub/../", ""), "sub/.env.local", "sub/.ENV.production",
    "prod.env", ".git", ".git/config", ".GIT/config", ".Git/hooks/pre-commit", ".git./config", ".g\u200bit/config", "sub/.git/x",
    ".gıt/config".replace("ı", "i"), ".toolgate", ".toolgate/ledger.db", ".TOOLGATE/images/x", ".toolgate/scratch/x",
    ".t\u00adoolgate/x", "id_rsa", "ID_RSA", "id_rsa.pub", "\u2170d_rsa", "id_ed25519", "server.pem", "SERVER.PEM", "server.pem.",
    "server.\uff50em", "a.key", "keys/a.p12", "secrets", "secrets/token", "Secrets/token", "SECRETS/TOKEN", "secret\u017f/token",
    "my_private_key", "My_Private_Key.txt", "credentials.json", ".ssh/config", ".aws/credentials", ".netrc", ".npmrc", ".pypirc",
    "alias_env", "alias_secrets", "alias_secrets/token", "alias_git/config", "chain_env", "sub/up_env", "alias_missing", "hard_env",
    "scratch:.env", "garden:.env", ".unlisted", ".unlisted_dir/x", "alias_unlisted",
)  # fmt: skip
"""Blocked and hidden names in every spelling, and what leads to them."""


class Place:
    """A project full of traps, and what is around it."""

    def __init__(self, base: Path) -> None:
        self.outside, self.root = base / "outside", base / "project"
        self.outside.mkdir()
        (self.outside / "page").write_text(CANARY)
        for name in ("sub", "garden", ".git", "secrets", ".unlisted_dir"):
            (self.root / name).mkdir(parents=True)
        (self.root / "a.txt").write_text("a plain page\n")
        (self.root / "sub/a.txt").write_text("a plain page\n")
        for name in (*BLOCKED_FILES, ".unlisted", ".unlisted_dir/x"):
            (self.root / name).write_text(SECRET)
        self._links()
        os.link(self.outside / "page", self.root / "hard")
        os.link(self.root / ".env", self.root / "hard_env")
        os.mkfifo(self.root / "fifo")
        os.mkfifo(self.root / "socket")  # a second special file; sockets need short addresses
        with suppress(PermissionError):
            os.mknod(self.root / "null", 0o20666, os.makedev(1, 3))
        self.around = snapshot(self.outside)
        self.shut = {
            name: (self.root / name).read_bytes() for name in (*BLOCKED_FILES, ".unlisted", ".unlisted_dir/x")
        }

    def _links(self) -> None:
        links = {
            "link_file": self.outside / "page", "link_dir": self.outside, "link_root": "/", "link_up": "..",
            "link_chain": "link_chain2", "link_chain2": "link_file", "sub/link_deep": "../../outside",
            "link_proc": "/proc/self", "link_fd": "/proc/self/fd/0", "link_dangling_out": "../outside/none",
            "circle_a": "circle_b", "circle_b": "circle_a", "link_abs_inside": self.root / "a.txt",
            "garden/link_out": self.outside, "alias_env": ".env", "alias_secrets": "secrets", "alias_git": ".git",
            "chain_env": "sub/up_env", "sub/up_env": "../.env", "alias_missing": ".env.none", "alias_unlisted": ".unlisted",
        }  # fmt: skip
        for name, target in links.items():
            (self.root / name).symlink_to(target)

    def spell(self, path: str) -> str:
        return path.replace("{outside}", str(self.outside))

    def check(self, results: list[Result]) -> None:
        said = json.dumps([asdict(result) for result in results], default=str)
        assert CANARY not in said
        assert SECRET not in said
        assert "root:" not in said  # /etc/passwd
        assert snapshot(self.outside) == self.around
        for name, content in self.shut.items():
            assert (self.root / name).read_bytes() == content, name
        made = [path.relative_to(self.root) for path in self.root.rglob("*") if ".toolgate" not in path.parts]
        known = {*BLOCKED_FILES, ".git", "secrets"}
        assert [
            str(path) for path in made if any(map(is_blocked, path.parts)) and str(path) not in known
        ] == []


def snapshot(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(directory)): (path.read_bytes(), path.stat().st_mode)
        for path in sorted(directory.rglob("*"))
    }


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def attempts(place: Place, path: str) -> dict[str, Result]:
    """Every tool with this path; a move also the other way round."""
    found: dict[str, Result] = {}
    async with toolgate.open(place.root, CONFIG, "memory") as gate:
        for verb, more in TOOLS.items():
            first = "base" if verb == "find" else "path"
            call = gate.call(f"fs.{verb}", {first: path, **more})
            found[verb] = await asyncio.wait_for(call, 20)
        to_there = gate.call("fs.move", {"path": "a.txt", "new_path": path})
        found["move there"] = await asyncio.wait_for(to_there, 20)
    return found


def ident(path: str) -> str:
    return ascii(path if len(path) <= 40 else f"{path[:20]}...{len(path)}")


@pytest.mark.parametrize("path", OUTWARDS, ids=ident)
async def test_a_path_that_is_not_plainly_inside_is_refused_by_every_tool(place: Place, path: str) -> None:
    found = await attempts(place, place.spell(path))
    place.check(list(found.values()))
    assert {verb: result.data for verb, result in found.items() if result.ok} == {}


@pytest.mark.parametrize("path", ODD, ids=ident)
async def test_an_odd_spelling_leads_nowhere_else(place: Place, path: str) -> None:
    found = await attempts(place, place.spell(path))
    place.check(list(found.values()))


@pytest.mark.parametrize("path", TRAPS, ids=ident)
async def test_what_leads_out_is_refused_by_every_tool(place: Place, path: str) -> None:
    found = await attempts(place, path)
    place.check(list(found.values()))
    allowed = {"save"} if ":" not in path else set()  # a plain path means scratch there, where no trap lies
    assert {verb for verb, result in found.items() if result.ok} <= allowed


@pytest.mark.parametrize("path", SHUT, ids=ident)
async def test_a_shut_name_stays_shut_in_every_spelling(place: Place, path: str) -> None:
    found = await attempts(place, path)
    place.check(list(found.values()))
    allowed = {"save"} if path.startswith(("alias", "chain", "hard", "sub/up")) else set()
    assert {verb for verb, result in found.items() if result.ok} <= allowed


async def test_nothing_tells_whether_something_exists_outside(place: Place) -> None:
    pairs = [
        ("../outside/page", "../outside/none"),
        ("link_dir/page", "link_dir/none"),
        ("/etc/passwd", "/etc/none"),
    ]
    for there, absent in pairs:
        first, second = await attempts(place, there), await attempts(place, absent)
        for verb, result in first.items():
            other = second[verb]
            if result.error is None or other.error is None:
                assert verb == "save"
                continue
            assert result.error.code == other.error.code
            assert result.error.message.replace(there, "") == other.error.message.replace(absent, "")


async def test_walks_and_searches_by_name_show_no_shut_name(place: Place) -> None:
    async with toolgate.open(place.root, CONFIG, "memory") as gate:
        for pattern in ("*", "**/*", ".*", "**/.*", "*env*", "**/*rsa*", "secrets/*", ".git/**", "../**"):
            for verb, args in (("find", {"base": ".", "pattern": pattern}), ("list", {"glob": pattern})):
                result = await gate.call(f"fs.{verb}", args)
                if not result.ok:
                    continue
                names = result.data.get("files", []) + result.data.get("entries", [])
                shut = [name for name in names if any(map(is_blocked, name.strip("/").split("/")))]
                assert shut == []
                assert not [
                    name for name in names if name.startswith((".unlisted", "link_dir/", "link_root/"))
                ]


@contextmanager
def swapping(root: Path, outside: Path) -> Iterator[None]:
    """Names that change, all the time, between something plain and a link to what must not be seen."""
    stop = threading.Event()
    pairs = {"swap": (outside / "page", b"plain"), "swap_env": (root / ".env", b"plain")}
    (root / "real").mkdir()
    (root / "real/page").write_text("plain")

    def work() -> None:
        fresh = root / ".toolgate" / "fresh"
        while not stop.is_set():
            for name, (target, plain) in pairs.items():
                for make in (lambda t=target: fresh.symlink_to(t), lambda p=plain: fresh.write_bytes(p)):
                    make()
                    os.replace(fresh, root / name)
            for target in (outside, root / "secrets", Path("real")):
                fresh.symlink_to(target)
                os.replace(fresh, root / "swap_dir")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(10)
        assert not thread.is_alive()


async def test_names_swapped_between_check_and_use_lead_nowhere(place: Place) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("fs.read", {"path": "swap"}), ("fs.read", {"path": "swap_env"}), ("fs.hash", {"path": "swap"}),
        ("fs.read", {"path": "swap_dir/page"}), ("fs.list", {"path": "swap_dir"}), ("fs.find", {"base": "swap_dir", "pattern": "*"}),
        ("fs.write", {"path": "swap_dir/page", "content": "owned"}), ("fs.append", {"path": "swap", "text": "owned"}),
        ("fs.edit", {"path": "swap_env", "find": "plain", "replace": "owned"}), ("fs.delete", {"path": "swap_dir/page"}),
        ("fs.write", {"path": "swap_dir/new", "content": "owned"}), ("fs.move", {"path": "swap", "new_path": "swap_dir/moved"}),
    ]  # fmt: skip
    results: list[Result] = []
    loop = asyncio.get_running_loop()
    async with toolgate.open(place.root, CONFIG, "memory") as gate:
        with swapping(place.root, place.outside):
            until = loop.time() + 2.5
            while loop.time() < until:
                results += await asyncio.gather(*(gate.call(name, args) for name, args in calls))
    place.check(results)
    assert len(results) > len(calls)
    assert any(result.ok for result in results)


def test_there_are_enough_cases() -> None:
    assert len({*OUTWARDS, *ODD, *TRAPS, *SHUT}) * (len(TOOLS) + 1) >= 300
