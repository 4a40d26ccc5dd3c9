"""Stage 5: what a Change would write is searched for secrets, payloads and hidden characters; policy hears of it.

Every Change passes here, whoever planned it. What is found becomes part of the call's digest, so an approval is for a call
with exactly these findings. What looks like a secret is masked in the journal, and shown in a question: whoever writes a
program can make any part of it look like one. What stands in place of a secret must not be written where the secret was:
a model only ever sees the marker.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from toolgate.core import diff
from toolgate.core.apart import apart, large
from toolgate.core.decision import Verdict
from toolgate.core.errors import BlockedContent
from toolgate.core.records import replace
from toolgate.gate.authorize import refused
from toolgate.gate.flow import Flow, Services, maybe_in_thread
from toolgate.gate.redact import shown_diff, with_contents
from toolgate.secrets.mask import MASK, distinct
from toolgate.secrets.redactor import MARKER

if TYPE_CHECKING:
    from toolgate.core.call import Call
    from toolgate.core.change import Change
    from toolgate.core.ports import Redactor, Scan, Scanner

log = logging.getLogger("toolgate.gate")


def scan(services: Services, flow: Flow) -> Coroutine[Any, Any, None] | None:
    assert flow.call is not None
    if flow.call.change is not None:
        return _scan(services, flow, flow.call, flow.call.change)
    if flow.effectful:
        check_args(flow.call.args_json)
    sealed = flow.call.sealed_json
    return mask_large(services, flow) if sealed and large(sealed) else None


async def mask_large(services: Services, flow: Flow) -> None:
    """Beforehand and in a thread: a row is made on the event loop, and while nobody else can make one."""
    call = flow.call
    if flow.tool is not None and call is not None and flow.masked is None and large(call.sealed_json):
        flow.masked = await apart(services.redactor.mask, flow.tool, call.args)


async def _scan(services: Services, flow: Flow, call: Call, change: Change) -> None:
    tool, facts = flow.tool, flow.facts
    assert tool is not None
    assert facts is not None
    await maybe_in_thread(change, lambda: check_change(services.redactor, change))
    found = flow.scan = await maybe_in_thread(change, lambda: _scanned(services.scanner, change))
    if found.findings or change.findings:  # a plan's own word about findings does not count
        change = replace(change, findings=found.findings)
        flow.call = call.planned(change)
    if found.values:
        paths = frozenset(str(path) for path in facts.paths)

        def recorded() -> Any:
            return _recorded(services.scanner, services.redactor.mask(tool, call.args), found.values, paths)

        flow.masked = await maybe_in_thread(change, recorded)
    else:
        await mask_large(services, flow)
    if found.findings != facts.findings:
        flow.facts = replace(facts, findings=found.findings)
        flow.rules = services.rules()
        flow.decision = flow.rules.decide(flow.facts)
        if flow.decision.verdict is Verdict.DENY:
            raise refused(flow, flow.facts, flow.decision)
    if flow.decision is not None and flow.decision.verdict is Verdict.ASK:

        def work() -> tuple[str, str]:
            shown = flow.preview or shown_diff(services.redactor, change)
            if not found.values:
                return shown, shown
            return shown, diff.render(with_contents(change, services.scanner.hide))

        flow.preview, flow.recorded_preview = await maybe_in_thread(change, work)


def _scanned(scanner: Scanner, change: Change) -> Scan:
    """A scanner that fails lets nothing pass."""
    try:
        return scanner.scan(change)
    except Exception as error:
        # neither message nor trace: they may hold what was scanned
        log.error("the content scan failed with %s", type(error).__name__)
        raise BlockedContent(
            f"what would be written could not be scanned ({type(error).__name__}), so nothing was written",
            "report it; write other content, or the same in smaller parts",
            data={"rule": "scan:failed"},
        ) from None


def recorded_args(services: Services, flow: Flow) -> Mapping[str, Any]:
    """The arguments as the journal holds them; the very same mapping where nothing is masked."""
    assert flow.tool is not None
    assert flow.call is not None
    if flow.masked is not None:
        return flow.masked
    return services.redactor.mask(flow.tool, flow.call.args) if flow.call.sealed_json else flow.call.args


def _recorded(scanner: Scanner, value: Any, secrets: frozenset[str], paths: frozenset[str]) -> Any:
    """Every text in it with its secrets masked where they stand. A text that is nothing but a secret is masked whole,
    also where only the file that it goes into shows what it is. A path stays as it is."""
    if isinstance(value, str):
        if value.strip() in secrets:
            return MASK
        return (
            value
            if value in paths
            else scanner.hide(value.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
        )
    if isinstance(value, Mapping):
        return distinct(
            (_recorded(scanner, key, secrets, paths), _recorded(scanner, item, secrets, paths))
            for key, item in value.items()
        )
    return [_recorded(scanner, item, secrets, paths) for item in value] if isinstance(value, list) else value


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
