"""`toolgate knowledge`: which folders of documents are indexed. Every change is a call through the gate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from toolgate.core.names import HUMAN
from toolgate.features.memory.knowledge import KINDS, Knowledge
from toolgate.kits.terminal import options, project, speech
from toolgate.kits.terminal.command import Argument, CommandGroup, Option
from toolgate.kits.terminal.drawing import DrawnLine, content, paint
from toolgate.kits.terminal.progress import Ticker
from toolgate.kits.terminal.results import show as show_result

app = CommandGroup("Documents that agents can search.")
Folder = Annotated[Path, Argument(metavar="FOLDER", help="A folder of documents.", path="directory")]
KindOption = Annotated[str, Option("--kind", help=f"What they describe: {', '.join(KINDS)}.")]


@app.without_command(epilog="Example: toolgate knowledge add docs")
def knowledge(root: options.Root = None, json: options.Json = False) -> None:
    """Documents that agents can search: without a subcommand, which folders."""
    project.run(_folders(root))


@app.command(epilog="Example: toolgate knowledge add docs")
def add(
    folder: Folder, kind: KindOption = "document", root: options.Root = None, json: options.Json = False
) -> None:
    """Index the documents of a folder: Markdown, reStructuredText, plain text, YAML. It can be interrupted and repeated."""
    project.run(_call("knowledge.add", {"folder": str(folder.resolve()), "kind": kind}, root))


@app.command(epilog="Example: toolgate knowledge search 'how refunds work' -n 3")
def search(
    query: Annotated[str, Argument(metavar="QUERY", help="What to look for, in words.")],
    count: Annotated[int, Option("-n", "--lines", help="How many at most.", min=1, max=50)] = 5,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Find pieces of documents, best first, with their file and heading."""
    project.run(_call("knowledge.search", {"query": query, "limit": count}, root))


@app.command(epilog="Example: toolgate knowledge sync")
def sync(root: options.Root = None, json: options.Json = False) -> None:
    """Bring the index of every folder up to date."""
    project.run(_sync(root))


@app.command(epilog="Example: toolgate knowledge reset docs")
def reset(
    folder: Annotated[Path | None, Argument(metavar="FOLDER", help="Only this one.")] = None,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Take a folder out of the index, or all of them."""
    project.run(_call("knowledge.reset", {"folder": str(folder.resolve()) if folder else ""}, root))


async def _call(name: str, args: dict[str, Any], root: Path | None) -> int:
    async with project.gate(root) as gate:
        with Ticker() as ticker:
            done = await gate.call(name, args, persona=HUMAN, wait=False, progress=ticker)
        return show_result(done)


async def _sync(root: Path | None) -> int:
    told: list[dict[str, Any]] = []
    async with project.gate(root) as gate:
        with Ticker() as ticker:
            for one in await Knowledge(gate.feature("memory")).folders():
                args = {"folder": one["folder"], "kind": one["kind"]}
                done = await gate.call("knowledge.add", args, persona=HUMAN, wait=False, progress=ticker)
                if not done.ok:
                    return show_result(done)
                told.append({"folder": one["folder"], **done.data})
    if not speech.finish(told):
        for folder in told:
            speech.say(
                f"{folder['folder']}: {folder['changed']} changed, {folder['same']} as before, {folder['gone']} gone"
            )
    return 0


async def _folders(root: Path | None) -> None:
    async with project.gate(root) as gate:
        found = await Knowledge(gate.feature("memory")).folders()
    if speech.finish(found):
        return
    if not found:
        speech.say("no folder is indexed: `toolgate knowledge add docs`")
        return
    rows = [[one["folder"], one["kind"], one["files"], one["pieces"]] for one in found]
    speech.put(speech.table(["folder", "kind", "files|right", "pieces|right"], rows))


def draw_documents(data: Any, person: bool) -> Iterator[DrawnLine]:
    for one in data["results"]:
        yield paint(one["source"], "bold").append(": ").append(one["heading"], "dim")
        yield from (content(f"  {line}") for line in one["content"].splitlines())
    if not data["results"]:
        yield paint("nothing was found", "dim")
    if data.get("degraded"):
        yield paint(f"degraded: {data['degraded']}", "yellow")


DRAWINGS = {"knowledge.search": draw_documents}
