"""A project with its gate and console on a port of its own, in a thread: browsers are driven from outside of it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import uvicorn

from toolgate import app
from toolgate.core.names import HUMAN
from toolgate.core.ports import Question
from toolgate.core.result import Result
from toolgate.facade import Gate
from toolgate.faces.http import create_app
from toolgate.faces.http.site import ServerSite
from toolgate.kits.web.tokens import Tokens

PATIENCE = 40.0
T = TypeVar("T")
POLICY: dict[str, Any] = {
    "version": 1,
    "default_persona": "builder",
    "memory": {"embeddings": "none"},  # a browser test waits for no model
    "personas": {
        "builder": {"phase": "contribute", "description": "proposes changes"},
        "reviewer": {"phase": "observe", "description": "reads and comments"},
        "tender": {"phase": "observe", "mounts": ["garden"], "description": "tends the garden"},
    },
    "mounts": {"garden": {"path": "garden"}},
    "consent": {"max_open": 20},
    "policy": {
        "rules": [
            {
                "name": "source-is-reviewed", "persona": "builder", "tools": ["fs.*"], "when": {"path": "src/**"},
                "decision": "ask", "reason": "source changes are reviewed",
            },
            {
                "name": "deploy-is-for-people", "tools": ["fs.*"], "when": {"path": "deploy/**"}, "decision": "deny",
                "reason": "deployment files are edited by people",
            },
        ]
    },
}  # fmt: skip
PRICES = '''"""Prices of the shop."""

from decimal import Decimal

TAX = Decimal("0.19")


def total(items: list[Decimal], discount: Decimal = Decimal(0)) -> Decimal:
    """What the customer pays."""
    net = sum(items, Decimal(0))
    # round once, at the end
    return round(net * (1 + TAX) - discount, 2)


def receipt(items: list[Decimal]) -> str:
    lines = [f"{price:>10}" for price in items]
    lines.append(f"{total(items):>10}")
    return "\\n".join(lines)
'''
BETTER = PRICES.replace("net * (1 + TAX) - discount, 2", "(net - discount) * (1 + TAX), 2").replace(
    '    lines.append(f"{total(items):>10}")\n',
    '    lines.append("-" * 10)\n    lines.append(f"{total(items):>10}")\n',
)


class World:
    def __init__(self, root: Path, state: Path) -> None:
        self.root, self.state = root, state
        self.loop = asyncio.new_event_loop()
        self.started = threading.Event()
        self.stop = asyncio.Event()
        self.failure: BaseException | None = None
        self.gate: Gate
        self.address = ""
        self.base = ""
        self.token = ""

    # --- in the thread ------------------------------------------------------------------------------------

    def serve(self) -> None:
        try:
            self.loop.run_until_complete(self._serve())
        except BaseException as error:
            self.failure = error
        finally:
            self.started.set()
            self.loop.close()

    async def _serve(self) -> None:
        tokens = Tokens(self.state / "tokens.json")
        with socket.create_server(("127.0.0.1", 0)) as listening:
            async with app.open(self.root, POLICY, "memory") as self.gate:
                site = ServerSite(self.gate, tokens)
                config = uvicorn.Config(
                    create_app(self.gate, tokens, site=site), log_level="error", lifespan="on"
                )
                server = uvicorn.Server(config)
                serving = asyncio.create_task(server.serve([listening]))
                self.address = f"http://127.0.0.1:{listening.getsockname()[1]}"
                self.base, self.token = site.base, tokens.of(HUMAN)
                while not server.started and not serving.done():
                    await asyncio.sleep(0.01)
                self.started.set()
                await self.stop.wait()
                site.closing.set()
                server.should_exit = True
                await asyncio.wait_for(serving, PATIENCE)

    # --- from the tests -----------------------------------------------------------------------------------

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.begin(work).result(PATIENCE)

    def ask(self, tool: str, args: dict[str, Any], persona: str = "builder", **more: Any) -> Future[Result]:
        """An agent's call, which waits for its answer."""
        before = len(self.do(self.gate.approvals()))
        made = self.begin(self.gate.call(tool, args, persona=persona, **more))
        self.do(self._until(before + 1, made))
        return made

    async def _until(self, open_questions: int, made: Future[Result]) -> None:
        async with asyncio.timeout(PATIENCE):
            while len(await self.gate.approvals()) < open_questions:
                assert not made.done(), f"it did not ask: {made.result()}"
                await asyncio.sleep(0.01)

    def questions(self) -> list[Question]:
        return self.do(self.gate.approvals())

    def settle(self) -> None:
        """Nothing is left open for the next test."""
        for question in self.questions():
            self.do(self.gate.answer(question.id, "deny", reason="the test is over"))

    def url(self, path: str = "/") -> str:
        return f"{self.address}{self.base}{path}"


@contextmanager
def running(root: Path, state: Path) -> Iterator[World]:
    for name in ("src", "garden"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "src/prices.py").write_text(PRICES)
    (root / "README.md").write_text("# Shop\n\nSells things.\n")
    world = World(root, state)
    thread = threading.Thread(target=world.serve, name="console", daemon=True)
    thread.start()
    assert world.started.wait(PATIENCE), "the console did not start"
    if world.failure is not None:
        raise world.failure
    try:
        yield world
    finally:
        world.loop.call_soon_threadsafe(world.stop.set)
        thread.join(PATIENCE)
        assert not thread.is_alive(), "the console did not stop"
