"""A server's wish that the model of the caller's client says something (`sampling/createMessage`).

Each wish is a call of `SERVER.sampling` by the same persona: policy, limits, consent and ledger as for any other. It is no
tool for agents: it runs only for what the server has asked for, during the call that it asked in.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from toolgate.core.apart import apart
from toolgate.core.caller import Caller, Model, NoModel, Sampling
from toolgate.core.context import Context
from toolgate.core.errors import Failed, NotAllowed, Unavailable
from toolgate.core.result import Result
from toolgate.core.tool import Tool, tool
from toolgate.features.servers.active_calls import ActiveCall, Call, CallEnded
from toolgate.features.servers.config import ServerSpec
from toolgate.features.servers.results import Scrub, blocks, cleaned

log = logging.getLogger("toolgate.upstream")
MOST_SAMPLINGS = 10
"""For one call. A server that needs more is having a conversation of its own."""
LONGEST_SAMPLING = 50_000
"""Characters of what is sent, as JSON."""
MOST_TOKENS = 4096
_CONTENT = frozenset({"text", "image", "audio"})
_PASSED_ON = ("systemPrompt", "temperature", "stopSequences", "modelPreferences")
"""Not `includeContext`, which would show the server what is none of its business; not `metadata`, not tools."""


class SamplingRefused(Exception):
    """Said to the server in place of the model's answer."""


@dataclass(eq=False)
class _Wish:
    call: ActiveCall
    flaw: str = ""
    """Why it is not granted, whatever policy says."""


class Samplings:
    """What one server wants at the moment. A wish has a name that nobody can guess, and is granted once."""

    def __init__(self, server: str, spec: ServerSpec, call: Call) -> None:
        self._server, self._spec, self._call = server, spec, call
        self._wishes: dict[str, _Wish] = {}

    async def ask(self, params: Any, call: ActiveCall | None, scrub: Scrub) -> dict[str, Any]:
        """The model's answer, as MCP has it. Raises SamplingRefused."""
        if call is None:
            raise SamplingRefused("there is no call under way that this could belong to")
        call.samplings += 1
        too_often = (
            f"a call may ask for a model {MOST_SAMPLINGS} times" if call.samplings > MOST_SAMPLINGS else ""
        )
        if call.samplings > MOST_SAMPLINGS + 1:
            raise SamplingRefused(too_often)  # the first one too many is recorded
        request = f"s_{secrets.token_hex(16)}"
        small, flaw = await apart(_small, params, scrub)
        flaw = too_often or flaw
        args = {"request": request, "call": call.context.call_id, **small}
        self._wishes[request] = wish = _Wish(call, flaw)
        try:
            result = await call.while_it_lasts(self._through(wish, args))
        except CallEnded:
            raise SamplingRefused("the call that it belonged to has ended") from None
        finally:
            self._wishes.pop(request, None)
        if result.error is not None or result.meta.truncated:
            code = result.error.code.value if result.error is not None else "too_large"
            log.info("%s wanted a model and was refused: %s", self._server, flaw or code)
            raise SamplingRefused(flaw or f"refused by toolgate: {code}")
        return dict(result.data["answer"])

    async def _through(self, wish: _Wish, args: Mapping[str, Any]) -> Result:
        name, context, asked = f"{self._server}.sampling", wish.call.context, wish.call.caller
        granting = Caller(wish=wish)
        if asked.through is not None and asked.persona == context.persona:
            return await asked.through(name, args, granting)
        return await self._call(
            name, args, persona=context.persona, conversation=context.conversation, caller=granting
        )

    def tool(self) -> Tool:
        """It stands in the registry while the server's tools do; lists do not show it."""
        name = f"{self._server}.sampling"

        async def preview(
            request: str, call: str, messages: list[dict[str, Any]], longest: int, more: dict[str, Any],
            context: Context,
        ) -> str:  # fmt: skip
            self._wanted(request, context)
            return (
                f"let the server {self._server} send these messages to the model of your client, for its call {call}, and "
                f"give it the answer. They are the server's own words; toolgate did not write them."
            )

        @tool(
            name, reads=["model"], origin="imported", phase=self._spec.phase, timeout=self._spec.timeout_s,
            listed=False, asks=self._spec.sampling == "ask", risk="medium", preview=preview, summarize=_summary,
        )  # fmt: skip
        async def sampling(
            request: str, call: str, messages: list[dict[str, Any]], longest: int, more: dict[str, Any],
            context: Context,
        ) -> dict[str, Any]:  # fmt: skip
            """What an MCP server sends to the model of a client during a call. Servers ask for it; agents cannot."""
            model = self._wanted(request, context)
            del self._wishes[request]
            params = {"messages": messages, "maxTokens": longest, **more}
            try:
                answer = await model(Sampling(self._server, params))
            except NoModel as error:
                raise Failed(f"the client's model gave no answer: {error}", "ask again") from None
            return {"answer": _answer(answer)}

        return sampling

    def _wanted(self, request: str, context: Context) -> Model:
        """The model that is wanted, if it may be had."""
        # its name can be read in the ledger while a human is asked: only the call that it was made for may use it
        wish = self._wishes.get(request)
        if wish is None or context.caller is None or context.caller.wish is not wish:
            raise NotAllowed(
                f"{self._server} has not asked for this", "only a server that is being called can ask for it"
            )
        if wish.flaw:
            raise NotAllowed(f"{self._server} may not have this: {wish.flaw}", "see docs/servers.md")
        caller = wish.call.caller
        if caller.model is None:
            caller.lacked.add("sampling")
            raise Unavailable(
                "the client that made the call offers no model", "use a client that offers sampling"
            )
        return caller.model


