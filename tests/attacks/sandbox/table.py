"""Every attack, by its name."""

from __future__ import annotations

from .attack import Attack
from .bombs import BOMBS
from .files import FILES
from .handles import HANDLES, SOCKETS
from .kernel import KERNEL
from .processes import PROCESSES
from .shells import SHELLS
from .state import STATE
from .talk import TALK

SECTIONS: dict[str, list[Attack]] = {
    "The host's files": FILES,
    "Other processes, and its own rights": PROCESSES,
    "Handles": HANDLES,
    "Sockets": SOCKETS,
    "System calls": KERNEL,
    "The next program": STATE,
    "Using things up": BOMBS,
    "What is said and left": TALK,
    "Shells": SHELLS,
}


def _key(section: str, attack: Attack) -> str:
    return f"{section}: {attack.name}"


ATTACKS = {_key(section, attack): attack for section, attacks in SECTIONS.items() for attack in attacks}
assert len(ATTACKS) == sum(map(len, SECTIONS.values())), "two attacks have the same name"
