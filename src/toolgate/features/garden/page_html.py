"""HTML of a garden file for the console: block by block, so that each can say who wrote it.

What stands in the file is text of agents and strangers. HTML in it is shown, not obeyed; a link leads only to http and
https, and says where; a picture is a link, so that nothing is fetched; what cannot be seen is made visible. Every word
of the file is on the page: Markdown has places that a model reads and a person never sees (definitions of links, titles,
what stands behind a fence), and those are shown too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from toolgate.core.display import visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

DEEPEST = 20
"""Blocks within blocks; what is deeper is shown as it is written, since the parser would leave it out."""
_LISTS = ("bullet_list_open", "ordered_list_open")


@dataclass(frozen=True, slots=True)
class HtmlBlock:
    html: Markup
    first: int
    """Its lines, from 0, in the text it was made of."""
    end: int
    tag: str = ""
    """`ul` or `ol` for a list, whose items are blocks of their own."""
    items: list[HtmlBlock] = field(default_factory=list)


def html_blocks(text: str) -> list[HtmlBlock]:
    """The outermost blocks of a Markdown text, and of lists their items."""
    renderer = _renderer()
    env: dict[str, Any] = {}
    tokens = renderer.parse(text, env)
    if any(token.level >= 2 * DEEPEST for token in tokens):
        whole = Markup("<pre><code>{}</code></pre>").format(Markup(_shown(text)))  # noqa: S704 - escaped
        return [HtmlBlock(whole, 0, text.count("\n") + 1)]
    return [_block(renderer, group, env) for group in _groups(tokens, 0)]


@cache
def _renderer() -> MarkdownIt:
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False, "maxNesting": 2 * DEEPEST + 10}).disable(
        ["image", "reference"]
    )
    rules: dict[str, Any] = made.renderer.rules  # type: ignore[attr-defined]
    rules["text"] = lambda tokens, at, *_: _shown(tokens[at].content)
    rules["code_inline"] = lambda tokens, at, *_: f"<code>{_shown(tokens[at].content)}</code>"
    rules["fence"] = rules["code_block"] = _code
    rules["link_open"], rules["link_close"] = _link_open, _link_close
    rules["heading_open"] = lambda tokens, at, *_: f"<h{_level(tokens[at])}>"
    rules["heading_close"] = lambda tokens, at, *_: f"</h{_level(tokens[at])}>\n"
    return made


def _shown(text: str) -> str:
    """What cannot be seen stands out, told apart from the same letters in the text itself."""
    if text.isascii() and text.isprintable():
        return escape(text)
    drawn = ((char, visible(char, keep_lines=True)) for char in text)
    return "".join(
        escape(char) if char == shown else f'<span class="inv">{escape(shown)}</span>'
        for char, shown in drawn
    )


def _level(token: Token) -> int:
    """The page has its own h1, and sections their h2."""
    return max(int(token.tag[1]), 3)


def _code(tokens: Sequence[Token], at: int, *_: Any) -> str:
    info = tokens[at].info.strip()
    said = f'<span class="dim">{_shown(info)}</span>\n' if info else ""
    return f"<pre>{said}<code>{_shown(tokens[at].content)}</code></pre>\n"


def _address(token: Token) -> str:
    address = str(token.attrs.get("href", ""))
    return address if address.lower().startswith(("http://", "https://")) else ""


def _link_open(tokens: Sequence[Token], at: int, options: Any, env: dict[str, Any]) -> str:
    address = _address(tokens[at])
    written = " ".join(str(tokens[at].attrs[name]) for name in ("href", "title") if name in tokens[at].attrs)
    env.setdefault("addresses", []).append((address, written))
    return f'<a href="{escape(address)}" rel="noopener noreferrer nofollow">' if address else "<span>"


def _link_close(tokens: Sequence[Token], at: int, options: Any, env: dict[str, Any]) -> str:
    """With the address, which the words need not tell."""
    address, written = env["addresses"].pop()
    told = f' <span class="dim">({_shown(written)})</span>'
    return f"</a>{told}" if address else f"</span>{told}"


def _groups(tokens: Sequence[Token], level: int) -> Iterator[list[Token]]:
    """Runs of tokens, each one block of this level."""
    group: list[Token] = []
    for token in tokens:
        group.append(token)
        if token.level == level and token.nesting <= 0:
            yield group
            group = []


def _block(renderer: MarkdownIt, group: list[Token], env: dict[str, Any]) -> HtmlBlock:
    first, end = group[0].map or [0, 0]
    if group[0].type not in _LISTS:
        return HtmlBlock(_drawn(renderer, group, env), first, end)
    items = [
        HtmlBlock(_drawn(renderer, item[1:-1], env), *(item[0].map or (first, end)))
        for item in _groups(group[1:-1], group[0].level + 1)
    ]
    return HtmlBlock(Markup(""), first, end, group[0].tag, items)


def _drawn(renderer: MarkdownIt, tokens: Sequence[Token], env: dict[str, Any]) -> Markup:
    made = renderer.renderer.render(list(tokens), renderer.options, env)
    return Markup(made)  # noqa: S704 - every rule above escapes what it prints
