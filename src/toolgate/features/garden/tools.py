"""`md.*` and `garden.*`: a garden's files, read and edited by section. Every edit is one Change: the section, a line of the
Change Log, and for profiles a copy of what was there."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast

from toolgate.core import diff
from toolgate.core.annotations import BeforeValidator, Field
from toolgate.core.change import Change
from toolgate.core.context import Context
from toolgate.core.errors import CallError, Conflict, InvalidArgs
from toolgate.core.paths import MountPath
from toolgate.core.tool import Tool, tool
from toolgate.feature import FeatureContext
from toolgate.features.garden import edits
from toolgate.features.garden.editor import Editor, EditRequest
from toolgate.features.garden.grammar import off_loop
from toolgate.features.garden.layout import path_for
from toolgate.features.garden.service import Garden
from toolgate.gate.redact import with_contents


class GardenPath(MountPath):
    """A path in a garden; a plain one means the mount `garden` here, not the project."""

    __slots__ = ()
    told = "A file of the garden: `users/me/parts/work/profile.md`."

    @classmethod
    def parse(cls, text: str) -> GardenPath:
        return cls(MountPath.parse(text if ":" in text else f"garden:{text}"))


def _listed(value: object) -> object:
    return [value] if isinstance(value, str | dict) else value


_Text = Annotated[str, Field(max_length=100_000)]
Anchor = Annotated[
    str, Field(min_length=1, max_length=80, description="The section's anchor: `concerns v1`.")
]
IfMatch = Annotated[
    str, Field(max_length=256, description="The hash that the section, or the file, must have now.")
]
Rationale = Annotated[
    str, Field(max_length=500, description="Why, in one line; kept in the event and the Change Log.")
]
Override = Annotated[
    str, Field(max_length=500, description="Why a cap is passed, in one line. Only needed where one is.")
]
Evidence = Annotated[
    list[Annotated[str, Field(max_length=256)]],
    BeforeValidator(_listed),
    Field(max_length=50, description="What it rests on: `ev:` tokens, paths, events."),
]
Replaced = Annotated[_Text | None, Field(description="What the section says from now on.")]
Appended = Annotated[_Text | None, Field(description="What is added at its end.")]
Changed = Annotated[
    dict[Literal["replace", "append"], _Text] | None,
    Field(description="The same, as `{replace}` or `{append}`."),
]
Op = Literal["append", "prune", "merge"]
Ops = Annotated[
    list[Op],
    BeforeValidator(_listed),
    Field(min_length=1, max_length=100, description="One for all items, or one for each."),
]
Items = Annotated[
    list[Annotated[str, Field(max_length=2000)] | dict[str, Any]],
    BeforeValidator(_listed),
    Field(min_length=1, max_length=100, description='Texts; to merge, `{"from": [...], "into": "..."}`. `ev:x` names an item by its evidence.'),
]  # fmt: skip


class SectionShape(TypedDict):
    """As all results here, with the fields that the garden's own document names in its spelling too."""

    anchor: str
    heading: str
    start_line: int
    startLine: int
    end_line: int
    hash: str
    words: int
    items: int


class Sections(TypedDict):
    path: str
    hash: str
    sections: list[SectionShape]
    stale: NotRequired[list[dict[str, Any]]]
    """Lines that cite something that is gone or changed."""


class EditResult(TypedDict):
    path: str
    changed: bool
    before_hash: str
    after_hash: str
    """Of the section."""
    file_hash: str
    section_anchor: str
    op: str
    line_hash: str
    integrity_salt_version: int
    beforeHash: str
    afterHash: str
    history_path: NotRequired[str]
    rationale: NotRequired[str]
    override_rationale: NotRequired[str]
    evidence_refs: NotRequired[list[str]]
    lint: NotRequired[list[str]]
    skipped: NotRequired[list[str]]


class LintResult(TypedDict):
    path: str
    warnings: list[str]
    blocked: bool
    blocked_reasons: list[str]
    blockedReasons: NotRequired[list[str]]
    fixable: int


