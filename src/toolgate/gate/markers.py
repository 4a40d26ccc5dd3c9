"""What stands in place of a secret must not be written where the secret was: a model only ever sees the marker."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from toolgate.core.errors import BlockedContent
from toolgate.secrets.redactor import MARKER

if TYPE_CHECKING:
    from toolgate.core.change import Change
    from toolgate.core.ports import Redactor

_FIX = (
    "the text was masked when you read it; change only the lines around it, for instance with a patch, "
    "or let a human write this one"
)


def check_change(redactor: Redactor, change: Change) -> None:
    """Refuse markers that no file of the change held before, and new names that hold a secret. An undo brings back
    what was there."""
    if change.undoes:
        return
    for file in change.files:
        if file.before is None and redactor.redact(file.path.relative) != file.path.relative:
            raise BlockedContent(
                "the name of a file would hold a secret of the vault", "choose another name",
                data={"rule": "scan:vault-name"},
            )  # fmt: skip
    new: Counter[bytes] = Counter()
    for file in change.files:
        if file.kind == "file":
            new.update(_markers(file.after))
            new.subtract(_markers(file.before))
    for marker, count in new.items():
        if count > 0:
            raise _refused(marker.decode(), "be written into a file")


def check_args(args_json: str) -> None:
    """The same for what is written elsewhere: then nobody knows what was there before."""
    if "[secret:" in args_json:
        found = MARKER.search(args_json.encode())
        if found is not None and found.group().startswith(b"[secret:"):
            raise _refused(found.group().decode(), "be sent on")


def _markers(content: bytes | None) -> Counter[bytes]:
    if not content or not any(word in content for word in (b"[secret", b"[masked]", b"[REDACTED]")):
        return Counter()
    return Counter(MARKER.findall(content))


def _refused(marker: str, what: str) -> BlockedContent:
    return BlockedContent(
        f"{marker} stands for a secret that was masked, and would {what}",
        _FIX,
        data={"rule": "scan:mask-marker"},
    )
