"""A day's task with the official client: explore, change three files, run a test, undo, verify. Once on a small shop, whose
test fails before the change, and once on a real repository: this project's own, with its history.

The client starts the very line that `toolgate init` prints. What the model reads is counted: the list of tools, and every
text and structured content of an answer.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from difflib import unified_diff
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from tests.workspace.patch.real import own_history

from faces.cli.driving import environment, finish, start
from toolgate.sandbox import probe

MOST_CALLS = 12
MOST_LISTED = 20_000
MOST_READ = 4_000
"""Characters of all answers together."""
MOST_READ_REAL = 8_000
PATIENCE = 60.0
FILES = {
    ".gitignore": ".venv/\n__pycache__/\n",
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n',
    "README.md": "# Shop\n\nPrices are net.\n",
    "src/shop/__init__.py": "",
    "src/shop/prices.py": "PRICES = {'tea': 300, 'cake': 450}\n\n\ndef price(name: str) -> int:\n    return PRICES[name]\n",
    "src/shop/cart.py": "from shop.prices import price\n\n\ndef total(names: list[str]) -> int:\n"
    '    """In cents."""\n    return sum(price(name) for name in names)\n',
    "tests/test_cart.py": "from shop.cart import total\n\n\ndef test_tax_is_added():\n    assert total(['tea', 'cake']) == 892\n",
    "tests/test_prices.py": "from shop.prices import price\n\n\ndef test_tea():\n    assert price('tea') == 300\n",
}  # fmt: skip
CHANGED = {
    "README.md": FILES["README.md"].replace("net.", "net, totals are with tax."),
    "src/shop/prices.py": FILES["src/shop/prices.py"].replace("450}\n", "450}\nTAX = 19\n"),
    "src/shop/cart.py": FILES["src/shop/cart.py"]
    .replace("import price", "import TAX, price")
    .replace("return sum(price(name) for name in names)", "net = sum(price(name) for name in names)\n    return net * (100 + TAX) // 100"),
}  # fmt: skip
PATCH = "".join(
    line
    for name, text in CHANGED.items()
    for line in unified_diff(FILES[name].splitlines(True), text.splitlines(True), f"a/{name}", f"b/{name}")
)
NEEDED = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    _environment(root)
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "Open the shop"]):
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *words], cwd=root, check=True)
    return root


@pytest.fixture
def real(tmp_path: Path) -> Path:
    root = own_history(tmp_path / "real")
    _environment(root)
    return root


def _environment(root: Path) -> None:
    """Its own, with pytest in it and a program that names its interpreter as installers write it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / ".venv"], check=True)
    site = next((root / ".venv" / "lib").glob("python3*")) / "site-packages"
    for name in NEEDED:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            place = next(iter(spec.submodule_search_locations))
            shutil.copytree(place, site / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif spec is not None and spec.origin:
            shutil.copy(spec.origin, site)
    program = root / ".venv" / "bin" / "pytest"
    program.write_text(f"#!{root}/.venv/bin/python\nimport sys\nimport pytest\nsys.exit(pytest.main())\n")
    program.chmod(0o755)


@dataclass
class Model:
    """Who calls: how often, and how many characters it had to read."""

    client: Any
    calls: int = 0
    read: int = 0
    shown: list[str] = field(default_factory=list)

    async def call(self, tool: str, **args: Any) -> str:
        self.calls += 1
        result = await self.client.call_tool(tool, args)
        text = "".join(part.text for part in result.content if part.type == "text")
        structured = json.dumps(result.structured_content) if result.structured_content else ""
        self.read += len(text) + len(structured)
        return text


async def told(*words: str, root: Path) -> Any:
    """A human at the command line, in another process."""
    return await asyncio.to_thread(lambda: finish(start(*words, "--json", cwd=root)))


def parameters(root: Path, done: Any) -> StdioServerParameters:
    entry = json.loads(done.out)["data"]["client"]["mcpServers"]["toolgate"]
    args = [*entry["args"][:-1], "builder"]  # the one that writes, instead of the default
    return StdioServerParameters(command=entry["command"], args=args, cwd=str(root), env=environment())


async def _done(root: Path, task: Any, most_read: int) -> None:
    """A task by a model at the client, whose user approves what is asked; then the proof."""
    if probe.look("auto").mode not in ("root", "userns"):
        pytest.skip("no namespaces here: a project's environment needs them")
    forms: list[str] = []

    async def user(context: Any, params: Any) -> types.ElicitResult:
        forms.append(params.message)
        return types.ElicitResult(action="accept", content={"answer": "approve"})

    server = parameters(root, await told("init", root=root))
    async with (
        asyncio.timeout(PATIENCE * 3),
        Client(server, mode="legacy", read_timeout_seconds=PATIENCE, elicitation_callback=user) as client,
    ):
        tools = (await client.list_tools()).tools
        listed = len(
            json.dumps([tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools])
        )
        model = Model(client)
        await task(model, root, forms)
    assert model.calls <= MOST_CALLS
    assert listed <= MOST_LISTED, listed
    assert model.read <= most_read, model.read
    assert (await told("ledger", "verify", root=root)).code == 0


async def _undo_the_patch(root: Path) -> None:
    events = json.loads((await told("ledger", "tail", root=root)).out)["data"]
    patched = max(row["seq"] for row in events if row["kind"] == "committed" and row["tool"] == "fs.patch")
    undone = await told("undo", str(patched), "--yes", root=root)
    assert undone.code == 0, undone.err


async def test_a_task_is_done_undone_and_proven_in_few_calls_and_characters(shop: Path) -> None:
    await _done(shop, _task, MOST_READ)


async def test_the_same_is_done_in_a_real_repository(real: Path) -> None:
    await _done(real, _real_task, MOST_READ_REAL)


async def _real_task(model: Model, root: Path, forms: list[str]) -> None:
    assert "src/toolgate/version.py" in await model.call("fs_list", glob="src/toolgate/*.py")
    assert "src/toolgate/version.py" in await model.call("fs_search", pattern="^VERSION = ", path="src")
    old = {name: (root / name).read_text() for name in ("src/toolgate/version.py", "CHANGELOG.md")}
    assert old["src/toolgate/version.py"].splitlines()[-1] in await model.call(
        "fs_read", path="src/toolgate/version.py"
    )
    assert await model.call("fs_read", path="CHANGELOG.md", ranges=[[1, 12]])
    assert await model.call("code_log", limit=3)
    new = {
        "src/toolgate/version.py": old["src/toolgate/version.py"] + '\n\ndef major() -> int:\n    return int(VERSION.split(".")[0])\n',
        "CHANGELOG.md": old["CHANGELOG.md"].replace("## [Unreleased]\n", "## [Unreleased]\n\n- `major()` of the version.\n", 1),
        "tests/test_major.py": "from toolgate.version import major\n\n\ndef test_the_first_number():\n    assert major() == 0\n",
    }  # fmt: skip
    diff = "".join(
        line
        for name, text in new.items()
        for line in unified_diff(
            old.get(name, "").splitlines(True), text.splitlines(True),
            f"a/{name}" if name in old else "/dev/null", f"b/{name}",
        )
    )  # fmt: skip
    assert "version.py" in await model.call("fs_patch", diff=diff)
    assert any("+def major" in form for form in forms)
    argv = ["pytest", "-q", "-c", "/dev/null", "--rootdir", ".", "--noconftest", "tests/test_major.py"]
    assert "1 passed" in await model.call("exec_shell", argv=argv, project="read")
    assert "+def major" in await model.call("code_diff", paths=["src/toolgate/version.py"])
    await _undo_the_patch(root)
    assert {name: (root / name).read_text() for name in old} == old
    assert not (root / "tests/test_major.py").exists()
    assert "major" not in await model.call("code_diff")


async def _task(model: Model, shop: Path, forms: list[str]) -> None:
    assert "src/shop/cart.py" in await model.call("fs_list", glob="src/**")
    assert "cart.py" in await model.call("fs_search", pattern="def total")
    for name in ("src/shop/cart.py", "src/shop/prices.py", "tests/test_cart.py"):
        assert "def " in await model.call("fs_read", path=name)
    failing = await model.call("exec_shell", argv=["pytest", "-q", "tests/test_cart.py"], project="read")
    assert "1 failed" in failing

    await model.call("fs_patch", diff=PATCH)
    assert "return net * (100 + TAX) // 100" in (shop / "src/shop/cart.py").read_text()
    passing = await model.call("exec_shell", argv=["pytest", "-q", "tests/test_cart.py"], project="read")
    assert "1 passed" in passing
    assert "+TAX = 19" in await model.call("code_diff")
    assert any("TAX" in form and form.count("+TAX = 19") == 1 for form in forms)

    await _undo_the_patch(shop)
    for name in ("README.md", "src/shop/cart.py", "src/shop/prices.py"):
        assert (shop / name).read_text() == FILES[name]
    assert "TAX" not in await model.call("code_diff")
    assert subprocess.run(["git", "status", "--porcelain", "src", "README.md"], cwd=shop, capture_output=True, check=True).stdout == b""  # fmt: skip
