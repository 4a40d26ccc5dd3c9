"""A small project that changes under the gate in every way a file can change."""

from __future__ import annotations

import mmap
import os
import random
import subprocess
from pathlib import Path
from typing import Any

from toolgate.facade import Gate

NAMES = ("a.py", "b.py", "d/c.py", "d/e.txt")
CONFIG = """\
version: 1
personas:
  ada: {{phase: observe}}
  bob: {{phase: contribute}}
mounts: {{project: {{path: ., hidden: [{hidden}]}}}}
limits: {{global: {{per_minute: 1000000, per_hour: 1000000}}, persona: {{per_minute: 1000000, per_hour: 1000000}}}}
policy:
  rules: [{{persona: bob, tools: ["fs.*", "t.*"], decision: allow, reason: the test}}]
"""


def git(root: Path, *args: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    made = subprocess.run(["git", *who, *args], cwd=root, env=env, capture_output=True, text=True, check=True)
    return made.stdout.strip()


class World:
    def __init__(self, base: Path, seed: int) -> None:
        self.dice = random.Random(seed)
        self.root = base / "project"
        self.config = base / "gate.yaml"
        self.spare = base / "spare"
        self.count = 0
        (self.root / "d").mkdir(parents=True)
        self.spare.mkdir()
        for name in NAMES:
            (self.root / name).write_text(self.text())
        (self.root / ".gitignore").write_text(".toolgate/\n")  # as `init` does
        self.hide("")

    def with_history(self) -> World:
        git(self.root, "init", "-q")
        self.commit()
        self.commit()
        return self

    def text(self) -> str:
        """Always of the same length, so that no size gives a change away."""
        self.count += 1
        return f"def f{self.count:05}(x):\n    return {self.dice.randrange(10**6):06}\n"

    def file(self) -> Path:
        return self.root / self.dice.choice(NAMES)

    def hide(self, name: str) -> None:
        """Renamed into place, so that its inode tells the gate that the policy is another."""
        draft = self.config.with_suffix(".new")
        draft.write_text(CONFIG.format(hidden=name))
        draft.replace(self.config)

    # --- what others do ------------------------------------------------------------------------------------

    def write(self) -> None:
        self.file().write_text(self.text())

    def write_and_set_the_time_back(self) -> None:
        file = self.file()
        times = file.stat() if file.exists() else self.root.stat()
        file.write_text(self.text())
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    def write_through_a_map(self) -> None:
        file = self.file()
        content = self.text().encode()
        if file.is_file() and file.stat().st_size == len(content):
            with file.open("r+b") as stream, mmap.mmap(stream.fileno(), 0) as memory:
                memory[:] = content

    def replace(self) -> None:
        draft = self.spare / "draft"
        draft.write_text(self.text())
        draft.replace(self.file())

    def remove(self) -> None:
        self.file().unlink(missing_ok=True)

    def link(self) -> None:
        file = self.root / self.dice.choice(("a.py", "b.py"))
        file.unlink(missing_ok=True)
        file.symlink_to(self.dice.choice(("d/c.py", "d/e.txt", "../spare/outside", "gone")))

    def swap_directories(self) -> None:
        other = self.spare / "d"
        if not other.exists():
            other.mkdir()
            for name in ("c.py", "e.txt"):
                (other / name).write_text(self.text())
        middle = self.spare / "middle"
        (self.root / "d").rename(middle)
        other.rename(self.root / "d")
        middle.rename(other)

    def touch(self) -> None:
        file = self.file()
        if file.is_file():
            os.utime(file, (self.dice.randrange(10**9), self.dice.randrange(10**9)))

    def change_policy(self) -> None:
        self.hide(self.dice.choice(("", *NAMES)))

    def commit(self) -> None:
        (self.root / "log.txt").write_text(self.text())
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "-m", f"commit {self.count}")

    def move_the_branch_in_place(self) -> None:
        """As git never does: into the file that is there."""
        hashes = git(self.root, "rev-list", "--all").split()
        (self.root / ".git/refs/heads/main").write_text(self.dice.choice(hashes) + "\n")

    def pack(self) -> None:
        git(self.root, "gc", "-q")

    # --- what is asked -------------------------------------------------------------------------------------

    def question(self) -> tuple[str, dict[str, Any]]:
        name = self.dice.choice(NAMES)
        return self.dice.choice(
            [
                ("code.read", {"path": name}),
                ("code.outline", {"path": "a.py"}),
                ("fs.read", {"path": name}),
                ("code.search", {"pattern": "return"}),
                ("code.list", {}),
                ("fs.list", {"path": "d"}),
                ("fs.find", {"base": ".", "pattern": "*.py"}),
                ("code.log", {}),
                ("code.blame", {"path": "log.txt"}),
                ("code.show", {"commit": "HEAD"}),
                ("code.diff", {"base": "HEAD~1", "compare": "HEAD"}),
                ("code.diff", {}),
            ]
        )

    async def ours(self, gate: Gate) -> None:
        path = self.dice.choice(NAMES)
        await gate.call("fs.write", {"path": path, "content": self.text()}, persona="bob")


CHANGES = (
    World.write, World.replace, World.write, World.write_and_set_the_time_back, World.write_through_a_map, World.replace, World.remove, World.link,
    World.swap_directories, World.touch, World.change_policy,
)  # fmt: skip
GIT_CHANGES = (World.commit, World.move_the_branch_in_place, World.pack)
