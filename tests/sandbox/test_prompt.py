from __future__ import annotations

import re

from toolgate.sandbox.inside import prelude
from toolgate.sandbox.javascript import PRELUDE
from toolgate.sandbox.prompt import prompt


def test_the_prompt_lists_helpers_that_exist_and_names_only() -> None:
    source = PRELUDE.read_text("utf-8")
    for name in _helpers(prompt(["B_KEY", "A_TOKEN"], "javascript")):
        assert re.search(rf"^(async )?function {name}\(", source, re.MULTILINE)
    assert {*_helpers(prompt([], "python")), "Tainted"} == set(prelude.NAMES)
    assert "Secrets, by name: A_TOKEN, B_KEY." in prompt(["B_KEY", "A_TOKEN"])
    assert "Secrets, by name: none." in prompt()


def _helpers(text: str) -> list[str]:
    return re.findall(r"^- `(\w+)\(", text, re.MULTILINE)
