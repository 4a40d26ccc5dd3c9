"""`toolgate garden`: make a garden, look after it, and see who wrote what. What changes a file is a recorded call of the human's."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from toolgate.core.clock import iso
from toolgate.core.errors import InvalidArgs, SetupError
from toolgate.core.names import HUMAN
from toolgate.core.paths import MountPath
from toolgate.feature import kind_of, mount_kinds
from toolgate.features.garden.watching import status_of
from toolgate.kits.terminal import failures, options, project, results, speech
from toolgate.kits.terminal.command import Argument, CommandGroup, Option
from toolgate.kits.terminal.progress import bar

if TYPE_CHECKING:
    from toolgate.facade import Gate
    from toolgate.features.garden.lint import LintFinding
    from toolgate.features.garden.rows import GardenEdit
    from toolgate.features.garden.service import Garden

app = CommandGroup("The garden: Markdown memory about a user.")
File = Annotated[str, Argument(metavar="FILE", help="A file of the garden: users/me/parts/work/profile.md")]
Files = Annotated[str, Argument(metavar="[FILE]", help="A file of the garden; without one, all of them.")]
User = Annotated[str, Option("--user", help="Whose garden.")]
Owner = Annotated[str, Option("--user", help="Whose garden; else that of the default persona's user.")]
Version = Annotated[
    str, Argument(metavar="VERSION", help="An event, a hash or a copy: see `garden history`.")
]


@app.without_command(epilog="Example: toolgate garden --user me")
def garden(user: User = "", root: options.Root = None, json: options.Json = False) -> None:
    """The garden: without a subcommand, its files and what lint says of each."""
    project.run(_list(user, root))


@app.command(epilog="Example: toolgate garden init --user me")
def init(user: Owner = "", root: options.Root = None, json: options.Json = False) -> None:
    """Make a user's garden: overview.md and notes.md, from their templates."""
    project.run(_init(user, root))


