from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, sync_playwright

from e2e.world import PATIENCE, World, running

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip

SIZE: ViewportSize = {"width": 1280, "height": 800}


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        state = tmp_path_factory.mktemp("state")
        patch.setenv("TOOLGATE_STATE_DIR", str(state))
        with running(tmp_path_factory.mktemp("console") / "shop", state) as made:
            yield made


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One for all of them. Where there is none the tests fail: `tests/e2e/get-programs.sh` installs it."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="package")
def logged_in(world: World, browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport=SIZE, color_scheme="dark")
    context.set_default_timeout(PATIENCE * 1000)
    page = context.new_page()
    page.goto(f"{world.address}/?token={world.token}")
    page.close()
    yield context
    context.close()


@dataclass
class Visit:
    """Somebody who is logged in, and all that went wrong in their browser."""

    world: World
    context: BrowserContext
    page: Page
    troubles: list[str] = field(default_factory=list)

    def go(self, path: str = "/") -> Page:
        self.page.goto(self.world.url(path))
        return self.page

    def watch(self) -> None:
        page, note = self.page, self.troubles.append
        page.on("console", lambda said: note(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: note(str(error)))
        page.on("dialog", lambda dialog: (note(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on(
            "request", lambda asked: None if asked.url.startswith(self.world.address) else note(asked.url)
        )


@pytest.fixture
def visit(world: World, logged_in: BrowserContext) -> Iterator[Visit]:
    made = Visit(world, logged_in, logged_in.new_page())
    made.watch()
    yield made
    made.page.close()
    world.settle()
    assert made.troubles == []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What opens a browser comes after everything else: while one is open its own loop runs in this thread, and no
    other test could run one."""
    items.sort(key=lambda item: "browser" in getattr(item, "fixturenames", ()))
