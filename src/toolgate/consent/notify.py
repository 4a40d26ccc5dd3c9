"""Telling a human that a question has opened: a webhook or the desktop. Telling is not answering."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

from toolgate.core.clock import iso
from toolgate.core.display import visible
from toolgate.core.programs import find_program
from toolgate.core.records import dataclass

if TYPE_CHECKING:
    from toolgate.core.decision import Question
    from toolgate.core.ports import Notice

log = logging.getLogger("toolgate.consent")
PATIENCE = 10.0


@dataclass(frozen=True)
class Webhook:
    """POSTs what was asked, without arguments: the message leaves the machine."""

    url: str
    name: str = "webhook"

    async def tell(self, question: Question) -> None:
        body = {
            "event": "question",
            "id": question.id,
            "tool": question.tool,
            "persona": question.persona,
            "reason": question.reason,
            "expires_at": iso(question.expires_at),
            "text": headline(question),
        }
        await asyncio.to_thread(self._post, json.dumps(body).encode())

    def _post(self, body: bytes) -> None:
        import urllib.request  # by the first question that is told of, not by every start

        class NoRedirect(urllib.request.HTTPRedirectHandler):
            """The configuration names who is told; whoever answers there does not get to name somebody else."""

            def redirect_request(self, *args: Any, **more: Any) -> None:
                return None

        request = urllib.request.Request(self.url, body, {"content-type": "application/json"})  # noqa: S310 - http(s) only, checked when the configuration is read
        with urllib.request.build_opener(NoRedirect).open(request, timeout=PATIENCE):
            return


@dataclass(frozen=True)
class Desktop:
    name: str = "desktop"

    async def tell(self, question: Question) -> None:
        program = find_program("notify-send")
        if program is None:
            log.warning("there is no notify-send on this machine")
            return
        process = await asyncio.create_subprocess_exec(
            program, "--app-name=toolgate", "toolgate asks", headline(question),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        async with asyncio.timeout(PATIENCE):
            await process.wait()


def headline(question: Question) -> str:
    return visible(f"{question.persona} wants to call {question.tool}: {question.reason}")


def notifiers(webhook: str | None, desktop: bool) -> list[Notice]:
    found: list[Notice] = []
    if webhook:
        found.append(Webhook(webhook))
    if desktop:
        found.append(Desktop())
    return found
