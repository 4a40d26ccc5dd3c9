"""What a program can see of the project: nothing that its mount keeps shut, whichever way it tries."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .running import POLICY, VIEWING, good, opened

FREE = POLICY | VIEWING
SEARCH = """\
import os
seen = []
def look(path):
    try:
        with open(path, 'rb') as file: seen.append(file.read(4096))
    except OSError: pass
project = os.environ['PROJECT']
for top in (project, '/work', '/tmp', '/proc/self/root' + project, '/proc/self/cwd', '/proc/1/root' + project, '/dev/shm'):
    for base, folders, files in os.walk(top, followlinks=False):
        for name in files: look(os.path.join(base, name))
for path in {paths!r}: look(path.replace('/project', project))
for number in range(64): look(f'/proc/self/fd/{{number}}/.env')
print(b'do-not-read-me' in b''.join(seen), len(seen) > 3)
"""
WAYS = [
    "/project/.env", "/project/./.env", "/project/src/../.env", "/project/src/server.key", "/project/.git/config",
    "/project/near", "/project/far", "/project/folder/config", "/project/hard.txt", "/proc/self/root/project/.env",
    "/project/.toolgate/ledger.db", "/project/odd/x",
]  # fmt: skip


def furnish(root: Path) -> None:
    """Ways around a name: links near and far, a second name of the same file, a link to a directory."""
    (root / "near").symlink_to(".env")
    (root / "far").symlink_to(root / ".env")
    (root / "folder").symlink_to(".git")
    os.link(root / ".env", root / "hard.txt")
    (root / "odd").mkdir()
    os.mkfifo(root / "odd" / "x")


@pytest.mark.parametrize("project", ["read", "overlay"])
async def test_no_way_leads_to_what_the_mount_keeps_shut(root: Path, project: str, mode: str) -> None:
    furnish(root)
    async with opened(root, policy=FREE) as (gate, _):
        args = {"code": SEARCH.format(paths=WAYS), "project": project}
        found = good(await gate.call("exec.python", args))
        assert found["stdout"] == "False True\n", found["stderr"]


async def test_names_moved_or_linked_in_the_view_show_nothing_more(root: Path, mode: str) -> None:
    furnish(root)
    async with opened(root, policy=FREE) as (gate, _):
        program = """\
import os, shutil, subprocess
os.chdir(os.environ['PROJECT'])
def attempt(work):
    try: return work()
    except OSError as error: return None
attempt(lambda: os.rename('src', 'moved'))
attempt(lambda: shutil.copytree('src', 'copied'))
attempt(lambda: os.rename('.git', 'history'))
attempt(lambda: os.link('.env', 'second'))
attempt(lambda: os.symlink('.env', 'third'))
attempt(lambda: os.mkdir('.git'))
attempt(lambda: os.replace('near', 'fourth'))
for name in ('trusted.overlay.redirect', 'user.overlay.redirect', 'user.overlay.opaque', 'user.overlay.metacopy'):
    for target in ('.git', 'src', '.'):
        attempt(lambda: os.setxattr(target, name, b'/.git'))
""" + SEARCH.format(paths=[*WAYS, *(f"/project/{name}" for name in ("moved/server.key", "copied/server.key", "history/config", "second", "third", "fourth", ".git/config"))])  # fmt: skip
        found = good(await gate.call("exec.python", {"code": program, "project": "overlay"}))
        assert found["stdout"] == "False True\n", found["stderr"]


async def test_a_view_lists_what_tools_would_list(root: Path, mode: str) -> None:
    (root / ".github").mkdir()
    (root / ".github" / "ci.yml").write_text("on: push")
    (root / ".vscode").mkdir()
    (root / ".vscode" / "settings.json").write_text("{}")
    (root / ".vscode" / "secret.json").write_text("do-not-read-me-4")
    async with opened(root, policy=FREE) as (gate, _):
        program = "import os\nos.chdir(os.environ['PROJECT'])\nprint(sorted(os.path.relpath(os.path.join(b, f), '.') for b, _, fs in os.walk('.') for f in fs))"
        found = good(await gate.call("exec.python", {"code": program, "project": "read"}))
        assert found["stdout"].strip() == str(
            [".github/ci.yml", ".vscode/settings.json", "a.txt", "b.txt", "src/app.py", "src/deep/data.bin"]
        )


async def test_private_files_of_the_owner_can_be_read_and_changed_in_the_view(root: Path, mode: str) -> None:
    os.chmod(root / "a.txt", 0o600)
    os.chmod(root / "src", 0o700)
    async with opened(root, policy=FREE, human=False) as (gate, _):
        program = "import os\nos.chdir(os.environ['PROJECT'])\nprint(open('a.txt').read(), open('src/app.py').read())\nopen('a.txt', 'a').write('x')\nopen('src/new', 'w').write('y')"
        found = good(await gate.call("exec.python", {"code": program, "project": "overlay"}, wait=False))
        assert found["exit_code"] == 0, found["stderr"]
        assert [file["path"] for file in found["proposal"]["files"]] == ["a.txt", "src/new"]


async def test_without_a_view_there_is_no_project(root: Path) -> None:
    async with opened(root) as (gate, _):
        found = good(await gate.call("exec.python", {"code": "import os\nprint(os.listdir('/project'))"}))
        assert found["stdout"] in ("[]\n", "")
