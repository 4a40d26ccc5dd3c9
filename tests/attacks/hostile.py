"""A repository that wants to run something and to show something from outside. Every trick leaves a mark if it works."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from repositories import Repo
from toolgate.facade import Gate

SECRET = "hunter2-correct-horse"
"""In blocked files at several revisions, in an outside repository, in outside files. It must never be seen."""
BLOCKED = (".env", "deploy/server.key", "secrets/token.txt", "ID_RSA", "conf/.Env.local")
OPEN = ("a.txt", "dir/b.txt")


class Hostile(Repo):
    """Two marks: a file that any started program would write, and a secret that no result may hold."""

    def __init__(self, root: Path) -> None:
        self.marker = root.parent / "ran"
        self.outside = Repo(root.parent / "outside")
        self.outside.commit(
            "outside", {"loot.txt": SECRET, "a.txt": f"{SECRET}\n", ".gitattributes": "* diff=evil\n"}
        )
        super().__init__(root)
        for number in range(3):
            self.commit(
                f"commit {number}",
                dict.fromkeys(BLOCKED, f"{SECRET} {number}\n" * 5)
                | dict.fromkeys(OPEN, f"open {number}\n" * 8),
            )
        self.git("mv", ".env", "was-env.txt")
        self.git("mv", "a.txt", "now.key")
        self.seal("rename over the fence, both ways")
        self.git("mv", "now.key", "a.txt")
        self.git("mv", "was-env.txt", ".env")
        self.seal("and back")
        self.write({"a.txt": "changed\n", "deploy/server.key": f"{SECRET} changed\n", "c.evil": "c\n"})
        self.git("add", "c.evil")

    @property
    def program(self) -> str:
        """What every setting is told to run."""
        return str(self.marker.parent / "evil.sh")

    def arm(self) -> None:
        """Put it last: plain git itself would spring the traps."""
        script = Path(self.program)
        script.write_text(f"#!/bin/sh\ntouch {self.marker}\n")
        script.chmod(0o755)
        self.attributes()
        self.config()
        self.hooks()
        self.corners()

    def config(self) -> None:
        run = self.program
        included = self.marker.parent / "included"
        included.write_text(f"[core]\n\tfsmonitor = {run}\n[diff]\n\texternal = {run}\n")
        (self.root / ".git" / "config").write_text(
            f"""
[core]
	repositoryformatversion = 0
	bare = false
	worktree = {self.outside.root}
	fsmonitor = {run}
	pager = {run}
	editor = {run}
	sshCommand = {run}
	askPass = {run}
	hooksPath = {self.root}/.git/hooks
	attributesFile = {self.root}/attributes
	excludesFile = {self.outside.root}/loot.txt
	alternateRefsCommand = {run}
	gitProxy = {run}
	autocrlf = true; {run}
[alias]
	log = !{run}
	diff = !{run}
	diff-tree = !{run}
	blame = !{run}
	cat-file = !{run}
[pager]
	log = {run}
	diff = {run}
	blame = {run}
	show = {run}
[diff]
	external = {run}
	orderFile = {self.outside.root}/loot.txt
[diff "evil"]
	command = {run}
	textconv = {run}
	cachetextconv = true
	xfuncname = ".*"
[filter "evil"]
	clean = {run}
	smudge = {run}
	process = {run}
	required = true
[merge "evil"]
	driver = {run} %O %A %B
[gpg]
	program = {run}
[gpg "ssh"]
	program = {run}
	defaultKeyCommand = {run}
[log]
	showSignature = true
	mailmap = true
[mailmap]
	file = {self.outside.root}/loot.txt
[blame]
	ignoreRevsFile = {self.outside.root}/loot.txt
[credential]
	helper = !{run}
[remote "origin"]
	url = ext::{run}
	promisor = true
	uploadpack = {run}
	vcs = evil
[extensions]
	partialClone = origin
	worktreeConfig = true
[protocol]
	allow = always
[protocol "ext"]
	allow = always
[uploadpack]
	packObjectsHook = {run}
[include]
	path = {included}
[includeIf "gitdir:/**"]
	path = {included}
[submodule]
	recurse = true
[trace2]
	eventTarget = {self.marker}
	normalTarget = {self.marker}
