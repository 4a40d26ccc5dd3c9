"""What a result looks like in a terminal or a pipe. Each drawing gives lines."""

from __future__ import annotations

from rich.text import Text

from toolgate.core.display import visible


def paint(text: object, style: str = "") -> Text:
    """One line from outside: nothing in it moves the cursor, colours, hides or reorders. Tabs stay."""
    shown = "\t".join(map(visible, str(text).split("\t")))
    return Text(tab_size=8).append(shown, style or None)
