"""`toolgate memory` and `toolgate knowledge` at the terminal: a whole life of a fact, and documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .driving import Cli


@pytest.fixture(autouse=True)
def by_words_only(project: Path) -> None:
    """A model would be loaded for each command."""
    with (project / "toolgate.yaml").open("a") as file:
        file.write("memory: {embeddings: none}\n")


def test_a_fact_is_remembered_found_replaced_shown_forgotten_and_brought_back(
    project: Path, cli: Cli
) -> None:
    assert "nothing is remembered yet" in cli("memory").out
    first = cli("memory", "store", "Alice lives in Berlin", "--subject", "home", "--json").data["memories"][
        0
    ]["id"]
    said = cli("memory", "store", "Alice lives in Lisbon", "--supersedes", first, "--reason", "she said so")
    assert "remembered m_" in said.out
    assert "toolgate undo" in said.out
    found = cli("memory", "recall", "where does Alice live")
    assert "Lisbon" in found.out
    assert "Berlin" not in found.out
    assert "superseded" in cli("memory", "recall", "where does Alice live", "--all").out
    new = cli("memory", "list", "--json").data["memories"][0]["id"]
    shown = cli("memory", "show", new).out
    assert "she said so" in shown
    assert "human" in shown
    forgotten = cli("memory", "forget", new)
    event = forgotten.out.split("toolgate undo ")[1].split()[0]
    assert "nothing is remembered about that" in cli("memory", "recall", "Lisbon").out
    assert new in cli("memory", "list", "--forgotten").out
    assert cli("undo", event, "--yes").code == 0
    assert "Lisbon" in cli("memory", "recall", "Lisbon").out
    assert cli("memory", "purge", new, "--yes").code != 0  # it is remembered
    assert cli("memory", "forget", new).code == 0
    assert cli("memory", "purge", new, "--yes").code == 0
    assert cli("memory", "show", new, "--json").data["state"] == "purged"
    assert "its text was purged" in cli("memory", "show", new).out


def test_what_is_exported_is_imported_and_audited(project: Path, cli: Cli, tmp_path: Path) -> None:
    lines = [{"format": "toolgate-memory/1", "content": text, "conversation": f"c{number}"} for number, text in
             enumerate(["The bell rings at eight.", "The bell rings at eight.", "thanks!", "The bell rings at nine."])]  # fmt: skip
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(one) + "\n" for one in lines))
    assert "4 are new" in cli("memory", "import", str(source)).out
    proposed = cli("memory", "audit", "--json").data
    assert proposed["counts"]["duplicate"] == 1
    assert proposed["forgotten"] == 0
    applied = cli("memory", "audit", "--apply", "duplicate", "--apply", "junk", "--yes")
    assert "forgot 2" in applied.out
    target = tmp_path / "out.jsonl"
    assert cli("memory", "export", str(target)).code == 0
    assert len(target.read_text().splitlines()) == 2
    assert cli("memory", "audit", "--apply", "gossip").code == 2
    assert cli("memory", "import", str(tmp_path / "none.jsonl")).code == 2


def test_a_folder_is_indexed_brought_up_to_date_and_taken_out(project: Path, cli: Cli) -> None:
    assert "no folder is indexed" in cli("knowledge").out
    docs = project / "handbook"
    docs.mkdir()
    (docs / "a.md").write_text("# Tides\n\nHigh water is at noon.\n")
    assert cli("knowledge", "add", str(docs), "--json").data["changed"] == 1
    (docs / "b.md").write_text("# Winds\n\nFrom the west.\n")
    assert "1 changed, 1 as before" in cli("knowledge", "sync").out
    assert "handbook" in cli("knowledge").out
    found = cli(
        "call", "knowledge.search", '{"query": "when is high water"}', "--persona", "reader", "--json"
    ).data
    assert found["results"][0]["source"] == "a.md"
    assert "High water is at noon." in cli("knowledge", "search", "when is high water", "-n", "1").out
    assert cli("knowledge", "reset", "--json").data["files"] == 2