class HistoryCopy(TypedDict):
    path: str
    history_path: str
    historyPath: str


class Proposal(TypedDict):
    diff: str
    safety_report: str
    safetyReport: str
    requires_approval: bool
    requiresApproval: bool


MOST_MERGED = 100
_REPEATED = "this was done already"
_SHORT = {"section_anchor": "anchor"}


def tools(context: FeatureContext) -> list[Tool]:
    garden: Garden = context.gate.feature("garden")
    return [*_reading(garden), *_editing(garden), *_keeping(garden)]


def _reading(garden: Garden) -> list[Tool]:
    @tool("md.list_sections", reads=["garden"])
    async def list_sections(context: Context, path: GardenPath) -> Sections:
        """The sections of a garden file by their anchors, with hashes. Lines that cite what is gone or changed are listed."""
        found = await garden.sections(path)
        shapes: list[Any] = [one.shape() | {"startLine": one.start_line} for one in found.sections]
        told = Sections(path=path.shown, hash=found.hash, sections=shapes)
        stale = await garden.stale(path, context.persona)
        if stale:
            told["stale"] = stale
        return told

    @tool("md.lint", reads=["garden"], aliases=("lint.check",))
    async def lint_file(context: Context, path: GardenPath) -> LintResult:
        """What is not as it should be in a garden file: caps, headings, white space, duplicates, dangling ids, citations of what is gone, broken rules."""
        found = await garden.lint(path)
        blocked = [one.shown() for one in found if one.severity == "blocked"]
        stale = await garden.stale(path, context.persona)
        warnings = [one.shown() for one in found if one.severity != "blocked"]
        told = LintResult(
            path=path.shown, warnings=warnings + [f"line {one['line']}: {one['problem']} (stale)" for one in stale],
            blocked=bool(blocked), blocked_reasons=blocked, fixable=sum(one.fixable for one in found),
        )  # fmt: skip
        if blocked:
            told["blockedReasons"] = blocked
        return told

    return [list_sections, lint_file]


def _editing(garden: Garden) -> list[Tool]:
    editor = garden.editor

    async def plan_patch(
        context: Context, path: GardenPath, section_anchor: Anchor, replace: Replaced = None, append: Appended = None,
        change: Changed = None,
        if_match: IfMatch = "", rationale: Rationale = "", override_rationale: Override = "", evidence_refs: Evidence = [],  # noqa: B006 - pydantic copies it
    ) -> Change:  # fmt: skip
        """Replace what a section says, or add to its end. Anchors, identity and all other sections stay as they are."""
        request = EditRequest(
            path, section_anchor, if_match, rationale, override_rationale, tuple(evidence_refs)
        )
        op, edit = _patch_of(editor, section_anchor, replace, append, change or {})
        said = {"section_anchor": section_anchor, "replace": replace, "append": append, "change": change}
        return await _once(garden, context, request, said, editor.plan(context, request, op, edit))

    async def plan_curate(
        context: Context, path: GardenPath, section_anchor: Anchor, ops: Ops, items: Items, reason: Rationale,
        if_match: IfMatch = "", override_rationale: Override = "", evidence_refs: Evidence = [],  # noqa: B006
    ) -> Change:  # fmt: skip
        """Append, prune or merge items of a section's list, such as its evidence. What is so already is skipped."""
        steps = _steps(ops, items)
        request = EditRequest(
            path, section_anchor, if_match, reason, override_rationale, tuple(evidence_refs)
        )
        op = f"{steps[0][0]}_item" if len({step for step, _ in steps}) == 1 else "curate_list"
        skipped: list[str] = []
        plan = editor.plan(
            context,
            request,
            op,
            lambda raw: edits.curate(raw, section_anchor, steps, skipped),
            len(steps),
        )
        said = {"section_anchor": section_anchor, "ops": list(ops), "items": list(items)}
        made = await _once(garden, context, request, said, plan)
        if skipped and "skipped" not in made.report and made.summary != _REPEATED:
            made.report["skipped"] = list(dict.fromkeys(skipped))  # type: ignore[index]
        return made

    async def carry_out(change: Change) -> EditResult:
        await editor.apply(change)
        made: Any = dict(change.report)
        made |= {"beforeHash": made["before_hash"], "afterHash": made["after_hash"]}
        return cast(EditResult, made)

    async def plan_snapshot(context: Context, path: GardenPath) -> Change:
        """Keep a copy of a garden file in `history/` beside it."""
        return await editor.snapshot(path)

    async def snapshot(change: Change) -> HistoryCopy:
        await editor.apply(change)
        kept = change.report["history_path"]
        return HistoryCopy(path=change.report["path"], history_path=kept, historyPath=kept)

    both: dict[str, Any] = {"reads": ["garden"], "writes": ["garden"], "keeps_result": True}
    return [
        tool("md.patch_section", plan=plan_patch, around="opts", also=_SHORT, summarize=_in_words, **both)(carry_out),
        tool("md.curate_list", plan=plan_curate, around="opts", also={**_SHORT, "ops": "op", "items": "item"}, summarize=_in_words, **both)(carry_out),
        tool("md.snapshot_history", plan=plan_snapshot, lasting=True, **both)(snapshot),
        _proposing(editor),
    ]  # fmt: skip


