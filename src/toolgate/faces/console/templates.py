"""The templates and what they may call. Whatever they print is made visible and escaped, without being asked to."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from toolgate.core.clock import SECOND, iso
from toolgate.faces.console import assets
from toolgate.faces.console.text import finalize, marked, plural, ticked
from toolgate.kits.words import span


def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True, finalize=finalize,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {
        "v": marked,
        "lines": lambda text: marked(str(text), keep_lines=True),
        "part": _part,
        "ticked": ticked,
    }
    made.globals |= {
        "asset": assets.url,
        "plural": plural,
        "iso": iso,
        "ago": ago,
        "until": until,
        "took": took,
    }
    return made


def _part(value: Any) -> str:
    """As one part of a path."""
    return quote(str(value), safe="")


def ago(at: int, now: int) -> Markup:
    """Relative, with the exact time on hover and for machines."""
    passed = now - at
    words = "just now" if passed < 5 * SECOND else f"{span(passed)} ago"
    return Markup('<time datetime="{0}" title="{0}" data-at="{1}">{2}</time>').format(
        iso(at), at // 1000, words
    )


def until(at: int, now: int) -> Markup:
    left = at - now
    words = f"{span(left)} left" if left > 0 else "expired"
    return Markup('<time datetime="{0}" title="{0}" data-until="{1}">{2}</time>').format(
        iso(at), at // 1000, words
    )


def took(micros: int) -> str:
    if micros < 1000:
        return f"{micros} µs" if micros else ""
    return f"{micros / 1000:.0f} ms" if micros < SECOND else f"{micros / SECOND:.1f} s"
