from __future__ import annotations

import json
import re
from pathlib import Path

from examples.running import output

from .pages import PAGES, REPOSITORY, blocks, name_of, read


def test_the_readme_is_short_and_begins_with_one_sentence() -> None:
    text = read("README.md")
    assert len(text.splitlines()) <= 120
    title, sentence = text.split("\n\n")[:2]
    assert title == "# toolgate"
    assert sentence.count(". ") == 0


def test_the_readme_opens_with_a_picture_the_tour_doctor_and_a_task_from_a_clone() -> None:
    text = read("README.md")
    order = ["](docs/images/console.png)", "\n## ", "In a clone", "pip install '.[all]'", "toolgate demo", "toolgate doctor",
             "toolgate call fs.write", "toolgate undo"]  # fmt: skip
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert (REPOSITORY / "docs/images/console.png").stat().st_size > 10_000


def test_words_of_older_documents_are_explained_or_gone() -> None:
    found = {
        name_of(page)
        for page in PAGES
        if re.search(r"archon|manifest document", page.read_text("utf-8"), re.I)
    }
    assert found <= {"docs/vocabulary.md", "CHANGELOG.md"}
    assert "older than toolgate" in read("docs/vocabulary.md")


def test_the_refusal_in_the_readme_is_what_the_example_prints(tmp_path: Path) -> None:
    shown = next(block for block in blocks(read("README.md"), "json") if '"ok"' in block)
    printed = output("refused.py", tmp_path)
    assert json.loads(_settled(shown)) == json.loads(_settled(printed))
    assert json.loads(printed)["error"]["code"] == "not_allowed"


def _settled(text: str) -> str:
    """Without what differs from run to run."""
    text = re.sub(r"\bc_[0-9a-f]+…?", "ID", text)
    return re.sub(r'("duration_ms": )[\d.]+', r"\g<1>0", text)


def test_the_readme_says_what_the_quickstart_prints(tmp_path: Path) -> None:
    lines = output("quickstart.py", tmp_path).splitlines()
    quoted = [f"`{line}`" for line in lines]
    assert f"It prints {', '.join(quoted[:-1])} and {quoted[-1]}." in read("README.md").replace("\n", " ")
