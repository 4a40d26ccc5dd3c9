"""`fs.write`, `fs.append`, `fs.edit`, `fs.save`: each works out a Change; one function carries all of them out."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired, TypedDict

from toolgate.core.annotations import Field
from toolgate.core.change import Change, FileChange, content_hash
from toolgate.core.conceal import blank, conceal_text, encodes
from toolgate.core.errors import Conflict, InvalidArgs, NotFound, TooLarge
from toolgate.core.paths import MountPath, ScratchPath
from toolgate.core.records import dataclass
from toolgate.core.tool import Tool, tool
from toolgate.features.files.fs.read import by_mount, canonical_hash, missing
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.text import Text, decode, line_end, with_line_end

# Nearest lines: for a text that a file does not contain, where something like it stands and how that
# differs. Most misses are white space (tabs, indentation, blanks at an end) or one word that has changed
# since it was read.

MAX_LINES = 20_000
"""Lines of a file that are looked through."""
MAX_SHOWN = 8
MAX_COLUMNS = 200
ALIKE = 0.6
_WORD = re.compile(r"\w{3,}")
_NAMES = {" ": "blank", "\t": "tab"}


@dataclass(frozen=True, slots=True)
class Near:
    line: int
    end: int
    difference: str
    """In words; what the file has and what was looked for."""
    lines: tuple[str, ...]

    @property
    def where(self) -> str:
        return f"line {self.line}" if self.line == self.end else f"lines {self.line}-{self.end}"

    @property
    def shown(self) -> str:
        """As they stand there, under the header that `cat -n` would give."""
        rest = self.end - self.line + 1 - len(self.lines)
        numbered = [f"{self.line + at}\t{text[:MAX_COLUMNS]}" for at, text in enumerate(self.lines)]
        return "\n".join([*numbered, f"… {rest} more"] if rest > 0 else numbered)


def nearest(text: str, find: str) -> Near | None:
    """Where it stands but for white space, or what is most like its longest line; None where nothing is."""
    lines = [line.removesuffix("\r") for line in text.split("\n")[:MAX_LINES]]
    wanted = [line.removesuffix("\r") for line in find.strip("\n").split("\n")]
    if not any(map(str.strip, wanted)) or len(wanted) > len(lines):
        return None
    start = _same_words(lines, wanted)
    if start is not None:
        return _near(lines, wanted, start, "only white space differs: ")
    start = _most_alike(lines, wanted)
    return None if start is None else _near(lines, wanted, start, "")


def _near(lines: Sequence[str], wanted: Sequence[str], start: int, how: str) -> Near:
    end = min(start + len(wanted), len(lines))
    found = lines[start:end]
    ill = (
        (there, given, at)
        for at, (there, given) in enumerate(zip(found, wanted, strict=False))
        if not _fits(there, given, at == 0, at == len(wanted) - 1)
    )
    difference = next(
        (_differs(there, given, start + at + 1) for there, given, at in ill), "the ends of lines"
    )
    return Near(start + 1, end, how + difference, tuple(found[:MAX_SHOWN]))


def _words(line: str) -> str:
    return " ".join(line.split())


def _same_words(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The first and the last line of what was looked for may be parts of lines."""
    there, given = [_words(line) for line in lines], [_words(line) for line in wanted]
    if len(given) == 1:
        return next((at for at, line in enumerate(there) if given[0] in line), None)
    for at in range(len(there) - len(given) + 1):
        if (
            there[at].endswith(given[0])
            and there[at + len(given) - 1].startswith(given[-1])
            and there[at + 1 : at + len(given) - 1] == given[1:-1]
        ):
            return at
    return None


def _most_alike(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    given = max(wanted, key=lambda line: len(line.strip()))
    words = set(_WORD.findall(given))
    import difflib  # for a mistake only

    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(given.strip()[:MAX_COLUMNS])
    best, place = ALIKE, None
    for at, line in enumerate(lines):
        if words and words.isdisjoint(_WORD.findall(line)):
            continue
        matcher.set_seq1(line.strip()[:MAX_COLUMNS])
        if (
            matcher.real_quick_ratio() > best
            and matcher.quick_ratio() > best
            and (like := matcher.ratio()) > best
        ):
            best, place = like, at
    return None if place is None else max(place - list(wanted).index(given), 0)


def _fits(there: str, given: str, first: bool, last: bool) -> bool:
    """What was looked for may begin and end within lines."""
    if first and last:
        return given in there
    return there.endswith(given) if first else there.startswith(given) if last else there == given


def _differs(there: str, given: str, line: int) -> str:
    body, wanted = there.strip(), given.strip()
    if wanted in body or body in wanted:
        before, wants = _margin(there), _margin(given)
        if before != wants:
            return f"line {line} begins with {_said(before)}, not with {_said(wants)}"
        after, wants = there[len(there.rstrip()) :], given[len(given.rstrip()) :]
        if after != wants:
            return f"line {line} ends with {_said(after)}, not with {_said(wants)}"
    return f"line {line} is {_quoted(body)}, not {_quoted(wanted)}"


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _said(space: str) -> str:
    """`4 blanks`, `1 tab and 2 blanks`."""
    runs = [found[0] for found in re.finditer(r"(.)\1*", space, re.S)]
    told = [
        f"{len(run)} {_NAMES.get(run[0], f'U+{ord(run[0]):04X}')}{'s' * (len(run) > 1)}" for run in runs[:4]
    ]
    return " and ".join(told) or "no white space"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= MAX_COLUMNS else text[: MAX_COLUMNS - 1] + "…")