def _proposing(editor: Editor) -> Tool:
    def proposal(shown: str, report: str, asks: bool) -> Proposal:
        return Proposal(
            diff=shown,
            safety_report=report,
            safetyReport=report,
            requires_approval=asks,
            requiresApproval=asks,
        )

    @tool("md.propose_change", reads=["garden"], aliases=("propose_change",), around="input", also=_SHORT)
    async def propose(
        context: Context, path: GardenPath, section_anchor: Annotated[str, Field(max_length=80, description="Absent: `content` is the whole file.")] = "",
        replace: Replaced = None, append: Appended = None, content: Annotated[_Text | None, Field(description="The whole file as it would be.")] = None,
        change: Changed = None, rationale: Rationale = "", override_rationale: Override = "",
    ) -> Proposal:  # fmt: skip
        """What an edit would do: its diff, and what the garden's rules and lint say. Changes nothing."""
        request = EditRequest(path, section_anchor, "", rationale, override_rationale, ())
        asks = editor.asks(context.persona)
        try:
            if content is not None:
                made = await editor.whole(request, content)
            else:
                patch = _patch_of(editor, section_anchor, replace, append, change or {})
                made = await editor.plan(context, request, *patch)
            longest = max(
                (side or b"" for file in made.files for side in (file.before, file.after)),
                key=len,
                default=b"",
            )
            await off_loop(
                longest, lambda: editor.guard(made, "md.patch_section" if content is None else "fs.write")
            )
        except CallError as error:
            rule = str((error.data or {}).get("rule", ""))
            if not rule.startswith("garden:") or rule == "garden:roots":
                raise  # no such file to propose anything about, or none that may be seen
            return proposal("", f"refused by {rule}: {error.message}; {error.fix}", asks)
        found = made.report.get("lint", [])
        report = "no rule is broken" + (f"; lint: {'; '.join(found)}" if found else "; lint is clean")
        own = Change(tuple(file for file in made.files if file.path == path))  # the copy says nothing new
        shown = await off_loop(longest, lambda: diff.render(with_contents(own, editor.known)))
        return proposal(shown, report, asks)

    return propose


