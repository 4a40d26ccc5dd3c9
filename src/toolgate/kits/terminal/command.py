"""Commands as typed functions: a command's arguments and options are read from its signature.

    @command(epilog="Example: toolgate pause builder")
    def pause(persona: Annotated[str, Argument(help="Who.")] = "", json: options.Json = False) -> None:
        "Stop a persona."

It loads next to nothing, so that a command starts as fast as Python does. Unlike argparse it takes a value that begins
with a dash, and options before, between and behind the arguments. Whatever is wrong is refused as `invalid_args`,
before the function runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolgate.core.named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal

    Function = Callable[..., None]
    Candidates = Callable[[str, Sequence[str]], Sequence[str]]
    """What TAB offers for a beginning, given the words before it."""
    PathKind = Literal["", "file", "directory", "existing", "anything"]
    """What a path must be, if it is there; `existing`: a file that is."""

HELP = ("-h", "--help")


class Argument:
    """A word in its place."""

    names: tuple[str, ...] = ()
    met: Callable[[str], None] | None = None

    def __init__(
        self, *, help: str = "", metavar: str = "", complete: Candidates | None = None,  # noqa: A002
        min: float | None = None, max: float | None = None, path: PathKind = "", hidden: bool = False,  # noqa: A002
    ) -> None:  # fmt: skip
        self.help, self.metavar, self.complete, self.hidden = help, metavar, complete, hidden
        self.min, self.max, self.path = min, max, path


class Option(Argument):
    """A word with dashes, and its value unless it is a flag. `met` hears of it at once, with the command's name."""

    def __init__(
        self, *names: str, met: Callable[[str], None] | None = None, help: str = "", metavar: str = "",  # noqa: A002
        complete: Candidates | None = None, min: float | None = None, max: float | None = None, path: PathKind = "",  # noqa: A002
    ) -> None:  # fmt: skip
        super().__init__(help=help, metavar=metavar, complete=complete, min=min, max=max, path=path)
        self.names, self.met = names, met


class Parameter(NamedTuple):
    """One parameter of a command's function, as its annotation says."""

    name: str
    kind: type
    many: bool
    required: bool
    default: Any
    told: Argument

    @property
    def is_option(self) -> bool:
        return bool(self.told.names)

    @property
    def is_flag(self) -> bool:
        return self.kind is bool

    @property
    def shown(self) -> str:
        """What stands for its value in help."""
        words: dict[type, str] = {int: "NUMBER", float: "NUMBER", Path: "PATH"}
        named = self.name.upper() if not self.is_option else words.get(self.kind, "TEXT")
        return "" if self.is_flag else self.told.metavar or named

    @property
    def spelled(self) -> str:
        """How a message calls it."""
        return max(self.told.names, key=len) if self.is_option else self.shown


class TypedCommand:
    """A function that is a command."""

    def __init__(self, function: Function, name: str = "", epilog: str = "") -> None:
        self.function, self.epilog = function, epilog
        self.name = name or function.__name__.strip("_").replace("_", "-")
        self.help = _dedented(function.__doc__ or "")
        self._parameters: list[Parameter] | None = None

    @property
    def parameters(self) -> list[Parameter]:
        if self._parameters is None:
            self._parameters = _parameters(self.function)
        return self._parameters

    @property
    def options(self) -> list[Parameter]:
        return [one for one in self.parameters if one.is_option]

    @property
    def arguments(self) -> list[Parameter]:
        return [one for one in self.parameters if not one.is_option]

    def run(self, words: Sequence[str], path: str) -> None:
        """Call the function with what the words say, or show its help."""
        values = _parse(self, words, path)
        if values is None:
            from toolgate.kits.terminal import help_pages

            help_pages.show(help_pages.of_command(self, path))
        else:
            self.function(**values)


class CommandGroup:
    """Commands under one word; `alone` is what runs without another."""

    def __init__(self, help: str) -> None:  # noqa: A002 - what everybody calls it
        self.help = help
        self.commands: dict[str, TypedCommand] = {}
        self.alone: TypedCommand | None = None

    def command(self, name: str = "", *, epilog: str = "") -> Callable[[Function], Function]:
        def add(function: Function) -> Function:
            made = TypedCommand(function, name, epilog)
            self.commands[made.name] = made
            return function

        return add

    def without_command(self, *, epilog: str = "") -> Callable[[Function], Function]:
        def add(function: Function) -> Function:
            self.alone = TypedCommand(function, epilog=epilog)
            return function

        return add

    def run(self, words: Sequence[str], path: str) -> None:
        first = words[0] if words else ""
        if first in self.commands:
            self.commands[first].run(words[1:], f"{path} {first}")
        elif first in HELP or (not words and self.alone is None):
            from toolgate.kits.terminal import help_pages

            help_pages.show(help_pages.of_group(self, path))
            if not words:
                raise SystemExit(2)
        elif self.alone is not None and first.startswith("-" if words else ""):
            self.alone.run(words, path)
        else:
            raise unknown("command", first, list(self.commands), path)


