"""Source code and its history as models read them: `cat -n`, `rg`, `git diff`, `git log` and `git blame`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolgate.core.display import harmless
from toolgate.core.rendering import Rendering, counted, listed, more, name, numbered, text, word

FEW_FILES = 3
"""Of a commit in a list of many."""
MOST_MISSING = 50
_MARKS = {"context": " ", "addition": "+", "deletion": "-"}


def read(data: Any, args: Mapping[str, Any]) -> str:
    """`path 10-14/371`, then the lines by number. What they define only where it was asked for, or where they were cut."""
    total = data["summary"].partition("(")[2].partition(" ")[0].replace(",", "") or "?"
    first, last = map(int, data["line_range"].split("-"))
    body = numbered(data["content"].split("\n")[: max(last - first + 1, 0)], first)
    wanted = args.get("include_outline") or data["truncated"]
    outline = "".join(_symbols(data.get("outline", ()), 0)) if wanted else ""
    told = [f"{name(data['path'])} {data['line_range']}/{total}", body.rstrip("\n"), *more(data)]
    return "\n".join([part for part in told if part] + ([f"outline:\n{outline.rstrip()}"] if outline else []))


def search(data: Any, args: Mapping[str, Any]) -> str:
    """By file, `line: text`. What surrounds a match only where it was asked for."""
    if args.get("files_only"):
        told = [f"{name(one['file'])}: {one['count']:,}" for one in data["top_files"]]
        return "\n".join([*told, *_search_end(data)])
    around = bool(args.get("context_lines"))
    by_file: dict[str, list[Any]] = {}
    for match in data["matches"]:
        by_file.setdefault(match["file"], []).append(match)
    made: list[str] = []
    for file, matches in by_file.items():
        made += [*([""] if made else []), name(file), *_lines(matches, around)]
    return "\n".join([*made, *_search_end(data)])


def _lines(matches: list[Any], around: bool) -> Iterator[str]:
    """Of one file, each line once: `12: ` where it matches, `12- ` where it surrounds a match, as `rg` marks them."""
    shown: dict[int, str] = {}
    for match in matches:
        if "line" not in match:
            yield text(match["line_text"])
            continue
        number: int = match["line"]
        if around:
            before = match["context_before"]
            for at, line in enumerate(before, number - len(before)):
                shown.setdefault(at, f"{at}- {text(line)}")
            for at, line in enumerate(match["context_after"], number + 1):
                shown.setdefault(at, f"{at}- {text(line)}")
        shown[number] = f"{number}: {text(match['line_text'])}"
    last = 0
    for number in sorted(shown):
        if around and last and number > last + 1:
            yield "--"
        yield shown[number]
        last = number


def _search_end(data: Any) -> list[str]:
    if not data["total_matches"]:
        told = f"no match for {harmless(data['pattern'])} in {counted(data['files_searched'], 'file')}"
    else:
        told = data["summary"].removeprefix("Found ")
    return [f"{told}; {data['next']}" if data.get("next") else told, *more({**data, "next": None})]


def listing(data: Any, args: Mapping[str, Any]) -> str:
    column = {"size": "size", "modified": "last_modified"}.get(args.get("sort_by", ""))
    paths = [name(entry["path"]) + "/" * entry["is_directory"] for entry in data["files"]]
    made = listed(paths, [f"\t{entry[column]}" if column else "" for entry in data["files"]])
    if data["truncated"]:
        made.append(f"… {len(paths):,} of {data['total_files']:,}; {data.get('next', '')}")
    return "\n".join(made) or "no such file"


def outline(data: Any, args: Mapping[str, Any]) -> str:
    made = "".join(_symbols(data["symbols"], 0)).rstrip()
    told = f"{name(data['path'])} {data['language'] or 'unknown language'}, {counted(data['total_symbols'], 'symbol')}"
    return "\n".join([told, *([made] if made else []), *more(data)])


def _symbols(symbols: Any, depth: int) -> Iterator[str]:
    for each in symbols:
        yield f"{each['start_line']}-{each['end_line']} {'  ' * depth}{each['kind']} {harmless(each['name'])}\n"
        yield from _symbols(each.get("children", ()), depth + 1)


def diff(data: Any, args: Mapping[str, Any]) -> str:
    if args.get("view") == "stat":
        return "\n".join(
            [
                *(f"{name(each['path'])} {each['changes']}" for each in data["files"]),
                data["summary"],
                *more(data),
            ]
        )
    made = [line for each in data["diffs"] for line in _file(each)]
    there = {each["path"] for each in data["diffs"]}
    missing = [each for each in data["files"] if each["path"] not in there]
    made += [f"… not shown: {name(each['path'])} {each['changes']}" for each in missing[:MOST_MISSING]]
    if not made:
        made.append(f"no difference between {harmless(data['base'])} and {harmless(data['compare'])}")
    return "\n".join([*made, *more(data)])


def log(data: Any, args: Mapping[str, Any]) -> str:
    if args.get("oneline") and data["commits"]:
        told = (f"{each['short_hash']} {text(each['message'])}" for each in data["commits"])
        return "\n".join([*told, *more(data)])
    made = [_commit(each) for each in data["commits"]]
    return "\n\n".join([*(made or [data["summary"]]), *more(data)])


def show(data: Any, args: Mapping[str, Any]) -> str:
    """Of a merge the diff only where it was asked for: `git show` too leaves out what its branch brings."""
    commit = data["commit"]
    if len(commit.get("parents", ())) > 1 and "include_diff" not in args:
        files = commit["files_changed"]
        left = len(files[FEW_FILES:]) + commit.get("more_files", 0)
        short = {key: value for key, value in commit.items() if key not in ("diff", "cut")}
        short |= {"files_changed": files[:FEW_FILES], "more_files": left}
        short["next"] = "against its first parent; include_diff=true gives the diff"
        return "\n".join([_commit(short, whole=True), *more(short)])
    parts = [_commit(commit, whole=True), *("\n".join(_file(each)) for each in commit.get("diff", ()))]
    parts += [f"… {commit[word]}" for word in ("cut", "left_out") if commit.get(word)]
    return "\n".join([*parts, *more(data)])


def _commit(commit: Any, whole: bool = False) -> str:
    """`hash date author +1 -2`, the message, and the files where there are few."""
    stats, files = commit["stats"], commit["files_changed"]
    head = [
        commit["hash"] if whole else commit["short_hash"], commit["date"][: 19 if whole else 10], harmless(commit["author"]),
    ]  # fmt: skip
    head += [f"<{harmless(commit['email'])}>"] if whole else []
    head.append(f"+{stats['insertions']} -{stats['deletions']}")
    if len(commit.get("parents", ())) > 1:
        head.append(f"merge of {' '.join(one[:10] for one in commit['parents'])}")
    made = [
        " ".join(head),
        *(f"  {text(line)}".rstrip() for line in commit["message"].rstrip("\n").split("\n")),
    ]
    if "diff" in commit and whole:
        return "\n".join([*made, ""])
    some = files if whole else files[:FEW_FILES]
    left = len(files) - len(some) + commit.get("more_files", 0)
    if some:
        made.append("  " + " ".join(map(word, some)) + (f" and {left:,} more" if left else ""))
    if len(commit.get("parents", ())) > 1:  # `git log -p` too leaves out what its branch brings
        return "\n".join(made)
    made += [line for each in commit.get("diff", ()) for line in _file(each)]
    return "\n".join(made + ([f"… {commit['cut']}"] if commit.get("cut") else []))


def _file(diff: Any) -> Iterator[str]:
    yield from file_head(diff, name(diff["path"]), name(diff.get("old_path") or diff["path"]))
    for hunk in diff["hunks"]:
        yield from _hunk(hunk)
    if "cut" in diff:
        yield f"… {diff['cut']}"


def file_head(diff: Any, new: str, old: str) -> Iterator[str]:
    """What git says of a file before its hunks."""
    yield f"diff --git a/{old} b/{new}"
    if diff["status"] in ("added", "deleted"):
        yield f"{'new' if diff['status'] == 'added' else 'deleted'} file mode {diff.get('file_mode', '100644')}"
    if "mode" in diff:
        for word, mode in zip(("old", "new"), diff["mode"].split(" → "), strict=True):
            yield f"{word} mode {mode}"
    if "old_path" in diff:
        yield from (f"rename from {old}", f"rename to {new}")
    before = "/dev/null" if diff["status"] == "added" else f"a/{old}"
    after = "/dev/null" if diff["status"] == "deleted" else f"b/{new}"
    if diff.get("binary"):
        yield f"Binary files {before} and {after} differ"
    if diff["hunks"]:
        yield from (f"--- {before}", f"+++ {after}")


def hunk_head(hunk: Any) -> str:
    old, new = (
        f"{hunk[f'{side}_start']}" + (f",{hunk[f'{side}_lines']}" if hunk[f"{side}_lines"] != 1 else "")
        for side in ("old", "new")
    )
    return f"@@ -{old} +{new} @@"


def _hunk(hunk: Any) -> Iterator[str]:
    yield hunk_head(hunk) + (f" {text(hunk['section'])}" if hunk.get("section") else "")
    for line in hunk.get("lines", ()):
        yield _MARKS[line["type"]] + text(line["content"])
        if line.get("no_newline"):
            yield "\\ No newline at end of file"
    for row in hunk.get("rows", ()):
        for side in (row["left"], row["right"]):
            if side is not None and not (side is row["right"] and side["type"] == "context"):
                yield _MARKS[side["type"]] + text(side["content"])
    if "cut" in hunk:
        yield f"… {hunk['cut']}"


def blame(data: Any, args: Mapping[str, Any]) -> str:
    """Each commit in full where it comes first, later by its hash; below it number and text of its lines."""
    made, last, told = [f"{name(data['path'])} {counted(data['total_lines'], 'line')}"], "", set()
    for line in data["lines"]:
        commit = line["commit"]
        if commit["hash"] != last:
            made.append(commit["short_hash"] if commit["hash"] in told else _origin(commit))
            last = commit["hash"]
            told.add(last)
        made.append(
            f"{line['line_number']}\t{text(line['content'])}"
            if "content" in line
            else str(line["line_number"])
        )
    return "\n".join([*made, *more(data)])


def _origin(commit: Any) -> str:
    said = text(commit["message"]).partition("\n")[0]
    return f"{commit['short_hash']} {commit['date'][:10]} {harmless(commit['author'])}: {said}"


RENDERINGS: Mapping[str, Rendering] = {
    "code.read": read, "code.search": search, "fs.search": search, "code.list": listing, "code.outline": outline,
    "code.diff": diff, "code.log": log, "code.show": show, "code.blame": blame,
}  # fmt: skip
