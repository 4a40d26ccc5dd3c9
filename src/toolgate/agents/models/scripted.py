"""Scripted model: says exactly what a script has, in order, for tests and the demo. No network, no cost.

A script is a list of replies, or one such list for each persona. A reply is a text, or an object with `text`, `calls`
(`tool`, `args`) or `raw` (text in the model's wire, parsed as any model's would be), and `expect`: words that must be in
the last message. What does not fit raises: a script never guesses.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from toolgate.agents.models import CHARS_A_TOKEN, ModelReply, ModelRequest, ModelUsage, Say
from toolgate.agents.wires import Parsed, WireCall, parse
from toolgate.core.errors import Failed

_KEYS = frozenset({"text", "calls", "raw", "expect", "usage", "delay_s"})


class ScriptedModel:
    wire: str

    def __init__(
        self, script: Sequence[Any] | Mapping[str, Sequence[Any]], name: str = "scripted", wire: str = "xml",
        usd_per_million: tuple[float, float] | None = None,
    ) -> None:  # fmt: skip
        self.name, self.wire = name, wire
        self._script = script
        self._price = usd_per_million or (0.0, 0.0)

    async def ask(self, request: ModelRequest, say: Say) -> ModelReply:
        reply = self._reply(request)
        if reply.get("delay_s"):
            await asyncio.sleep(float(reply["delay_s"]))
        self._check(request, reply)
        parsed = self._parsed(request, reply)
        if parsed.text:
            say(parsed.text)
        used = reply.get("usage") or {}
        read = sum(len(json.dumps(message, default=str)) for message in request.messages)
        into = int(used.get("input", read // CHARS_A_TOKEN))
        out = int(used.get("output", len(json.dumps(reply, default=str)) // CHARS_A_TOKEN))
        usd = (into * self._price[0] + out * self._price[1]) / 1_000_000
        return ModelReply(parsed, ModelUsage(into, out, 0, usd), self.name)

    async def close(self) -> None:
        return None

    def _reply(self, request: ModelRequest) -> dict[str, Any]:
        script = self._script
        if isinstance(script, Mapping):
            if request.persona not in script:
                raise Failed(
                    f"the script says nothing for {request.persona!r}", f"it has: {', '.join(script)}"
                )
            script = script[request.persona]
        if request.turn >= len(script):
            raise Failed(
                f"the script of {request.persona or self.name} has {len(script)} replies, and one more is asked for",
                "write what it says next, or let the last one call no tool",
            )
        found = script[request.turn]
        reply = {"text": found} if isinstance(found, str) else dict(found)
        if unknown := sorted(reply.keys() - _KEYS):
            raise Failed(
                f"a scripted reply has {', '.join(unknown)}", f"it may have: {', '.join(sorted(_KEYS))}"
            )
        return reply

    def _check(self, request: ModelRequest, reply: Mapping[str, Any]) -> None:
        expected = reply.get("expect")
        last = json.dumps(request.messages[-1].get("content", ""), ensure_ascii=False, default=str)
        if expected and str(expected) not in last:
            raise Failed(
                f"the script expected {str(expected)[:200]!r} in the last message, which is {last[:400]}",
                "change the script, or what leads there",
            )

    def _parsed(self, request: ModelRequest, reply: Mapping[str, Any]) -> Parsed:
        if "raw" in reply:
            return parse(str(reply["raw"]), format=self.wire, tools=request.known)
        calls = [
            WireCall(f"call_{request.turn}_{index}", str(call["tool"]), dict(call.get("args") or {}))
            for index, call in enumerate(reply.get("calls") or ())
        ]
        return Parsed(calls=calls, errors=[], text=str(reply.get("text") or ""))
