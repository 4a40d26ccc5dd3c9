"""Cases for the wires: classes of outputs, written by hand, times their variations.

`python -m agents.make_cases`, in `tests`, writes `cases/<wire>.jsonl`. What is expected follows from how a case is built and
never from what a parser says about it. A test compares the files with what is made here.
"""

from __future__ import annotations

import json
from pathlib import Path

from agents.api_cases import api_cases, block_events, blocks, chat, chat_events, responses, responses_events
from agents.text_cases import leaked_cases, manifest_cases, xml_cases

HERE = Path(__file__).parent / "cases"
WIRES = {
    "xml": xml_cases, "manifest": manifest_cases, "leaked": leaked_cases,
    "openai": lambda: api_cases(chat, chat_events), "openai-responses": lambda: api_cases(responses, responses_events),
    "anthropic": lambda: api_cases(blocks, block_events),
}  # fmt: skip


def lines(wire: str) -> str:
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in WIRES[wire]())


if __name__ == "__main__":
    for name in WIRES:
        (HERE / f"{name}.jsonl").write_text(lines(name))