_SHOWN_LINES = 10
MAX_COUNTED = 1 << 20
"""Bytes of both sides, above which lines are not counted."""
LEAST_HASH = 16
"""Digits of a hash that are enough to mean a file's content."""
_OTHERS = {"path": "file_path", "find": "old_string", "replace": "new_string", "all": "replace_all"}
"""How the editors of coding assistants call them, which models are used to."""
Content = Annotated[str, Field(description="The whole new text of the file.")]
IfMatch = Annotated[
    Annotated[str, Field(max_length=256)] | None,
    Field(description="Write only if the file has this hash: `hash` of `fs.read`, `new_hash` of a write."),
]
Added = Annotated[str, Field(description="What to add at the end; no newline is put before it.")]
Find = Annotated[str, Field(min_length=1, description="The exact text to replace, no pattern; may be lines.")]
Replace = Annotated[str, Field(description="What to put in its place.")]
Every = Annotated[bool, Field(description="Replace it wherever it stands, not only where it stands once.")]


class Written(TypedDict):
    path: str
    created: bool
    bytes_written: int
    before_hash: str | None
    new_hash: str
    new_size: int
    match_count: NotRequired[int]
    line: NotRequired[int]
    """Where the change begins, and how many lines came and went from there to where it ends."""
    insertions: NotRequired[int]
    deletions: NotRequired[int]
    newHash: NotRequired[str]
    newSize: NotRequired[int]
    findings: NotRequired[list[dict[str, Any]]]
    """What the content scan found; the gate adds it."""


def tools(files: WorkspaceFiles) -> list[Tool]:
    async def plan_write(path: MountPath, content: Content, if_match: IfMatch = None) -> Change:
        """Write a file, creating it and its directories if need be. `if_match` is the hash it must have now."""
        return await _whole(files, path, content, if_match)

    async def plan_save(path: ScratchPath, content: Content) -> Change:
        """Save a scratch file: for results that are no part of the project."""
        return await _whole(files, path, content, None)

    async def plan_append(path: MountPath, text: Added) -> Change:
        """Add text at the end of a file, as it is; a missing file is created."""
        before = await files.read(path, to_change=True)
        now = _decoded(before, path)
        added = with_line_end(text, line_end(now.text))
        start = before or b""
        after = now.extend(start, added, path.shown)
        size = {"bytes_written": len(after) - len(start)}
        return await _planned(files, path, before, after, "append to", size)

    async def plan_edit(path: MountPath, find: Find, replace: Replace, all: Every = False) -> Change:  # noqa: A002
        """Replace a text in a file, also over several lines. It must be there exactly once, unless `all` is asked."""
        before = await files.read(path, to_change=True)
        if before is None:
            raise missing(path)
        now = _decoded(before, path)
        ending = line_end(now.text)
        wanted = with_line_end(find, ending)
        # what stands in a secret is not looked for: whether it was found would tell what it is made of
        known = blank(now.text, files.mounts.secrets())
        count = _matches(now.text, known, wanted, path, all)
        if not count:
            shown = conceal_text(now.text, files.mounts.secrets())
            near = await asyncio.to_thread(nearest, shown, find)
            raise _missed(path, near, known is not now.text)
        put = with_line_end(replace, ending)
        if put == wanted:  # nobody is asked about what changes nothing
            raise InvalidArgs("what to find and what to put in its place are the same", "change `replace`")
        _check_size(files, path, len(now.text) + count * (len(put) - len(wanted)))  # before it is made
        after = now.encode(_replaced(now.text, known, wanted, put), path.shown)
        return await _planned(files, path, before, after, "edit", {"match_count": count})

    async def carry_out(change: Change) -> Written:
        await files.apply(change)
        found = _written(change)
        if files.mounts.kind(change.files[-1].path.mount).camel_case:
            found["newHash"], found["newSize"] = found["new_hash"], found["new_size"]
        return found

    both: dict[str, Any] = {
        "effects_of": by_mount(files, "path", writes=True),
        "phase": "observe",
        "summarize": _in_words,
    }
    project: dict[str, Any] = {"reads": ["project"], "writes": ["project"], "risk": "medium", **both}
    scratch: dict[str, Any] = {"reads": ["scratch"], "writes": ["scratch"], **both}
    return [
        tool("fs.write", plan=plan_write, repeats=("content",), around="opts", **project)(carry_out),
        tool("fs.append", plan=plan_append, **project)(carry_out),
        tool("fs.edit", plan=plan_edit, also=_OTHERS, **project)(carry_out),
        tool("fs.save", plan=plan_save, aliases=("file/save", "file.save"), repeats=("content",), **scratch)(
            carry_out
        ),
    ]


