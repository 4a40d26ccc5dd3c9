"""A day's task on a real repository with the official client: explore, change three files, run a test, undo, verify.

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

from faces.cli.driving import environment, finish, start
from toolgate.sandbox import probe

MOST_CALLS = 12
MOST_LISTED = 20_000
MOST_READ = 4_000
"""Characters of all answers together."""
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


async def test_a_task_is_done_undone_and_proven_in_few_calls_and_characters(shop: Path) -> None:
    if probe.look("auto").mode not in ("root", "userns"):
        pytest.skip("no namespaces here: a project's environment needs them")
    forms: list[str] = []

    async def user(context: Any, params: Any) -> types.ElicitResult:
        forms.append(params.message)
        return types.ElicitResult(action="accept", content={"answer": "approve"})

    server = parameters(shop, await told("init", root=shop))
    async with (
        asyncio.timeout(PATIENCE * 3),
        Client(server, mode="legacy", read_timeout_seconds=PATIENCE, elicitation_callback=user) as client,
    ):
        tools = (await client.list_tools()).tools
        listed = len(
            json.dumps([tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools])
        )
        model = Model(client)
        await _task(model, shop, forms)
    assert model.calls <= MOST_CALLS
    assert listed <= MOST_LISTED, listed
    assert model.read <= MOST_READ, model.read
    assert (await told("ledger", "verify", root=shop)).code == 0


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

    events = json.loads((await told("ledger", "tail", root=shop)).out)["data"]
    patched = max(row["seq"] for row in events if row["kind"] == "committed" and row["tool"] == "fs.patch")
    undone = await told("undo", str(patched), "--yes", root=shop)
    assert undone.code == 0, undone.err
    for name in ("README.md", "src/shop/cart.py", "src/shop/prices.py"):
        assert (shop / name).read_text() == FILES[name]
    assert "TAX" not in await model.call("code_diff")
    assert subprocess.run(["git", "status", "--porcelain", "src", "README.md"], cwd=shop, capture_output=True, check=True).stdout == b""  # fmt: skip
