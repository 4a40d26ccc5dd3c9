"""Draws the console with a pending question for the README: `PYTHONPATH=tests python -m e2e.picture docs/images/console.png`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from e2e.conftest import CHROMIUM, FLAGS
from e2e.world import BETTER, running

EARLIER: tuple[tuple[str, dict[str, str]], ...] = (
    ("fs.write", {"path": "deploy/shop.yaml", "content": "replicas: 2\n"}),
    ("code.search", {"pattern": "TAX"}),
    ("code.read", {"path": "src/prices.py"}),
)


def draw(file: Path) -> None:
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        state = Path(made) / "state"
        state.mkdir()
        os.environ["TOOLGATE_STATE_DIR"] = str(state)
        with running(Path(made) / "project/shop", state) as world:
            (world.root / "src/old_prices.py").write_text("TAX = 0.16\n")
            for tool, args in EARLIER:
                world.do(world.gate.call(tool, args, persona="builder", conversation="discounts"))
            world.ask(
                "fs.write",
                {"path": "src/prices.py", "content": BETTER},
                reason="discounts come off before tax; show a line above the total",
                conversation="discounts",
            )
            world.ask("fs.delete", {"path": "src/old_prices.py"}, reason="nobody imports it any more")
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
            page.goto(f"{world.address}/?token={world.token}")
            page.locator("body[data-live=yes]").wait_for()
            page.screenshot(path=file)
            browser.close()
            world.settle()


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