def _small(params: Any, scrub: Scrub) -> tuple[dict[str, Any], str]:
    """What is passed on, and what is wrong with it: then only how large it was is kept."""
    said = params.model_dump(by_alias=True, mode="json", exclude_none=True)
    messages = [
        {"role": one.get("role"), "content": blocks(_listed(one.get("content")), scrub)}
        for one in said.get("messages", ())
    ]
    more = {key: cleaned(said[key], scrub) for key in _PASSED_ON if key in said}
    size = len(orjson.dumps([messages, more]))
    parts = [block for one in messages for block in one["content"]]
    flaw = ""
    if said.get("tools") or said.get("toolChoice"):
        flaw = "a model with tools is not offered"
    elif any(block.get("type") not in _CONTENT or "omitted" in block for block in parts):
        flaw = "it holds something that toolgate does not pass on"
    elif size > LONGEST_SAMPLING:
        flaw = f"it is longer than {LONGEST_SAMPLING:,} characters"
    if flaw:
        return {"messages": [], "longest": 1, "more": {"size": size}}, flaw
    asked = said.get("maxTokens")
    tokens = max(1, min(int(asked), MOST_TOKENS)) if isinstance(asked, int | float) else MOST_TOKENS
    return {"messages": messages, "longest": tokens, "more": more}, ""


def _listed(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [content]


def _answer(given: Mapping[str, Any]) -> dict[str, Any]:
    """Only what the protocol has: a client's answer goes to a stranger."""
    content = given.get("content")
    content = content[0] if isinstance(content, list) and len(content) == 1 else content
    if not isinstance(content, Mapping) or content.get("type") not in _CONTENT:
        raise Failed("the client's answer is no text, picture or sound", "ask again")
    kept = {
        key: content[key] for key in ("type", "text", "data", "mimeType") if isinstance(content.get(key), str)
    }
    reason = given.get("stopReason")
    made = {"role": "assistant", "content": kept, "model": str(given.get("model") or "unknown")[:200]}
    return made | ({"stopReason": reason[:50]} if isinstance(reason, str) else {})


def _summary(data: Any) -> str:
    """For the ledger: how much the model said, not what."""
    content = data.get("answer", {}).get("content", {}) if isinstance(data, dict) else {}
    size = sum(len(str(content.get(key, ""))) for key in ("text", "data"))
    return f"{size:,} characters for the server"
