"""A look at a program before it runs: what would show a secret or reach for what is none of its business.

Advice in short sentences, and nothing more. The walls are the sandbox's, and what leaves is redacted whatever a program does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from toolgate.core.late_pattern import late_pattern

MAX_ADVICE = 5
MAX_PROGRAM_LENGTH = 256 * 1024
"""Characters of a program that are looked at."""
Remark = tuple[int, str]
"""Line, and what to say about it."""
_GIVES = frozenset({"get_secret", "getSecret"})
_SHOWS = frozenset({"print", "output", "pprint", "write", "info", "debug", "warning", "error", "log"})
_PIPES = frozenset({"read", "write", "fdopen", "open", "dup", "dup2", "sendmsg", "fromfd"})
_PROC = late_pattern(r"/proc/|/dev/fd/|/dev/mem")


def advise(language: str, code: str) -> list[str]:
    """At most a few sentences; none for a language that is not known."""
    if len(code) > MAX_PROGRAM_LENGTH:
        return [f"the program is longer than {MAX_PROGRAM_LENGTH:,} characters and was not looked at"]
    look = {"python": _python, "javascript": _javascript}.get(language)
    try:
        found = sorted(set(look(code))) if look is not None else []
    except RecursionError:
        found = []
    return [f"line {line}: {what}" for line, what in found[:MAX_ADVICE]]


def _python(code: str) -> Iterator[Remark]:
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, MemoryError):
        return  # it will say so itself when it runs
    held = _held(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _call(node, held)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _PROC.search(node.value):
            yield _line(node, f"it reaches for {_proc(node.value)}, where the sandbox shows nothing of use")
        elif isinstance(node, ast.Raise) and any(_mentions(each, held) for each in _told(node.exc)):
            yield _line(node, "it raises an error with a secret in it, which will be masked")


def _told(error: ast.expr | None) -> list[ast.expr]:
    return error.args if isinstance(error, ast.Call) else []


def _held(tree: ast.AST) -> set[str]:
    """The names that hold what `get_secret` gave, also through others; a second pass finds those written before."""
    held: set[str] = set()
    for _ in range(2):
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if _mentions(node.value, held):
                    held.update(
                        each.id
                        for target in targets
                        for each in ast.walk(target)
                        if isinstance(each, ast.Name)
                    )
    return held


def _mentions(node: ast.AST, held: set[str]) -> bool:
    """Whether the secret itself is in it. What a function of some other kind makes of it (a request) is not it."""
    if isinstance(node, ast.Call):
        name = _called(node)
        plain = name in (
            "str",
            "repr",
            "format",
            "encode",
            "join",
            "b64encode",
            "hex",
            "quote",
            "dumps",
            "reversed",
        )
        inside = [*node.args, *(each.value for each in node.keywords)]
        if plain and isinstance(node.func, ast.Attribute):
            inside.append(node.func.value)
        return name in _GIVES or (plain and any(_mentions(each, held) for each in inside))
    if isinstance(node, ast.Name):
        return node.id in held
    return any(_mentions(each, held) for each in ast.iter_child_nodes(node))


def _call(node: ast.Call, held: set[str]) -> Iterator[Remark]:
    name = _called(node)
    given = [*node.args, *(each.value for each in node.keywords)]
    if name in _SHOWS and any(_mentions(each, held) for each in given):
        yield _line(node, f"`{name}` is given a secret, which will be masked in what it shows")
    first = given[0] if given else None
    if name in _PIPES and isinstance(first, ast.Constant) and type(first.value) is int and first.value > 2:
        yield _line(
            node, f"`{name}` is given descriptor {first.value}; the broker answers through the prelude only"
        )
    if (
        name in ("import_module", "__import__")
        and isinstance(first, ast.Constant)
        and first.value == "ctypes"
    ):
        yield _line(node, "it loads ctypes, which the sandbox does not help")


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _proc(text: str) -> str:
    found = _PROC.search(text)
    return found.group().rstrip("/") if found else ""


def _line(node: ast.AST, what: str) -> Remark:
    return getattr(node, "lineno", 0), what


_TOKEN = late_pattern(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)"
    r"|(?P<text>'(?:[^'\\\n]|\\.){0,4000}'?|\"(?:[^\"\\\n]|\\.){0,4000}\"?|`(?:[^`\\]|\\.){0,20000}`?)"
    r"|(?P<name>[A-Za-z_$][\w$]*)|(?P<number>[0-9]+)|(?P<sign>[^\s\w])",
    re.DOTALL,
)
_DEEPEST = 200
_JS_SHOWS = frozenset({"log", "info", "debug", "warn", "error", "output", "write", "writeSync", "stringify"})
_JS_PIPES = frozenset({"readSync", "writeSync", "createReadStream", "createWriteStream", "openSync"})


def _javascript(code: str) -> Iterator[Remark]:
    """By tokens: a name that was given a secret, inside the brackets of something that shows."""
    held: set[str] = set()
    open_calls: list[str] = []
    name = assigned = ""
    for line, kind, text in _tokens(code):
        if kind == "text":
            yield from _js_text(line, text, held, open_calls)
        elif kind == "name":
            if text in _GIVES and assigned:
                held.add(assigned)
            if (text in held or text in _GIVES) and (shown := _shows(open_calls)):
                yield line, f"`{shown}` is given a secret, which will be masked in what it shows"
            name = text
            continue
        elif kind == "number" and open_calls and open_calls[-1] in _JS_PIPES and int(text[:9]) > 2:
            yield (
                line,
                f"`{open_calls[-1]}` is given descriptor {text[:9]}; the broker answers through the prelude only",
            )
        elif text == "(":
            if len(open_calls) == _DEEPEST:
                return  # no program that anybody wrote
            open_calls.append(name)
        elif text == ")" and open_calls:
            open_calls.pop()
        elif text == "=":
            assigned = name
        elif text == ";":
            assigned = ""
        name = ""


def _js_text(line: int, text: str, held: set[str], open_calls: list[str]) -> Iterator[Remark]:
    if _PROC.search(text):
        yield line, f"it reaches for {_proc(text)}, where the sandbox shows nothing of use"
    inside = set(re.findall(r"[A-Za-z_$][\w$]*", text)) if text.startswith("`") and "${" in text else set()
    if inside & (held | _GIVES) and (shown := _shows(open_calls)):
        yield line, f"`{shown}` is given a secret, which will be masked in what it shows"


def _shows(open_calls: list[str]) -> str:
    return next((name for name in open_calls if name in _JS_SHOWS), "")


def _tokens(code: str) -> Iterator[tuple[int, str, str]]:
    line, counted = 1, 0
    for match in _TOKEN.finditer(code):
        line += code.count("\n", counted, match.start())
        counted = match.start()
        if match.lastgroup is not None:
            yield line, match.lastgroup, match.group()
