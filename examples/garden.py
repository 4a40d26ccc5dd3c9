"""A garden: a section and a piece of evidence are written, a note is taken, and everything has its provenance.
`python examples/garden.py postgresql://…` keeps its record there, else it is in SQLite."""

import asyncio
import sys
import tempfile
from pathlib import Path

import toolgate

POLICY = {
    "version": 1,
    "default_persona": "assistant",
    "personas": {"assistant": {"phase": "observe"}},
    "mounts": {"garden": {"path": "garden"}},
}
PROFILE = "garden:users/me/parts/work/profile.md"


async def main(root: Path, database: str | None = None) -> None:
    (root / "garden").mkdir()
    async with toolgate.open(root, POLICY, database) as gate:
        await gate.call("garden.add", {"kind": "user"})
        await gate.call("garden.add", {"kind": "part", "id": "work"})

        # profile section update: read, choose a section, write it if it still is what was read
        sections = (await gate.call("md.list_sections", {"path": PROFILE})).data["sections"]
        known = {one["anchor"]: one["hash"] for one in sections}
        edit = {"path": PROFILE, "section_anchor": "concerns v1", "replace": "Deadlines, since May (ev:m1).",
                "if_match": known["concerns v1"], "rationale": "talk of Monday"}  # fmt: skip
        done = await gate.call("md.patch_section", edit)
        print(done.data["op"], done.data["history_path"].rpartition("/")[0])
        late = await gate.call("md.patch_section", edit | {"replace": "Nothing."})
        print("a second writer:", late.error and late.error.code)

        # evidence item
        item = {
            "path": PROFILE,
            "section_anchor": "evidence v1",
            "op": "append",
            "item": '"too much" (ev:m1)',
            "reason": "his words",
        }
        print("evidence:", (await gate.call("md.curate_list", item)).data["changed"])

        # grep and note capture
        found = await gate.call(
            "code.search",
            {"pattern": "Deadlines", "paths": ["garden:users/me"], "exclude_patterns": ["**/history/**"]},
        )
        print("found in", found.data["matches"][0]["file"])
        await gate.call("fs.append", {"path": "garden:users/me/notes.md", "text": "- deadlines, again\n"})

        # propose, and what nobody may do
        plan = await gate.call(
            "propose_change", {"path": PROFILE, "section_anchor": "concerns v1", "append": "More."}
        )
        print(plan.data["safety_report"])
        spoiled = (
            (root / "garden/users/me/parts/work/profile.md")
            .read_text()
            .replace("<!-- @anchor: concerns v1 -->", "")
        )
        refused = await gate.call("fs.write", {"path": PROFILE, "content": spoiled})
        print(refused.error and refused.error.code, refused.data["rule"], "line", refused.data["line"])

        garden = gate.feature("garden")
        for line in await garden.provenance(PROFILE):
            if "Deadlines" in line.text or "too much" in line.text:
                print(f"{line.who}: {line.text} [{line.rationale}]")
        print("verified:", all(one.state == "ok" for one in await garden.verify()))


with tempfile.TemporaryDirectory() as directory:
    asyncio.run(main(Path(directory), *sys.argv[1:2]))
