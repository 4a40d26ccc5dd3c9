"""`toolgate approvals`: open questions, one in full, and the answer to it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from toolgate.core.clock import SECOND, iso
from toolgate.core.errors import Conflict, InvalidArgs, NotFound
from toolgate.core.records import replace
from toolgate.kits import words
from toolgate.kits.terminal import arguments, complete, options, project, speech
from toolgate.kits.terminal.command import Argument, Option, command
from toolgate.project import opening

if TYPE_CHECKING:
    from toolgate.consent.desk import Desk
    from toolgate.consent.works import Scope
    from toolgate.core.decision import Question


@command(epilog="Example: toolgate approvals q_01a2b3 approve --grant 3600 --path 'docs/**'")
def approvals(
    ident: Annotated[
        str, Argument(metavar="ID", help="Show this question.", complete=complete.questions)
    ] = "",
    answer: Annotated[str, Argument(metavar="approve|refuse", help="Answer it.")] = "",
    reason: options.Reason = "",
    grant: Annotated[float, Option("--grant", help="Also allow such calls for so many seconds.")] = 0,
    path: Annotated[
        list[str] | None,
        Option("--path", help="The grant covers paths that match; may be said several times."),
    ] = None,
    arg: Annotated[list[str] | None, Option("--arg", "-a", help="The grant needs name=value.")] = None,
    same: Annotated[
        list[str] | None,
        Option(
            "--same",
            help="The grant needs this argument as it is here: code by its hash, network as at most these hosts; `all` for all.",
        ),
    ] = None,
    program: Annotated[
        bool, Option("--program", help="The grant is for the program of this command, with any arguments.")
    ] = False,
    paths: Annotated[bool, Option("--paths", help="The grant is for the files of this change.")] = False,
    uses: Annotated[int, Option("--uses", help="The grant ends after so many uses.", min=0)] = 0,
    watch: Annotated[bool, Option("--watch", help="Keep showing questions as they open and close.")] = False,
    everything: Annotated[
        bool, Option("--all", help="Show all of a question, however long; with `refuse`: every open one.")
    ] = False,
    only: Annotated[str, Option("--args", metavar="NAME", help="Show only this argument, all of it.")] = "",
    file: Annotated[
        str, Option("--file", metavar="PATH", help="Write what this binary file would hold to stdout.")
    ] = "",
    limit: Annotated[int, Option("--limit", help="List at most so many.", min=1, max=1000)] = 50,
    after: Annotated[int, Option("--after", help="List those asked after this event.", min=0)] = 0,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """List open questions, show one in full, or answer it."""
    if ident in ("refuse", "deny") and not answer:
        if not everything:
            raise InvalidArgs(f"`{ident}` of which question?", f"write `ID {ident}`, or `{ident} --all`")
        project.control(_refuse_all(reason, root))
    elif answer:
        project.control(
            _answer(
                ident,
                _word(answer),
                reason,
                _scope(grant, path, arg, uses, same, program or paths),
                same,
                root,
                program=program,
                paths=paths,
            )
        )
    elif ident and file:
        project.run(_file(ident, root, file))
    elif ident:
        project.control(_show(ident, root, everything, only))
    elif watch:
        project.run(_watch(root, limit))
    else:
        project.control(_list(root, limit, after))


def _word(answer: str) -> Literal["approve", "deny"]:
    if answer == "approve":
        return "approve"
    if answer in ("refuse", "deny"):  # `deny` is the word of programs: the library and HTTP
        return "deny"
    raise InvalidArgs(f"{answer!r} is not an answer", "say `approve` or `refuse`")


def _scope(
    seconds: float, paths: list[str] | None, named: list[str] | None, uses: int, same: list[str] | None,
    kept: bool = False,
) -> Scope | None:  # fmt: skip
    if not seconds:
        if paths or named or uses or same or kept:
            raise InvalidArgs(
                "--path, --paths, --program, --arg, --same and --uses describe a grant", "add --grant SECONDS"
            )
        return None
    from toolgate.consent.works import Scope

    return Scope(arguments.read("", named or ()).fit(), tuple(paths or ()), seconds=seconds, uses=uses)


async def _answer(
    ident: str,
    answer: Literal["approve", "deny"],
    reason: str,
    scope: Scope | None,
    same: list[str] | None,
    root: Path | None,
    *,
    program: bool = False,
    paths: bool = False,
) -> None:
    # under a broken policy a call can be refused, and not approved
    setup = project.trusted(root) if answer == "approve" else project.recorded(root)
    async with opening.open_desk(setup) as desk:
        ident = await _whole(desk, ident)
        asked = await desk.question(ident) if scope is not None else None
        if scope is not None and asked is not None:
            kept = _kept(asked, same or ()) | (_program(asked) if program else {})
            shown, directed = _paths(asked) if paths else ([], {})
            globs = (*scope.paths, *shown)
            scope = replace(scope, args=directed | kept | dict(scope.args), paths=globs)
        outcome = await desk.answer(
            ident, answer == "approve", reason=reason, scope=scope, channel=options.channel()
        )
    if not speech.finish({"id": ident, "outcome": outcome}):
        speech.say(f"{ident} is {outcome}" + ("; `toolgate grants` shows the grant" if scope else ""))
        if scope is not None and asked is not None and outcome == "approved":
            from toolgate.consent.works import covered
            from toolgate.kits.terminal import question as questions

            until = questions.now() + round(scope.seconds * SECOND)
            speech.say(
                words.grant_in_words(
                    asked.persona, asked.tool, covered(scope, asked.args, asked.effects), until
                )
            )
        if outcome == "approved":
            speech.note("whoever waits for it goes on; otherwise make the same call again, and it runs")


async def _refuse_all(reason: str, root: Path | None) -> None:
    """Every question that is open now. One that is answered meanwhile keeps its answer."""
    refused: list[str] = []
    async with opening.open_desk(project.recorded(root)) as desk:
        for ident in await desk.open_ids():
            with suppress(NotFound, Conflict):
                await desk.answer(ident, False, reason=reason, channel=options.channel())
                refused.append(ident)
    if not speech.finish({"refused": refused}):
        count = len(refused)
        speech.say(f"{count} question{'s' * (count != 1)} refused" if count else "no open questions")


def _kept(asked: Question, same: Sequence[str]) -> dict[str, Any]:
    from toolgate.consent import grants

    names = [limit.name for limit in grants.limits(asked)] if "all" in same else same
    return grants.same(asked, names)


def _program(asked: Question) -> dict[str, Any]:
    """Every other argument as it is."""
    from toolgate.consent import grants

    chosen = next((one for one in grants.choices(asked) if one.key == "program"), None)
    if chosen is None:
        raise InvalidArgs(f"question {asked.id} has no argv that a program begins", "use --same all")
    return dict(chosen.args)


def _paths(asked: Question) -> tuple[list[str], dict[str, Any]]:
    """Those of the change that the question shows; of a move also which is which."""
    from toolgate.consent import grants
    from toolgate.core.paths import MountPath
    from toolgate.kits import diffs

    named = [path for file in diffs.parse(asked.preview) for path in (file.path, file.old_path) if path]
    paths = [MountPath.parse(path) for path in named]
    found = grants.globs(paths)
    if not found:
        raise InvalidArgs(f"question {asked.id} shows no change of files, or of too many", "use --path GLOB")
    return found, grants.sides(asked, paths)


async def _show(ident: str, root: Path | None, whole: bool, only: str) -> None:
    async with project.desk(root) as desk:
        ident = await _whole(desk, ident)
        question = await desk.question(ident)
    if question is None:
        raise NotFound(
            f"there is no open question {ident}",
            f"`toolgate approvals` lists the open ones, `toolgate ledger show {ident}` what became of it",
        )
    if speech.finish(_plain(question)):
        return
    from toolgate.kits.terminal import question as questions  # loaded where there is one

    if only:
        if only not in question.args:
            named = ", ".join(question.args) or "none"
            raise NotFound(f"the call has no argument {only[:80]!r}", f"it has: {named}")
        questions.print_text(speech.out(), question, only)
        return
    questions.print_page(speech.out(), question, whole=whole)
    if question.state == "open":
        speech.say(f"\ntoolgate approvals {ident} approve|refuse")
    else:
        speech.say(f"\nit is {question.state} and waits for the call to be made again")


async def _file(ident: str, root: Path | None, path: str) -> None:
    """Bytes that no question shows line by line, to be looked at with other programs."""
    from toolgate.kits import diffs
    from toolgate.workspace.images import Images

    setup = project.recorded(root)
    async with opening.open_desk(setup) as desk:
        question = await desk.question(await _whole(desk, ident))
    binary = {
        each.path: each.digest for each in diffs.parse(question.preview if question else "") if each.digest
    }
    if path not in binary:
        named = ", ".join(binary) or "none"
        raise NotFound(f"question {ident} has no binary file {path[:80]!r}", f"it has: {named}")
    sys.stdout.buffer.write(Images(setup.local / "images").get(binary[path]))


async def _whole(desk: Desk, ident: str) -> str:
    """An open one first: that is what a person has before their eyes."""
    opened = await desk.open_ids()
    return await options.whole_id(desk.ledger.backend.rows, ident, "q", opened)


async def _list(root: Path | None, limit: int, after: int) -> None:
    async with project.desk(root) as desk:
        page = await desk.page(limit, after, whole=speech.mode.json)
        _print(page.questions)
    if page.next is not None:
        speech.note(f"{page.total:,} are open; the next ones: toolgate approvals --after {page.next}")


async def _watch(root: Path | None, limit: int) -> None:
    """Until Ctrl-C; prints again only when something has changed."""
    seen: list[str] | None = None
    async with project.desk(root) as desk:
        while True:
            ids = await desk.open_ids()
            if ids != seen:
                seen = ids
                _print((await desk.page(limit)).questions)
            await desk.ledger.backend.changed(5.0)


def _print(found: list[Question]) -> None:
    if speech.finish([_plain(question) for question in found]):
        return
    if not found:
        speech.say("no open questions")
        return
    from toolgate.kits.terminal import question as questions

    now = questions.now()
    rows = [
        [
            question.id,
            words.span(now - question.asked_at),
            question.persona,
            question.tool,
            f"in {words.span(question.expires_at - now)}",
        ]
        for question in found
    ]
    speech.put(speech.table(["question|whole", "age", "persona", "tool", "expires"], rows))
    for question in found:
        speech.put(speech.safe(f"{question.id[-6:]}  {questions.sentence(question)}", "dim"))


def _plain(question: Question) -> dict[str, Any]:
    from dataclasses import asdict  # for --json only

    data = asdict(question)
    data |= {"asked_at": iso(question.asked_at), "expires_at": iso(question.expires_at)}
    return data | {
        "args": dict(question.args),
        "channels": list(question.channels),
        "findings": list(question.findings),
    }