def command(*, epilog: str = "") -> Callable[[Function], TypedCommand]:
    """Make a command of a typed function; its docstring is its help."""
    return lambda function: TypedCommand(function, epilog=epilog)


def unknown(what: str, given: str, known: list[str], path: str) -> Exception:
    """A word that means nothing here, with the one that was probably meant."""
    from difflib import get_close_matches

    near = get_close_matches(given, known, 1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return _wrong(f"there is no {what} {given[:80]!r}{meant}", path)


def _wrong(message: str, path: str) -> Exception:
    from toolgate.core.errors import InvalidArgs

    return InvalidArgs(message, f"`{path} --help` says what it takes")


def _dedented(text: str) -> str:
    first, _, rest = text.strip().partition("\n")
    return "\n".join([first, *(line.strip() for line in rest.splitlines())])


def _parameters(function: Function) -> list[Parameter]:
    from typing import get_type_hints

    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    hints = get_type_hints(function, include_extras=True)
    missing = len(names) - len(defaults)
    return [
        _parameter(name, hints[name], at < missing, None if at < missing else defaults[at - missing])
        for at, name in enumerate(names)
    ]


def _parameter(name: str, hint: Any, required: bool, default: Any) -> Parameter:
    """Of `Annotated[list[str] | None, Option("--kind")]`, and the like."""
    kind, told = hint.__origin__, hint.__metadata__[0]
    held = [each for each in getattr(kind, "__args__", ()) if each is not type(None)]
    if held and getattr(kind, "__origin__", None) is not list:
        kind = held[0]
    many = getattr(kind, "__origin__", None) is list
    return Parameter(name, kind.__args__[0] if many else kind, many, required, default, told)


def _parse(of: TypedCommand, words: Sequence[str], path: str) -> dict[str, Any] | None:
    """The values for the function; None if help was asked for."""
    named = {name: one for one in of.options for name in one.told.names}
    given: dict[str, list[str]] = {}
    placed: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            placed += rest
            break
        if word in HELP:
            return None
        if word.startswith("-") and len(word) > 1:
            _option(word, rest, named, given, path)
        else:
            placed.append(word)
    _place(of, placed, given, path)
    return {one.name: _value(one, given.get(one.name), path) for one in of.parameters}


def _option(
    word: str, rest: list[str], named: Mapping[str, Parameter], given: dict[str, list[str]], path: str
) -> None:
    """Take an option, and its value if it has one: `--name value`, `--name=value`, `-nvalue`, `-fg` for two flags."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
    else:
        name, equals, value = word[:2], "", word[2:]
    one = named.get(name)
    if one is None:
        raise unknown("option", name, [*named, "--help"], path)
    if one.told.met is not None:
        one.told.met(path)
    if one.is_flag:
        if equals:
            raise _wrong(f"{name} takes no value", path)
        if value:
            rest.insert(0, f"-{value}")
        given[one.name] = [""]
        return
    if not equals and not value:
        if not rest:
            raise _wrong(f"{name} needs a value", path)
        value = rest.pop(0)
    given.setdefault(one.name, []).append(value)


def _place(of: TypedCommand, placed: list[str], given: dict[str, list[str]], path: str) -> None:
    for one in of.arguments:
        taken = placed if one.many else placed[:1]
        placed = placed[len(taken) :]
        if taken:
            given[one.name] = taken
    if placed:
        raise _wrong(f"there is no place for {' '.join(placed)[:200]!r}", path)


def _value(one: Parameter, texts: list[str] | None, path: str) -> Any:
    if one.is_flag:
        return texts is not None or one.default
    if texts is None:
        if one.required:
            raise _wrong(f"{one.spelled} is missing", path)
        return one.default
    values = [_converted(one, text, path) for text in texts]
    return values if one.many else values[-1]


def _converted(one: Parameter, text: str, path: str) -> Any:
    try:
        value = one.kind(text)
    except ValueError:
        what = "a whole number" if one.kind is int else "a number"
        raise _wrong(f"{one.spelled} takes {what}, not {text[:80]!r}", path) from None
    told = one.told
    if told.min is not None and not value >= told.min:
        raise _wrong(f"{one.spelled} is at least {told.min:,}, not {text[:80]}", path)
    if told.max is not None and not value <= told.max:
        raise _wrong(f"{one.spelled} is at most {told.max:,}, not {text[:80]}", path)
    if one.kind is Path and told.path:
        _check_path(one, value, path)
    return value


def _check_path(one: Parameter, found: Path, path: str) -> None:
    if one.told.path in ("existing", "anything") and not found.exists():
        raise _wrong(f"{one.spelled}: there is no {str(found)!r}", path)
    if one.told.path == "directory" and found.is_file():
        raise _wrong(f"{one.spelled} is a directory, and {str(found)!r} is a file", path)
    if one.told.path not in ("directory", "anything") and found.is_dir():
        raise _wrong(f"{one.spelled} is a file, and {str(found)!r} is a directory", path)
