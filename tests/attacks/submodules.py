"""A submodule that wants to run something and to show something from outside, in a repository that is plain otherwise."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .hostile import SECRET, Hostile

NAME = "module"


class WithSubmodule(Hostile):
    """Its gitlink moves in the last commit, `.gitmodules` asks for programs, its git directory is armed."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        older = self.outside.head()
        newer = self.outside.commit("later", {"loot.txt": f"{SECRET} later\n"})
        script = Path(self.program)
        script.write_text(f"#!/bin/sh\ntouch {self.marker}\n")
        script.chmod(0o755)
        self.write({".gitmodules": self.gitmodules()})
        self.git("add", ".gitmodules")
        for number, commit in enumerate((older, newer)):
            self.git("update-index", "--add", "--cacheinfo", f"160000,{commit},{NAME}")
            self.seal(f"submodule {number}")
        self._git_directory()
        self._settings()

    def gitmodules(self, *more: str) -> str:
        """With lines for the first of its two entries. The path of the second is that of the first for a careless reader."""
        lines = "".join(f"\t{line}\n" for line in more)
        return f"""[submodule "{NAME}"]
	path = {NAME}
	url = ext::{self.program}
	ignore = none
	fetchRecurseSubmodules = true
{lines}[submodule "twin"]
	path = "{NAME}\r"
	url = {self.outside.root}
"""

    def worsen(self) -> None:
        """What git has learned to refuse, and dies of: what git reads of it must not stop us either."""
        run = self.program
        more = f"""[submodule "../../../outside"]
	path = ../outside
	url = {self.outside.root}
[submodule "option"]
	path = -u{run}
	url = -oProxyCommand={run}
"""
        self.write(
            {".gitmodules": self.gitmodules(f"update = !{run}", f"branch = --upload-pack={run}") + more}
        )

    @property
    def modules(self) -> Path:
        return self.root / ".git" / "modules" / NAME

    def _git_directory(self) -> None:
        """All of the other repository, where git keeps those of submodules, with settings that run something."""
        shutil.copytree(self.outside.root / ".git", self.modules)
        run = self.program
        arm(self.modules, run, f"worktree = {self.root / NAME}")
        (self.root / NAME).mkdir()
        (self.root / NAME / ".git").write_text(f"gitdir: ../.git/modules/{NAME}\n")

    def _settings(self) -> None:
        """What somebody who ran `git submodule init` on it would have, and a wish to see what is inside."""
        run = self.program
        with (self.root / ".git" / "config").open("a") as config:
            config.write(
                f"""[submodule "{NAME}"]
	active = true
	url = ext::{run}
	update = !{run}
[diff]
	submodule = diff
[status]
	submoduleSummary = true
[protocol "ext"]
	allow = always
"""
            )


def arm(git: Path, run: str, *settings: str) -> None:
    """Make a git directory run a program at every turn."""
    more = "".join(f"\t{line}\n" for line in settings)
    (git / "config").write_text(
        f"""[core]
	repositoryformatversion = 0
	bare = false
	fsmonitor = {run}
	sshCommand = {run}
	hooksPath = {git}/hooks
	pager = {run}
	attributesFile = {git}/attributes
{more}[diff]
	external = {run}
[diff "evil"]
	textconv = {run}
[filter "evil"]
	clean = {run}
	smudge = {run}
	process = {run}
[remote "origin"]
	url = ext::{run}
[protocol "ext"]
	allow = always
"""
    )
    (git / "attributes").write_text("* diff=evil filter=evil\n")
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        hook = git / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{run}\n")
        hook.chmod(0o755)


def calls() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every tool of `code.*` on the submodule, around it and in the commits that moved it."""
    for revision in (
        "HEAD",
        "HEAD~1",
        "HEAD:module",
        "HEAD~1:module/loot.txt",
        "module",
        "refs/modules/main",
    ):
        yield "code.show", {"commit": revision}
        yield "code.diff", {"base": revision}
        yield "code.diff", {"base": "HEAD~2", "compare": revision}
    paths = (
        NAME, f"{NAME}/", f"{NAME}/loot.txt", f"{NAME}/a.txt", f"{NAME}/.git", f"{NAME}/.git/config", f".git/modules/{NAME}/config",
        ".gitmodules", ".", "-u", f"{NAME}\r", "../outside",
    )  # fmt: skip
    for path in paths:
        yield "code.log", {"path": path, "include_diff": True}
        yield "code.blame", {"path": path}
        yield "code.diff", {"paths": [path]}
        yield "code.diff", {"paths": [path], "base": "HEAD~1", "compare": "HEAD"}
        yield "code.read", {"path": path}
        yield "code.outline", {"path": path}
        yield "code.list", {"directory": path, "include_hidden": True}
        yield "code.search", {"pattern": "hunter2", "paths": [path], "exclude_patterns": []}
    yield "code.diff", {}
    yield "code.log", {"include_diff": True, "limit": 100}