def _keeping(garden: Garden) -> list[Tool]:
    editor = garden.editor

    async def plan_add(
        context: Context, kind: Annotated[Literal["user", "part", "relationship"], Field(description="What is new.")],
        id: Annotated[str, Field(max_length=64, description="Its id; absent for a user.")] = "",  # noqa: A002
        user: Annotated[str, Field(max_length=64, description="Whose garden; absent: the persona's user's.")] = "",
        title: Annotated[str, Field(max_length=200, pattern=r"^[^\r\n]*$", description="Its heading; absent: made of the id.")] = "",
        participants: Annotated[list[Annotated[str, Field(max_length=64, pattern=r"^[\w.@ -]+$")]], Field(max_length=20, description="Who takes part in a relationship.")] = [],  # noqa: B006
        mount: Annotated[str, Field(max_length=64, description="Which garden, where there are several.")] = "garden",
    ) -> Change:  # fmt: skip
        """Begin a user's garden, or add a part or a relationship to it, from the template of its kind."""
        return await editor.add(
            mount, kind, user or garden.user_of(context.persona), id, title, tuple(participants)
        )

    async def plan_fix(path: GardenPath) -> Change:
        """Mend what lint can mend: headings, lost or doubled anchors, identity, white space."""
        return await editor.fix(path)

    async def plan_restore(
        path: GardenPath, version: Annotated[str, Field(min_length=1, max_length=128, description="An event, a hash or a copy in history/.")],
        reason: Rationale = "",
    ) -> Change:  # fmt: skip
        """Bring back an earlier version of a file, as a new edit: what it replaces stays in the history."""
        return await editor.restore(path, version, await garden.version(path, version), reason)

    async def carry_out(change: Change) -> dict[str, Any]:
        await editor.apply(change)
        return dict(change.report)

    both: dict[str, Any] = {"reads": ["garden"], "writes": ["garden"], "keeps_result": True}
    return [
        tool("garden.add", plan=plan_add, lasting=True, paths_of=_to_add, **both)(carry_out),
        tool("garden.fix", plan=plan_fix, human=True, **both)(carry_out),
        tool("garden.restore", plan=plan_restore, human=True, **both)(carry_out),
    ]


def _to_add(args: Any) -> list[MountPath]:
    """Of another user's garden: policy refuses it before anything is looked at, so that nobody learns what is there."""
    wanted = args.kind if args.kind != "user" else "overview"
    return [MountPath.parse(f"{args.mount}:{path_for(wanted, args.user, args.id)}")] if args.user else []


async def _once(
    garden: Garden, context: Context, request: EditRequest, said: dict[str, Any], plan: Coroutine[Any, Any, Change]
) -> Change:  # fmt: skip
    """A call that is made again, with the hash that it had before, is given what the first gave: that hash has gone by it."""
    try:
        return await plan
    except Conflict:
        first = await garden.record.repeated(
            request.path, context.tool, said | {"if_match": request.if_match}
        )
        if first is None:
            raise
        return Change((), _REPEATED, report=first)


def _patch_of(
    editor: Editor, anchor: str, replace: str | None, append: str | None, change: dict[Any, str]
) -> tuple[str, edits.Edit]:
    given = [
        (name, text)
        for name, text in [("replace", replace), ("append", append), *change.items()]
        if text is not None
    ]
    if len(given) != 1:
        raise InvalidArgs("say what changes, once", "pass `replace` or `append`")
    name, text = given[0]
    if name == "replace":
        return "replace_section", lambda raw: edits.replace(raw, anchor, text)
    return "append_section", lambda raw: edits.append(raw, anchor, text, editor.known)


def _steps(ops: Sequence[str], items: Sequence[Any]) -> list[tuple[str, Any]]:
    if len(ops) not in (1, len(items)):
        raise InvalidArgs(f"{len(ops)} ops for {len(items)} items", "give one op for all, or one for each")
    paired = list(zip(ops if len(ops) == len(items) else list(ops) * len(items), items, strict=True))
    for op, item in paired:
        fits = isinstance(item, dict) and item.keys() == {"from", "into"} and isinstance(item["from"], list)
        if fits != (op == "merge"):
            raise InvalidArgs(
                f"the item {str(item)[:80]!r} is not one to {op}",
                'merge takes {"from": [...], "into": "..."}, the others a text',
            )
        if fits and len(item["from"]) > MOST_MERGED:
            raise InvalidArgs(f"{len(item['from']):,} items to merge into one", f"give at most {MOST_MERGED}")
    return paired


def _in_words(data: Any) -> str:
    return (
        f"{data['op']} {data['section_anchor']} of {data['path']}"
        if data["changed"]
        else f"{data['path']} was so already"
    )