"""
        )
        (self.root / ".git" / "config.worktree").write_text(f"[core]\n\tfsmonitor = {run}\n\tpager = {run}\n")

    def attributes(self) -> None:
        everything = "* diff=evil filter=evil merge=evil text working-tree-encoding=UTF-8 ident\n"
        for place in (".gitattributes", "dir/.gitattributes", ".git/info/attributes", "attributes"):
            self.write({place: everything})
        (self.root / ".mailmap").symlink_to(self.outside.root / "loot.txt")

    def hooks(self) -> None:
        for name in (
            "post-index-change",
            "fsmonitor-watchman",
            "pre-auto-gc",
            "reference-transaction",
            "post-checkout",
        ):
            hook = self.root / ".git" / "hooks" / name
            hook.parent.mkdir(exist_ok=True)
            hook.write_text(f"#!/bin/sh\ntouch {self.marker}\n")
            hook.chmod(0o755)

    def corners(self) -> None:
        """Grafts, replacements, a lying commit-graph, refs that are links, a link in place of a directory."""
        stolen = self.outside.head()
        git = self.root / ".git"
        (git / "info" / "grafts").write_text(f"{self.head_id} {stolen}\n")
        replace = git / "refs" / "replace"
        replace.mkdir(parents=True)
        (replace / self.head_id).write_text(stolen + "\n")
        (git / "refs" / "heads" / "stolen").symlink_to(self.outside.root / ".git" / "refs" / "heads" / "main")
        (git / "refs" / "linked").symlink_to(self.outside.root / ".git" / "refs" / "heads")
        (git / "refs" / "heads" / "loot").symlink_to(self.outside.root / "loot.txt")
        (git / "refs" / "heads" / "outside").write_text(stolen + "\n")
        (git / "objects" / "info" / "commit-graph").symlink_to(self.outside.root / "loot.txt")
        (git / "commondir").write_text(str(self.outside.root / ".git"))
        (git / "gitdir").write_text(str(self.outside.root / ".git"))

    @property
    def head_id(self) -> str:
        return (self.root / ".git" / "refs" / "heads" / "main").read_text().strip()


REVISIONS = (
    "HEAD", "HEAD~1", "HEAD~2", "HEAD~4", "main", "stolen", "outside", "loot", "linked/main", "refs/linked/main",
    "main@{upstream}", "HEAD@{1}", "@{-1}", "HEAD^{/commit}", ":/outside", "HEAD:.env", "HEAD~3:.env", ":.env", ":0:.env",
    "HEAD^{tree}", "HEAD..main", "main...HEAD", "^HEAD", "HEAD^!", "HEAD^@", "--output=pwned", "-O/etc/passwd", "--all",
    "--no-index", "-p", "--", "HEAD\n", "HEAD\nHEAD:.env", "HEAD\0", "HEAD HEAD", "\x1b[31m", "../outside", "/etc/passwd",
    "refs/../../outside", "FETCH_HEAD", "ORIG_HEAD", "HEAD^{blob}", "$(touch pwned)", "`touch pwned`", ";touch pwned", "x" * 5000, " ", "",
)  # fmt: skip


def calls(*, revisions: tuple[str, ...] = REVISIONS) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every tool, with every revision and path that could be of use to a thief."""
    for revision in revisions:
        yield "code.show", {"commit": revision}
        yield "code.diff", {"base": revision}
        yield "code.diff", {"compare": revision}
        yield "code.diff", {"base": "HEAD~2", "compare": revision, "view": "split", "context_lines": 100}
    for path in (
        *OPEN,
        *BLOCKED,
        "was-env.txt",
        "now.key",
        "c.evil",
        ".",
        "dir",
        ".git",
        ".git/config",
        "loot.txt",
        "--help",
    ):
        yield "code.blame", {"path": path}
        yield "code.log", {"path": path, "include_diff": True}
        yield "code.diff", {"paths": [path]}
        yield "code.diff", {"paths": [path], "base": "HEAD~1", "compare": "HEAD"}
        yield "code.diff", {"paths": [path], "base": "HEAD~2", "compare": "HEAD~1"}
    for text in ("--output=pwned", "$(touch pwned)", ".*", "\n--all", "outside"):
        yield "code.log", {"author": text, "include_diff": True}
        yield "code.log", {"grep": text, "include_diff": True}
        yield "code.log", {"since": text}
        yield "code.log", {"until": text}
    yield "code.log", {"include_diff": True, "limit": 100}


async def plunder(gate: Gate, wanted: Iterator[tuple[str, dict[str, Any]]]) -> tuple[int, list[str]]:
    """How many calls went through, and every answer, errors and all."""
    good, answers = 0, []
    for tool, args in wanted:
        result = await gate.call(tool, args)
        good += result.ok
        answers.append(
            json.dumps([tool, args, result.data, result.error and [result.error.message, result.error.fix]])
        )
    return good, answers
