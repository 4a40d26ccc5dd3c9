"""A project full of traps, and what is around it."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from repositories import Repo
from toolgate.policy.hard import is_blocked

CANARY = "canary-7f3a"
"""What is outside says this."""
SECRET = "secret-91bc"
"""What has a blocked name says this."""
INNER = "inner-5d1e"
"""What is in a mount within the project says this: it is reached as that mount, or not at all."""
BLOCKED_FILES = (
    ".env",
    "sub/.env.local",
    "id_rsa",
    "server.pem",
    "secrets/token",
    "my_private_key",
    "keys/ledger.json",
    "garden/private/x",
)
HIDDEN_FILES = (".unlisted", ".unlisted_dir/x")
PLAIN = "a plain page\n"

LINKS: dict[str, str] = {
    "link_file": "{outside}/page", "link_dir": "{outside}", "link_root": "/", "link_up": "..",
    "link_chain": "link_chain2", "link_chain2": "link_file", "sub/link_deep": "../../outside",
    "link_proc": "/proc/self", "link_fd": "/proc/self/fd/0", "link_dangling_out": "../outside/none",
    "circle_a": "circle_b", "circle_b": "circle_a", "link_abs_inside": "{root}/a.txt",
    "garden/link_out": "{outside}", "alias_env": ".env", "alias_secrets": "secrets", "alias_git": ".git",
    "chain_env": "sub/up_env", "sub/up_env": "../.env", "alias_missing": ".env.none", "alias_unlisted": ".unlisted",
    "link_cwd": "/proc/self/cwd", "link_dev": "/dev", "link_etc": "/etc", "module_link": "module/../../outside",
    "sub/up": "..", "link_net": "//localhost/c$", "link_garden": "garden", "sub/link_garden": "../garden",
    "garden/link_up": "..", "garden/link_private": "private", "link_key": "keys/ledger.json", "link_keys": "keys",
    "link_exe": "/proc/self/exe", "link_thread": "/proc/thread-self/root", "link_back": "../project/a.txt", "link_slashes": "//",
    "link_there_and_back": "sub/../..",
}  # fmt: skip


class Place:
    """Made once for many attempts; `mend` puts back what tools may rightly change, `check` looks at the rest,
    `clear` takes away what they made."""

    def __init__(self, base: Path) -> None:
        self.outside, self.root = base / "outside", base / "project"
        loot = Repo(self.outside)
        loot.commit("loot", dict.fromkeys(("page", "a.txt", "sub/a.txt", "shelf/book"), CANARY))
        repo = Repo(self.root)
        files = dict.fromkeys((*BLOCKED_FILES, *HIDDEN_FILES), SECRET)
        repo.commit("one", files | {"a.txt": "before\n", "sub/a.txt": PLAIN, "garden/open.md": INNER})
        self._links()
        self._special()
        repo.git(
            "add", "-A", "-f", "--", *(name for name in LINKS if not name.startswith("garden/")), "a.txt"
        )
        repo.git("update-index", "--add", "--cacheinfo", f"160000,{loot.head()},module")
        repo.seal("two")
        (self.root / "module").mkdir()
        (self.root / "module" / ".git").write_text(f"gitdir: {self.outside}/.git\n")
        with (self.root / ".git" / "config").open("a") as config:
            config.write(f"# {SECRET}\n")
        self.mend()
        self.around, self.shut = snapshot(self.outside), self._shut()
        self.names = {".toolgate", *os.listdir(self.root)}

    def mend(self) -> None:
        for name in ("a.txt", "sub/a.txt"):
            if not (self.root / name).is_file() or (self.root / name).read_text() != PLAIN:
                (self.root / name).write_text(PLAIN)

    def clear(self) -> None:
        """What was made in the project, which is anybody's right, is not there for the next attempt."""
        for name in set(os.listdir(self.root)) - self.names:
            made = self.root / name
            shutil.rmtree(made) if made.is_dir() and not made.is_symlink() else made.unlink()

    def _links(self) -> None:
        for name, target in LINKS.items():
            (self.root / name).symlink_to(target.format(outside=self.outside, root=self.root))
        for number in range(60):  # longer than any kernel follows
            (self.root / f"chain{number}").symlink_to(f"chain{number + 1}")
        (self.root / "chain60").symlink_to("../outside/page")
        (self.root / "long_chain").symlink_to("chain0")

    def _special(self) -> None:
        os.link(self.outside / "page", self.root / "hard")
        os.link(self.root / ".env", self.root / "hard_env")
        os.mkfifo(self.root / "fifo")
        os.mknod(self.root / "socket", stat.S_IFSOCK | 0o600)
        with suppress(PermissionError):
            os.mknod(self.root / "null", 0o20666, os.makedev(1, 3))

    def spell(self, path: str) -> str:
        return path.replace("{outside}", str(self.outside))

    def _shut(self) -> dict[str, tuple[bytes, int]]:
        """Everything with a blocked or hidden name, and the mount within: nothing may come, go or change."""
        return {
            name: found
            for name, found in snapshot(self.root, (".toolgate", "loot")).items()
            if (name in HIDDEN_FILES or name.startswith("garden") or any(map(is_blocked, name.split("/"))))
        }

    def check(self, about: str) -> None:
        assert snapshot(self.outside) == self.around, about
        assert self._shut() == self.shut, about


def snapshot(directory: Path, without: tuple[str, ...] = ()) -> dict[str, tuple[bytes, int]]:
    """Every name below, with its mode, and the content of what is a file or a link."""
    found: dict[str, tuple[bytes, int]] = {}
    todo = [""]
    while todo:
        below = todo.pop()
        with os.scandir(directory / below) as entries:
            for entry in entries:
                name = below + entry.name
                if name in without:
                    continue
                mode, content = entry.stat(follow_symlinks=False).st_mode, b""
                if stat.S_ISDIR(mode):
                    todo.append(name + "/")
                elif stat.S_ISLNK(mode):
                    content = os.fsencode(os.readlink(entry.path))
                elif stat.S_ISREG(mode):
                    content = Path(entry.path).read_bytes()
                found[name] = (content, mode)
    return found