def _in_words(data: Any) -> str:
    return f"{'Created' if data['created'] else 'Changed'} {data['path']} ({data['new_size']:,} bytes)"


async def _whole(files: WorkspaceFiles, path: MountPath, content: str, if_match: str | None) -> Change:
    before = await files.read(path, to_change=True)
    if if_match is not None:
        _check_match(path, before, if_match)
    kept = line_end(before.decode("utf-8", "replace")) if before else None
    after = Text("", "utf-8").encode(with_line_end(content, kept), path.shown)
    return await _planned(files, path, before, after, "write", {"bytes_written": len(after)})


async def _planned(
    files: WorkspaceFiles,
    path: MountPath,
    before: bytes | None,
    after: bytes,
    verb: str,
    report: Mapping[str, Any],
) -> Change:
    _check_size(files, path, len(after))
    parents = await files.to_make([path]) if before is None else []
    return Change((*parents, FileChange(path, before, after)), f"{verb} {path.shown}", report=report)


def _check_size(files: WorkspaceFiles, path: MountPath, size: int) -> None:
    limit = files.mounts.rules(path).max_bytes
    if size > limit:
        raise TooLarge(f"{path.shown!r} would have {size:,} bytes, the limit is {limit:,}", "write less")


def _written(change: Change) -> Written:
    file = change.files[-1]
    after = file.after or b""
    found = Written(
        path=file.path.shown, created=file.before is None, bytes_written=len(after),
        before_hash=file.before_hash, new_hash=file.after_hash or "", new_size=len(after),
    )  # fmt: skip
    found.update(change.report)  # type: ignore[typeddict-item]
    if len(after) + len(file.before or b"") <= MAX_COUNTED:
        found["line"], found["insertions"], found["deletions"] = _extent(file.before or b"", after)
    return found


def _extent(before: bytes, after: bytes) -> tuple[int, int, int]:
    """The first line that differs, and how many lines are new and how many gone between what is alike at both ends."""
    old, new = before.splitlines(), after.splitlines()
    least, head, tail = min(len(old), len(new)), 0, 0
    while head < least and old[head] == new[head]:
        head += 1
    while tail < least - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head + 1, len(new) - head - tail, len(old) - head - tail


def _check_match(path: MountPath, before: bytes | None, if_match: str) -> None:
    if before is None:
        raise Conflict(
            f"{path.shown!r} does not exist, so it cannot match {if_match!r}", "leave `if_match` out"
        )
    wanted = "sha256:" + if_match.removeprefix("sha256:").lower()
    found = content_hash(before)
    hashes = (found or "", canonical_hash(before, path.shown) or "")
    if len(wanted) < len("sha256:") + LEAST_HASH or not any(one.startswith(wanted) for one in hashes):
        raise Conflict(
            f"{path.shown!r} is {found}, not {if_match!r}",
            "read it again",
            data={"path": path.shown, "hash": found},
        )


def _decoded(before: bytes | None, path: MountPath) -> Text:
    return Text("", "utf-8") if before is None else decode(before, path.shown)


def _replaced(text: str, known: str, find: str, put: str) -> str:
    if known is text:
        return text.replace(find, put)
    made: list[str] = []
    at = 0
    while (position := known.find(find, at)) >= 0:
        made += (text[at:position], put)
        at = position + len(find)
    return "".join((*made, text[at:]))


def _missed(path: MountPath, near: Near | None, hides: bool) -> NotFound:
    """What stands in the file instead, as far as it may be known: `near` comes from a text without its secrets."""
    told = f"{path.shown!r} does not contain the text to find" + "; a secret in it is not searched" * hides
    fix = "find a text beside the secret" if hides else "read it again and copy it exactly"
    if near is None:
        return NotFound(told, fix)
    differs = f": {near.difference}" if near.difference else ""
    data = {"line": near.line, "end": near.end, "difference": near.difference, "lines": list(near.lines)}
    return NotFound(
        f"{told}; nearest is {near.where}{differs}",
        f"{fix}. There it says:\n{near.shown}",
        data={"near": data},
    )


def _matches(text: str, known: str, find: str, path: MountPath, every: bool) -> int:
    """How often it is replaced; 0 where it is not there. Overlapping matches make it ambiguous too, though they count once. `known` is the text
    without its secrets, of the same length."""
    at = [position] if (position := known.find(find)) >= 0 and encodes(find) else []
    while at and len(at) <= _SHOWN_LINES and (more := known.find(find, at[-1] + 1)) >= 0:
        at.append(more)
    if len(at) > 1 and not every:
        lines = dict.fromkeys(text.count("\n", 0, position) + 1 for position in at[:_SHOWN_LINES])
        where = ", ".join(map(str, lines)) + (", …" if len(at) > _SHOWN_LINES else "")
        count = known.count(find)
        often = f"{count:,} times" if count > 1 else "more than once"
        raise InvalidArgs(
            f"the text to find is in {path.shown!r} {often}, at line{'s' * (len(lines) > 1)} {where}",
            "find a longer text that is there once, or say `all`",
            data={"match_count": count},
        )
    return known.count(find)