@app.command(epilog="Example: toolgate garden add relationship ana --participants me,ana")
def add(
    kind: Annotated[str, Argument(metavar="KIND", help="part or relationship.")],
    ident: Annotated[str, Argument(metavar="ID", help="Its id, a part of its path.")],
    title: Annotated[str, Option("--title", help="Its heading.")] = "",
    participants: Annotated[str, Option("--participants", help="Of a relationship, with commas.")] = "",
    user: Owner = "",
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Add a part or a relationship, with its template."""
    if kind not in ("part", "relationship"):
        raise InvalidArgs(f"{kind!r} is not a kind", "use `part` or `relationship`")
    args: dict[str, Any] = {"kind": kind, "id": ident, "user": user, "title": title}
    if participants:
        args["participants"] = [each.strip() for each in participants.split(",")]
    project.run(_call("garden.add", args, root))


@app.command(epilog="Example: toolgate garden lint users/me/parts/work/profile.md")
def lint(file: Files = "", user: User = "", root: options.Root = None, json: options.Json = False) -> None:
    """Say what is not as it should be. Ends with 1 where a rule is broken."""
    project.run(_lint(file, user, root))


@app.command(epilog="Example: toolgate garden fix users/me/overview.md")
def fix(file: File, root: options.Root = None, json: options.Json = False) -> None:
    """Mend what lint can mend: headings, lost or doubled anchors, identity, white space."""
    project.run(_call("garden.fix", {"path": file}, root))


@app.command(epilog="Example: toolgate garden blame users/me/parts/work/profile.md")
def blame(file: File, root: options.Root = None, json: options.Json = False) -> None:
    """Show for each line which event put it there: who, why, on what evidence, how far it is trusted."""
    project.run(_blame(file, root))


@app.command(epilog="Example: toolgate garden history users/me/parts/work/profile.md")
def history(file: File, root: options.Root = None, json: options.Json = False) -> None:
    """List the versions of a file, the newest first."""
    project.run(_history(file, root))


@app.command(epilog="Example: toolgate garden diff users/me/parts/work/profile.md 412")
def diff(
    file: File,
    old: Version,
    new: Annotated[
        str, Argument(metavar="[NEW]", help="Another version; without one, the file as it is.")
    ] = "",
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Show what differs between two versions."""
    project.run(_diff(file, old, new, root))


@app.command(
    epilog="Example: toolgate garden restore users/me/parts/work/profile.md 412 --reason 'lost a line'"
)
def restore(
    file: File,
    version: Version,
    reason: options.Reason = "",
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Bring a version back, as a new edit: nothing is lost by it."""
    project.run(_call("garden.restore", {"path": file, "version": version, "reason": reason}, root))


@app.command(epilog="Example: toolgate garden verify --record")
def verify(
    user: User = "",
    record: Annotated[
        bool, Option("--record", help="Record what people edited outside the gate as theirs.")
    ] = False,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Find what changed without an event, by hash and HMAC. Ends with 1 where something has."""
    project.run(_verify(user, record, root))


@app.command(epilog="Example: toolgate garden status --user me")
def status(user: User = "", root: options.Root = None, json: options.Json = False) -> None:
    """Say what people edited outside the gate and which rule it breaks, with the repair. Ends with 1 where one is broken."""
    project.run(_status(user, root))


def _garden(gate: Gate) -> Garden:
    found: Garden = gate.feature("garden")
    if not found.mounts:
        kinds = mount_kinds(gate.config.brought)
        named = [name for name, one in gate.config.mounts.items() if _is_garden(name, one.kind, kinds)]
        if named:
            raise SetupError(f"the mount {named[0]} has no directory yet", "run `toolgate garden init`")
        raise SetupError("this project has no garden", _MISSING)
    return found


def _is_garden(name: str, kind: str | None, kinds: Any) -> bool:
    found = kind_of(name, kind, kinds)
    return found is not None and found.name == "garden"


_MISSING = "add `mounts: {garden: {path: garden}}` to toolgate.yaml, then run `toolgate garden init`"


def _path(file: str) -> MountPath:
    return MountPath.parse(file if ":" in file else f"garden:{file.removeprefix('garden/')}")


async def _call(tool: str, args: dict[str, Any], root: Any) -> int:
    if "path" in args:
        args = args | {"path": str(_path(args["path"]))}
    async with project.gate(root) as gate:
        _garden(gate)
        return results.show(await gate.call(tool, args, persona=HUMAN))


async def _init(user: str, root: Any) -> int:
    setup = project.trusted(root)
    kinds = mount_kinds(setup.config.brought)
    found = {
        name: setup.root / mount.path
        for name, mount in setup.config.mounts.items()
        if _is_garden(name, mount.kind, kinds)
    }
    if not found:
        raise SetupError("no mount of this project is a garden", _MISSING)
    name, directory = next(iter(found.items()))
    directory.mkdir(parents=True, exist_ok=True)
    return await _call("garden.add", {"kind": "user", "user": user, "mount": name}, root)


async def _list(user: str, root: Any) -> None:
    async with project.gate(root) as gate:
        garden = _garden(gate)
        said: dict[str, list[LintFinding]] = {}
        with bar("looking") as tell:
            for mount in garden.mounts:
                async for batch in garden.linted(user, mount):
                    said |= batch.found
                    tell(batch.done, batch.total)
        files = [file for mount in garden.mounts for file in await garden.files(user, mount)]
        found = [(file, said.get(file.path, [])) for file in files]
    if speech.finish([asdict(file) | {"lint": len(said)} for file, said in found]):
        return
    if not found:
        speech.say("the garden is empty; `toolgate garden init` begins one")
        return
    speech.put(
        speech.table(
            ["file|whole", "user", "kind", "lint"],
            [[file.path, file.user, file.kind, len(said) or "clean"] for file, said in found],
        )
    )


async def _lint(file: str, user: str, root: Any) -> int:
    found: dict[str, list[LintFinding]] = {}
    cited: dict[str, list[dict[str, Any]]] = {}
    async with project.gate(root) as gate:
        garden = _garden(gate)
        if file:
            one_file = _path(file)
            found[str(one_file)] = await garden.lint(one_file)
            cited[str(one_file)] = await garden.stale(one_file)
            _say_findings(found, cited)
        else:  # what lines cite is looked up for one file: in a large garden that takes its time
            with bar("lint") as tell:
                for mount in garden.mounts:
                    async for batch in garden.linted(user, mount):
                        found |= batch.found
                        tell(batch.done, batch.total)
                        if any(batch.found.values()):
                            with tell.aside():
                                _say_findings(batch.found, {})
    broken = any(one.severity == "blocked" for said in found.values() for one in said)
    told = [
        {"path": path, "findings": [asdict(one) for one in said], "stale": cited.get(path, [])}
        for path, said in found.items()
    ]
    if not speech.finish(told, ok=not broken):
        count = sum(map(len, found.values()))
        mends = any(one.fixable for said in found.values() for one in said)
        speech.say(
            f"{count} finding{'s' * (count != 1)} in {len(found)} file{'s' * (len(found) != 1)}"
            + ("; `toolgate garden fix FILE` mends what can be mended" if mends else "")
        )
    return 1 if broken else failures.OK


def _say_findings(found: dict[str, list[LintFinding]], cited: dict[str, list[dict[str, Any]]]) -> None:
    for path, said in found.items():
        for one in said:
            style = {"blocked": "red", "cap": "yellow"}.get(one.severity, "")
            speech.say(
                speech.safe(f"{path}:{one.line}: ") + speech.safe(f"{one.message} [{one.rule}]", style)
            )
        for cite in cited.get(path, ()):
            where = speech.safe(f"{path}:{cite['line']}: ")
            speech.say(where + speech.safe(f"{cite['problem']} [stale]", "yellow"))


async def _status(user: str, root: Any) -> int:
    async with project.gate(root) as gate:
        garden, noticed, found = _garden(gate), 0, []
        with bar("looking") as tell:
            for mount in garden.mounts:
                noticed += len(await garden.notice(user, mount, tell))
                found += await status_of(garden, user, mount)
    broken = [one for one in found if one.broken]
    told = [asdict(one) | {"at": iso(one.at)} for one in found]
    if not speech.finish({"files": told, "recorded": noticed}, ok=not broken):
        for one in found:
            who = f"edited by a person, event {one.event}" if one.by_person else f"event {one.event}"
            speech.say(
                speech.safe(f"{one.path}: {who}") + speech.safe("" if one.broken else "; breaks no rule")
            )
            for each in one.broken:
                speech.say(speech.safe(f"  {each}", "red"))
            if one.repair:
                speech.say(speech.safe(f"  repair: {one.repair}"))
        edited = sum(one.by_person for one in found)
        speech.say(
            f"{edited} file{'s' * (edited != 1)} edited by people last, {len(broken) or 'none'} broken"
            + (f"; {noticed} newly recorded" if noticed else "")
        )
    return 1 if broken else failures.OK


async def _blame(file: str, root: Any) -> None:
    async with project.gate(root) as gate:
        lines = await _garden(gate).provenance(_path(file))
    if speech.finish([asdict(line) for line in lines]):
        return
    rows = [[line.event, line.who, line.trust, _why(line), f"{line.line}: {line.text}"] for line in lines]
    speech.put(speech.table(["event|right", "who", "trust", "why|cut", "line|whole"], rows))


def _why(line: Any) -> str:
    why = "; ".join(part for part in (line.rationale, ", ".join(line.evidence), line.stale) if part)
    return why or line.op


async def _history(file: str, root: Any) -> None:
    async with project.gate(root) as gate:
        found = await _garden(gate).history(_path(file))
    if speech.finish([asdict(one) for one in found]):
        return
    rows = [
        [one.event, one.at, one.who, f"{one.op} {one.section}".strip(), one.rationale, one.hash[7:19]]
        for one in found
    ]
    speech.put(speech.table(["event|right", "at", "who", "what", "why|cut", "hash|whole"], rows))


async def _diff(file: str, old: str, new: str, root: Any) -> None:
    async with project.gate(root) as gate:
        text = await _garden(gate).diff(_path(file), old, new)
    if not speech.finish({"diff": text}):
        speech.show(text or "no difference")


async def _verify(user: str, record: bool, root: Any) -> int:
    noticed: list[GardenEdit] = []
    async with project.gate(root) as gate:
        garden, found = _garden(gate), []
        with bar("verifying") as tell:
            for mount in garden.mounts:
                seen = await garden.verify(user, mount, tell)
                if record and any(one.state != "ok" for one in seen):
                    await garden.record.remake([one.path for one in seen if one.state == "forged"])
                    noticed += await garden.notice(user, mount, tell)
                    seen = await garden.verify(user, mount, tell)
                found += seen
    bad = [one for one in found if one.state != "ok"]
    if not speech.finish(
        {"files": [asdict(one) for one in found], "recorded": [edit.path for edit in noticed]}, ok=not bad
    ):
        for edit in noticed:
            speech.say(
                f"{edit.path}: recorded as a person's edit, event {edit.event}"
                + "".join(f"; {said}" for said in edit.lint)
            )
        for one in bad:
            which = f": {', '.join(one.sections)}" if one.sections else ""
            speech.say(speech.safe(f"{one.path}: {one.state}{which}", "red"))
        speech.say(
            f"{len(found) - len(bad)} of {len(found)} files are as recorded"
            + ("; `--record` records the others as people's edits" if bad and not record else "")
        )
    return 1 if bad else failures.OK
