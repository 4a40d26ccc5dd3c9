"""Shell completion: what bash, zsh and fish ask for, and the scripts that make them ask.

A shell runs `toolgate` with `_TOOLGATE_COMPLETE` set and the line so far in other variables. Scripts that an earlier
version has installed speak the same way.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

from toolgate.core.errors import SetupError
from toolgate.faces.cli import root

ASKED = "_TOOLGATE_COMPLETE"
_LINE = "_TYPER_COMPLETE_ARGS"
_FISH = "_TYPER_COMPLETE_FISH_ACTION"
SCRIPTS = {
    "bash": f"""_toolgate_completion() {{
    local IFS=$'\\n'
    COMPREPLY=( $( env COMP_WORDS="${{COMP_WORDS[*]}}" \\
                   COMP_CWORD=$COMP_CWORD \\
                   {ASKED}=complete_bash $1 ) )
    return 0
}}

complete -o default -F _toolgate_completion toolgate
""",
    "zsh": f"""#compdef toolgate

_toolgate_completion() {{
  eval $(env {_LINE}="${{words[1,$CURRENT]}}" {ASKED}=complete_zsh toolgate)
}}

compdef _toolgate_completion toolgate
""",
    "fish": "complete --command toolgate --no-files "
    f'--arguments "(env {ASKED}=complete_fish {_FISH}=get-args {_LINE}=(commandline -cp) toolgate)" '
    f'--condition "env {ASKED}=complete_fish {_FISH}=is-args {_LINE}=(commandline -cp) toolgate"\n',
}
Offer = tuple[str, str]
"""A word, and what it means."""


def answer(asked: str) -> int:
    """What the shell gets; the exit code is of interest to fish alone."""
    shell = asked.removeprefix("complete_")
    if shell == "bash":
        words = _split(os.environ.get("COMP_WORDS", ""))
        at = int(os.environ.get("COMP_CWORD") or 0)
        before, beginning = words[1:at], words[at] if at < len(words) else ""
    else:
        line = os.environ.get(_LINE, "")
        before, beginning = _split(line)[1:], ""
        if before and not line.endswith(" "):
            beginning = before.pop()
    found = offers(before, beginning)
    if shell == "zsh":
        listed = "\n".join(f'"{_for_zsh(word)}":"{_for_zsh(told)}"' if told else f'"{_for_zsh(word)}"' for word, told in found)  # fmt: skip
        sys.stdout.write(f"_arguments '*: :(({listed}))'\n" if found else "_files\n")
    elif shell == "fish":
        if os.environ.get(_FISH) == "is-args":
            return 0 if found else 1
        sys.stdout.writelines(f"{word}\t{told}\n" if told else f"{word}\n" for word, told in found)
    else:
        sys.stdout.writelines(f"{word}\n" for word, _ in found)
    return 0


def offers(before: list[str], beginning: str) -> list[Offer]:
    """What may stand behind these words and begins so."""
    words = list(before)
    while words and words[0].startswith("-"):
        words.pop(0)
    if not words:
        told = {name: entry.help for name, entry in root.commands().items()}
        among = [(name, told.get(name, "")) for name in root.names()]
        among += [(name.split()[-1], help) for name, help in root.OPTIONS] if beginning[:1] == "-" else []  # noqa: A001
        return _beginning(among, beginning)
    if words[0] not in root.names():
        return []
    found = root.load(words[0])
    rest = words[1:]
    if (inner := getattr(found, "commands", None)) is not None:
        if rest and rest[0] in inner:
            return _of_command(inner[rest[0]], rest[1:], beginning)
        among = [(name, each.help.partition("\n")[0]) for name, each in inner.items()]
        if not rest and beginning[:1] != "-":
            return _beginning(among, beginning)
        found = found.alone
    return _of_command(found, rest, beginning) if found is not None else []


def _of_command(found: Any, before: list[str], beginning: str) -> list[Offer]:
    named = {name: one for one in found.options for name in one.told.names}
    last = named.get(before[-1]) if before else None
    if last is not None and not last.is_flag:
        return _offered(last, before, beginning)
    if beginning.startswith("-"):
        among = [(name, one.told.help) for name, one in named.items() if name.startswith("--")]
        return _beginning([*among, ("--help", "Show this message and exit.")], beginning)
    taken = 0
    rest = list(before)
    while rest:
        one = named.get(word := rest.pop(0))
        if one is not None and not one.is_flag:
            rest[:1] = []
        taken += not word.startswith("-")
    places = [one for one in found.arguments if not one.told.hidden]
    place = places[taken] if taken < len(places) else places[-1] if places and places[-1].many else None
    return _offered(place, before, beginning) if place is not None else []


def _offered(one: Any, before: list[str], beginning: str) -> list[Offer]:
    return [(word, "") for word in one.told.complete(beginning, before)] if one.told.complete else []


def _beginning(among: list[Offer], beginning: str) -> list[Offer]:
    return [offer for offer in among if offer[0].startswith(beginning)]


def _split(line: str) -> list[str]:
    """As a shell does; a quote that is still open ends with the line."""
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:
        words.append(lexer.token)
    return words


def _for_zsh(text: str) -> str:
    for old, new in (('"', '""'), ("'", "''"), ("$", "\\$"), ("`", "\\`"), (":", r"\\:")):
        text = text.replace(old, new)
    return text


def show() -> None:
    sys.stdout.write(SCRIPTS[_shell()])


def install() -> None:
    """Write the script where the shell looks for it, and a line into its start-up file if it needs one."""
    shell, home = _shell(), Path.home()
    needed: tuple[str, ...] = ()
    if shell == "bash":
        file, needed, starts = home / ".bash_completions" / "toolgate.sh", ("source '{}'",), home / ".bashrc"
    elif shell == "zsh":
        file, starts = home / ".zfunc" / "_toolgate", home / ".zshrc"
        needed = ("fpath+=~/.zfunc; autoload -Uz compinit; compinit",)
    else:
        file, starts = home / ".config" / "fish" / "completions" / "toolgate.fish", home
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SCRIPTS[shell])
    for line in (each.format(file) for each in needed):
        there = starts.read_text() if starts.is_file() else ""
        if line not in there:
            starts.write_text(f"{there.rstrip()}\n{line}\n".lstrip())
    sys.stdout.write(f"{shell} completion is in {file}; it works in a new terminal\n")


def _shell() -> str:
    """The shell that this process was started from, else the user's own."""
    import psutil

    try:
        around = [process.name() for process in psutil.Process().parents()]
    except psutil.Error:
        around = []
    for name in (*around, Path(os.environ.get("SHELL", "")).name):
        if name.lstrip("-") in SCRIPTS:
            return name.lstrip("-")
    raise SetupError("this shell is not known", f"run it in one of: {', '.join(SCRIPTS)}")
