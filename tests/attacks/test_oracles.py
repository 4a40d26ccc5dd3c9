"""No answer about a text depends on the characters of a secret in it: not by match, count, position, cut or refusal."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

import toolgate
from attacks.oracles import CONFIG, ONE, OTHER, Values, Way, answer, make, pieces, row, token, ways
from sampling import sampled
from toolgate.facade import Gate


async def _keep(gate: Gate, values: Values) -> None:
    await gate.set_secret("TOKEN", values.token)
    await gate.set_secret("ROWS", values.rows)


@pytest.mark.parametrize("fillers", [0, 260], ids=["searched in process", "searched by rg"])
async def test_two_projects_that_differ_only_in_a_secret_give_the_same_answers(
    tmp_path: Path, fillers: int
) -> None:
    every = [way for way in ways() if not fillers or way.tool == "code.search"]
    assert len(every) > 30
    make(tmp_path / "one", ONE, fillers)
    make(tmp_path / "other", OTHER, fillers)
    wrong: list[str] = []
    async with (
        toolgate.open(tmp_path / "one", CONFIG) as one,
        toolgate.open(tmp_path / "other", CONFIG) as other,
    ):
        await _keep(one, ONE)
        await _keep(other, OTHER)
        for way in sampled(every, 16, f"oracles {fillers}"):
            said, also = await answer(one, way), await answer(other, way)
            leaked = [piece for piece in pieces(ONE) if piece in said and piece not in str(way.args)]
            if said != also or leaked:
                wrong.append(f"{way}\n  {said}\n  {also}")
    assert not wrong, "\n".join(wrong)


async def _recovered(root: Path, token: str) -> str:
    """Six halvings for each of 32 characters, by somebody who believes what the search answers."""
    root.mkdir()
    (root / "config.py").write_text(f'API = "{token}"\n')
    guess = ""
    async with toolgate.open(root, CONFIG) as gate:
        await gate.set_secret("TOKEN", token)
        for place in range(len(token)):
            left = "".join(map(chr, (45, *range(48, 58), *range(65, 91), *range(97, 123))))
            while len(left) > 1:
                half = left[: len(left) // 2]
                asked = {"pattern": f'API = ".{{{place}}}[{half}]', "case_sensitive": True}
                found = (await gate.call("fs.search", asked)).data
                left = half if found["total_matches"] or "note" in found else left[len(left) // 2 :]
            guess += left
    return guess


async def test_a_value_cannot_be_recovered_by_yes_and_no(tmp_path: Path) -> None:
    """Whatever was in the file, the answers are those about the marker."""
    guessed = await _recovered(tmp_path / "one", ONE.token)
    assert guessed == await _recovered(tmp_path / "other", OTHER.token)
    assert guessed not in (ONE.token, OTHER.token)


async def test_the_matches_beside_a_secret_are_shown_and_the_others_are_counted(tmp_path: Path) -> None:
    (tmp_path / "config.py").write_text(f'API = "{ONE.token}"\nAPI_URL = 1\n')
    async with toolgate.open(tmp_path, CONFIG) as gate:
        await gate.set_secret("TOKEN", ONE.token)
        found = (await gate.call("fs.search", {"pattern": 'API = ".{8}'})).data
        assert (found["total_matches"], found["matches"]) == (0, [])
        assert found["note"] == "1 match overlaps a secret and is not shown"
        beside = (await gate.call("fs.search", {"pattern": "API"})).data
        assert [match["line_text"] for match in beside["matches"]] == [
            'API = "[secret:TOKEN]"',
            "API_URL = 1",
        ]
        assert "note" not in beside


async def test_lines_beside_a_secret_can_be_edited_and_patched(tmp_path: Path) -> None:
    file = tmp_path / "config.py"
    file.write_text(f'# one\nAPI = "{ONE.token}"\n# two\n')
    async with toolgate.open(tmp_path, CONFIG) as gate:
        await gate.set_secret("TOKEN", ONE.token)
        done = await gate.call("fs.edit", {"path": "config.py", "find": "# one", "replace": "# 1"})
        assert done.ok, done.error
        diff = '@@ -1,3 +1,4 @@\n-# 1\n+# first\n API = "[secret:TOKEN]"\n # two\n+# three\n'
        done = await gate.call("fs.patch", {"path": "config.py", "diff": diff})
        assert done.ok, done.error
        assert file.read_text() == f'# first\nAPI = "{ONE.token}"\n# two\n# three\n'
        gone = '@@ -1,3 +1,2 @@\n # first\n-API = "[secret:TOKEN]"\n # two\n'
        done = await gate.call("fs.patch", {"path": "config.py", "diff": gone})
        assert done.ok, done.error
    assert file.read_text() == "# first\n# two\n# three\n"


async def test_what_was_answered_before_a_secret_was_set_is_not_served_again(tmp_path: Path) -> None:
    (tmp_path / "config.py").write_text(f'API = "{ONE.token}"\n')
    ask = {"path": "config.py", "ranges": [[1, 1]]}
    async with toolgate.open(tmp_path, CONFIG) as gate:
        for _ in range(3):
            await gate.call("fs.read", ask)
        assert (await gate.call("fs.read", ask)).meta.cached
        await gate.set_secret("TOKEN", ONE.token)
        assert not (await gate.call("fs.read", ask)).meta.cached


WORDS = "quartz-lantern-meadow-41", "velvet-harbor-copper-93"
QUERIES = (
    "quartz", "lantern", "quartz lantern", "meadow 41", "quar", "41", "code word", "bread quartz", "bread", "door",
    WORDS[0], ONE.token[:6], ONE.token[4:12], ONE.token, "key",
)  # fmt: skip
_GIVEN = re.compile(r"m_[0-9a-z]+|20[0-9T:.-]+Z")


async def _remembered(root: Path, value: str, words: str) -> list[str]:
    """What is answered about texts that were kept before their secrets were called so."""
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "a.md").write_text(f"# Door\n\nthe code word is {words}\n\n# Bread\n\nflour, water\n")
    config = CONFIG | {"memory": {"embeddings": "none"}, "personas": {"ada": {"phase": "collaborate"}}}
    async with toolgate.open(root, config) as gate:
        for text in (f"The code word is {words} for the door", "A memory about bread", f"The key {value}"):
            await gate.call("memory.store", {"content": text})
        await gate.call("knowledge.add", {"folder": str(root / "docs")}, persona="human")
        before = [(await gate.call("memory.recall", {"query": words})).data]
        assert before[0]["memories"], "it was found while it was no secret"
        await gate.set_secret("TOKEN", value)
        await gate.set_secret("WORDS", words)
        said = [
            await answer(gate, Way(tool, {"query": query}))
            for query in QUERIES
            for tool in ("memory.recall", "knowledge.search")
        ]
        assert any("[secret:WORDS]" in one for one in said), "what stands beside a secret is found"
        return [_GIVEN.sub("-", one) for one in said]


async def test_what_was_remembered_before_it_was_a_secret_is_not_found_by_guesses(tmp_path: Path) -> None:
    one = await _remembered(tmp_path / "one", ONE.token, WORDS[0])
    other = await _remembered(tmp_path / "other", OTHER.token, WORDS[1])
    assert one == other


GUESSES = ("The code word is quartz 1 2 3 for the door", "The code word is velvet 1 2 3 for the door",
           f"The code word is {WORDS[0][:-2]}77 for the door")  # fmt: skip


async def _compared(root: Path, value: str, words: str) -> list[str]:
    """What is said about texts that were kept before: what they are like, their beginnings, and their sum."""
    root.mkdir()
    config = CONFIG | {"memory": {"embeddings": "none"}, "personas": {"ada": {"phase": "collaborate"}}}
    async with toolgate.open(root, config) as gate:
        for text in (
            f"The code word is {words} for the door",
            f"{'x' * 1990} {value}",
            f"{'y ' * 43}{value}",
        ):
            await gate.call("memory.store", {"content": text, "said_at": "2026-01-01"})
        await gate.set_secret("TOKEN", value)
        await gate.set_secret("WORDS", words)
        await gate.call("memory.recall", {"query": "door"}, conversation="talk")
        ways = [Way("memory.store", {"content": guess, "conversation": "talk"}) for guess in GUESSES]
        ways += [
            Way("memory.list", {}),
            Way("memory.audit", {}),
            Way("memory.rollup", {}),
            Way("memory.list", {}),
        ]
        return [_GIVEN.sub("-", await answer(gate, way)) for way in ways]


async def test_no_comparison_cut_or_summary_tells_of_what_became_a_secret(tmp_path: Path) -> None:
    one = await _compared(tmp_path / "one", ONE.token, WORDS[0])
    other = await _compared(tmp_path / "other", OTHER.token, WORDS[1])
    assert one == other
    assert not [piece for piece in pieces(ONE) if piece in str(one)]
    assert "[secret:WORDS]" in one[-1]


async def test_no_filter_of_the_log_tells_of_what_became_a_secret(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, CONFIG) as gate:
        logging.getLogger("toolgate").warning("the key is %s", ONE.token)
        asked = Way("system.logs", {"contains": f"key is {ONE.token[:3]}"})
        assert ONE.token in await answer(gate, asked)
        await gate.set_secret("TOKEN", ONE.token)
        assert await answer(gate, asked) == "[[], null, []]"
        assert "[secret:TOKEN]" in await answer(gate, Way("system.logs", {"contains": "the key"}))


async def _tended(root: Path, values: Values) -> list[str]:
    """What is answered about sections that were written before their secrets were called so."""
    (root / "garden").mkdir(parents=True)
    config = CONFIG | {
        "mounts": {"garden": {"path": "garden"}},
        "personas": {"ada": {"phase": "collaborate", "allow": ["*"]}},
    }
    async with toolgate.open(root, config) as gate:
        await gate.call("garden.add", {"kind": "user", "user": "me"}, persona="human")
        await gate.call("garden.add", {"kind": "part", "id": "work"})
        at = {"path": "users/me/parts/work/profile.md", "section_anchor": "concerns v1"}
        done = await gate.call(
            "md.patch_section", at | {"append": f"- key {values.token} x\n- b\n\nsaid\n{values.rows}"}
        )
        assert done.ok, done.error
        await _keep(gate, values)
        asked = [
            Way("md.propose_change", at | {"append": text}) for text in ("z", *row, f"{row[2]}\n{row[3]}")
        ]
        for guess in (f"key {token[:2]}", f"key {token[:9]}", "key", "key b"):
            merge = {"ops": ["merge"], "items": [{"from": ["nothing"], "into": guess}]}
            asked.append(Way("md.curate_list", at | merge | {"reason": "r"}))
            asked.append(Way("md.curate_list", at | {"ops": ["prune"], "items": [guess], "reason": "r"}))
        asked.append(Way("md.lint", {"path": at["path"]}))
        return [_GARDENED.sub("-", await answer(gate, way)) for way in asked]


_GARDENED = re.compile(r"20\d{6}T[0-9.]+Z\.[0-9a-f]{12}|20\d\d-\d\d-\d\d|hmac[0-9a-z:-]*|[0-9a-f]{32,}")


async def test_no_edit_of_a_garden_tells_of_what_became_a_secret(tmp_path: Path) -> None:
    one, other = await _tended(tmp_path / "one", ONE), await _tended(tmp_path / "other", OTHER)
    assert one == other
    assert "[secret:ROWS]" in one[0]
    assert not [piece for piece in (*pieces(ONE), *row) if piece in one[0]]
