"""What a program may be given besides its own directory: the project to read, packages, a way out."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.remote import Remote
from toolgate.core.errors import Unavailable
from toolgate.sandbox.job import Job, Limits, View


@pytest.fixture
def project() -> Iterator[Path]:
    """Where an unprivileged user can read it."""
    root = Path(tempfile.mkdtemp(dir="/tmp"))
    root.chmod(0o755)
    (root / "src").mkdir()
    (root / "src" / "a.py").write_text("a = 1\n")
    (root / ".env").write_text("TOKEN=hidden\n")
    (root / "keys").mkdir()
    (root / "keys" / "id").write_text("hidden\n")
    for path in (root, *root.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    yield root
    shutil.rmtree(root)


async def test_the_project_can_be_read_without_its_hidden_names(roomy: Remote, project: Path) -> None:
    code = (
        "import os\n"
        "print(open('/project/src/a.py').read(), sorted(os.listdir('/project')), os.listdir('/project/keys'))\n"
        "for name in ('.env', 'keys/id', 'keys/../.env', 'src/../.env'):\n"
        "    try: print('READ', open(f'/project/{name}').read())\n"
        "    except OSError as error: print(type(error).__name__)\n"
    )
    view = View(project, hidden=(".env", "keys", "not/there"))
    outcome = await roomy.run(Job("python", code, view=view))
    assert b"hidden" not in outcome.stdout
    assert b"READ" not in outcome.stdout
    assert outcome.stdout.startswith(b"a = 1\n ['.env', 'keys', 'src'] []\n"), outcome


async def test_the_project_cannot_be_written(roomy: Remote, project: Path) -> None:
    code = (
        "import os\n"
        "for act in (lambda: open('/project/src/a.py', 'w'), lambda: open('/project/new', 'w'),\n"
        "            lambda: os.remove('/project/.env'), lambda: os.rename('/project/src', '/project/gone'),\n"
        "            lambda: os.chmod('/project/src/a.py', 0), lambda: open('/project/keys/x', 'w')):\n"
        "    try: act(); print('WRITTEN')\n"
        "    except OSError: pass\n"
    )
    outcome = await roomy.run(Job("python", code, view=View(project, hidden=("keys",))))
    assert (outcome.stdout, outcome.exit_code) == (b"", 0), outcome
    assert (project / "src" / "a.py").read_text() == "a = 1\n"


async def test_a_link_out_of_the_project_leads_nowhere(roomy: Remote, project: Path) -> None:
    (project / "out").symlink_to("/etc/hostname")
    outcome = await roomy.run(Job("python", "open('/project/out')", view=View(project)))
    assert b"FileNotFoundError" in outcome.stderr


async def test_a_hidden_name_that_is_a_link_is_refused(roomy: Remote, project: Path) -> None:
    (project / "alias").symlink_to("src")
    with pytest.raises(Unavailable, match="is a link"):
        await roomy.run(Job("python", "1", view=View(project, hidden=("alias",))))


@pytest.fixture
def shelf() -> Iterator[Path]:
    root = Path(tempfile.mkdtemp(dir="/tmp"))
    for name in ("given", "other"):
        (root / name).mkdir()
        (root / name / "__init__.py").write_text(f"word = {name!r}\n")
    (root / "single.py").write_text("word = 'single'\n")
    os.system(f"chmod -R a+rX {root}")
    yield root
    shutil.rmtree(root)


async def test_only_the_packages_that_are_given_can_be_imported(sandbox: Remote, shelf: Path) -> None:
    code = (
        "import given, single; print(given.word, single.word)\n"
        "try: import other\n"
        "except ImportError: print('not here')\n"
        "try: open(given.__file__, 'w')\n"
        "except OSError: print('read only')\n"
    )
    outcome = await sandbox.run(Job("python", code, packages=(shelf / "given", shelf / "single.py")))
    assert outcome.stdout == b"given single\nnot here\nread only\n", outcome


async def test_what_is_installed_for_the_interpreter_is_not_given_by_itself(roomy: Remote) -> None:
    code = (
        "import os, sys\n"
        "for top in ('/usr/lib/python3', os.path.dirname(os.__file__)):\n"
        "    for name in ('site-packages', 'dist-packages'):\n"
        "        if os.path.isdir(f'{top}/{name}'): print(*os.listdir(f'{top}/{name}'), end='')\n"
    )
    outcome = await roomy.python(code)
    assert (outcome.stdout, outcome.exit_code) == (b"", 0), outcome


async def test_the_only_way_out_is_the_door(roomy: Remote) -> None:
    code = (
        "import urllib.request, socket\n"
        "print(urllib.request.urlopen('http://example.org/x', timeout=5).read())\n"
        "for address in (('127.0.0.1', 80), ('1.1.1.1', 3128), ('10.0.0.1', 3128)):\n"
        "    try: socket.create_connection(address, 2); print('CONNECTED', address)\n"
        "    except OSError: pass\n"
        "for family, kind in ((socket.AF_INET, socket.SOCK_DGRAM), (socket.AF_UNIX, socket.SOCK_STREAM), (16, 3), (40, 1)):\n"
        "    try: socket.socket(family, kind); print('MADE', family, kind)\n"
        "    except OSError: pass\n"
    )
    outcome = await roomy.python(code, egress=True)
    assert outcome.stdout == b"b'hello'\n", outcome
    assert [(one.method, one.url) for one in outcome.requests] == [("GET", "http://example.org/x")]


async def test_without_a_grant_there_is_no_socket_at_all(sandbox: Remote) -> None:
    code = (
        "import socket\n"
        "for family in range(46):\n"
        "    for kind in range(1, 7):\n"
        "        try: socket.socket(family, kind); print('MADE', family, kind)\n"
        "        except OSError: pass\n"
        "socket.socketpair()\n"
        "try: socket.socketpair(type=socket.SOCK_DGRAM); print('DATAGRAM')\n"
        "except OSError: pass\n"
    )
    outcome = await sandbox.python(code)
    assert (outcome.stdout, outcome.exit_code) == (b"", 0), outcome


async def test_programs_of_a_network_grant_do_not_share_a_network(roomy: Remote) -> None:
    code = "import urllib.request; print(urllib.request.urlopen('http://a/', timeout=5).read())"
    limits = Limits(wall_s=10)
    first = await roomy.run(Job("python", code, limits=limits), egress=True)
    second = await roomy.run(Job("python", code, limits=limits))
    assert first.exit_code == 0
    assert second.exit_code == 1
