"""Sample lines, made when the tests run: values of every kind in the places where people write them.

Nothing here is a real secret, and no file holds one: a value is drawn from the shape of its kind by a seeded generator.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterator
from typing import Any

from toolgate.secrets.scan import kinds, names

SEED = 13
_WORDS = string.ascii_letters + string.digits + "_"


def _drawn(made: random.Random, parsed: Any) -> str:
    """A text that a parsed pattern matches."""
    out = ""
    for operation, argument in parsed:
        match str(operation):
            case "LITERAL":
                out += chr(argument)
            case "IN":
                out += made.choice("".join(_members(argument)))
            case "MAX_REPEAT":
                low, high, inner = argument
                out += "".join(
                    _drawn(made, inner) for _ in range(made.randint(low, min(int(high), low + 20)))
                )
            case "SUBPATTERN":
                out += _drawn(made, argument[-1])
            case "BRANCH":
                out += _drawn(made, made.choice(argument[1]))
    return out


def _members(argument: Any) -> Iterator[str]:
    for operation, value in argument:
        match str(operation):
            case "LITERAL":
                yield chr(value)
            case "RANGE":
                yield from map(chr, range(value[0], value[1] + 1))
            case _:
                yield _WORDS


def value_of(shape: str, made: random.Random) -> str:
    parser = re._parser  # type: ignore[attr-defined]
    pattern = kinds.pattern_of(shape)
    return _drawn(made, parser.parse(pattern))


def by_form() -> list[tuple[str, str]]:
    """A rule and a value, for every prefix of every row."""
    made = random.Random(SEED)
    found = []
    for row in filter(None, kinds.PREFIXED.split("\n")):
        rule, prefixes, shape = row.split(" | ")
        body = "eyJhbGciOiJIUzI1NiJ9"[3:] if rule == "jwt" else ""
        for prefix in prefixes.split():
            found.append(
                (rule, prefix + (body + "." + value_of("W{40}", made) if body else value_of(shape, made)))
            )
    for row in filter(None, kinds.INSIDE.split("\n")):
        rule, _, _, shape = row.split(" | ")
        found.append((rule, value_of(shape, made)))
    return found


def by_service() -> list[tuple[str, str, str]]:
    """A rule, a name and a value, for every service."""
    made = random.Random(SEED)
    found = []
    for word, shape in names.SHAPES.items():
        service = word.replace("_?", "-")
        name = word.replace("_?", "_")
        found.append((f"{service}-key", name, value_of(shape, made)))
    return found


def chosen() -> Iterator[str]:
    """Passwords as people make them."""
    made = random.Random(SEED)
    for size in (9, 12, 16):
        yield (
            "".join(made.choice(string.ascii_letters + string.digits + "!#%+=~^") for _ in range(size - 3))
            + "7aQ"
        )


FORMS = (  # where a token may stand
    "{v}", "x = '{v}'", 'const t = "{v}";', "curl https://api.internal/v1 -H 'X: {v}'", "# was: {v}", '{{"a": "line\\n{v}\\n"}}', "KEY={v}",
    "<t>{v}</t>", "https://api.internal/?t={v}&x=1", "t%3D{v}%26", "- {v}", "export A={v}; run",
)  # fmt: skip
ASSIGNED = (  # where a value is given to a name
    '{n}_token = "{v}"', "{n}Token: '{v}'", '"{n}_secret": "{v}",', "{N}_API_KEY={v}", "export {N}_TOKEN={v}", "ENV {N}_TOKEN {v}",
    '{n}_secret := "{v}"', 'String {n}Secret = "{v}";', 'var {n}Token string = "{v}"', "let {n}Token: string = '{v}';",
    "<{n}Token>{v}</{n}Token>", '<add key="{n}Token" value="{v}" />', '{{"name": "{N}_TOKEN", "value": "{v}"}}', "--{n}-token={v}",
    'System.setProperty("{N}_TOKEN", "{v}")', "{n}.api.secret={v}", "X-{N}-Api-Key: {v}", '{n}_token => "{v}"', 'config["{n}_secret"] = "{v}"',
    'if ("{v}" == {n}_token) {{', "{n}_token: |\n  {v}", '\\"{n}_token\\": \\"{v}\\"', 'set {n}Token("{v}")', "api_key='{v}'  # of {n}",
)  # fmt: skip
PASSWORDS = (
    'password = "{v}"', "DB_PASSWORD={v}", "passwd: {v}", '"password": "{v}"', "Server=db;User Id=sa;Password={v};", "mysql -u root -p{v} shop",
    "sshpass -p '{v}' ssh deploy@host", "curl -u deploy:{v} https://ci.internal/", "postgres://shop:{v}@db.shop.internal:5432/orders",
    "machine ci.internal login deploy password {v}", "--password {v}", "spring.datasource.password={v}", "<password>{v}</password>",
    "redis://:{v}@cache.shop.internal:6379/0", 'setPassword("{v}")', 'jdbc:mysql://db.internal/x?user=a&password={v}',
)  # fmt: skip
