"""Anthropic's models, through the official SDK."""

from __future__ import annotations

from typing import Any

from toolgate.agents.models import ModelReply, ModelRequest, ModelSettings, ModelUsage, Say, missing, priced
from toolgate.agents.wires import wire

try:
    import anthropic

    from toolgate.agents.models.sdk import Broken, patiently
except ImportError as error:
    raise missing("anthropic", error) from None

NO_KEY = "none"


class AnthropicModel:
    def __init__(self, settings: ModelSettings, client: Any = None) -> None:
        self.name, self.wire = settings.model, settings.wire or "anthropic"
        self._settings = settings
        self._client: Any = client or anthropic.AsyncAnthropic(
            api_key=settings.key or NO_KEY, base_url=settings.base_url or None, timeout=settings.timeout_s,
            max_retries=settings.retries,
        )  # fmt: skip

    async def ask(self, request: ModelRequest, say: Say) -> ModelReply:
        return await patiently(self._settings, lambda: self._attempt(request, say), anthropic)

    async def _attempt(self, request: ModelRequest, say: Say) -> ModelReply:
        settings, spoken = self._settings, wire(self.wire)
        arriving = spoken.stream(request.known)
        more: dict[str, Any] = {}
        if spoken.native and request.specs:
            choice = {"type": "none" if request.final else "auto"}
            more |= {"tools": request.specs.as_anthropic(), "tool_choice": choice}
        if settings.temperature is not None:
            more["temperature"] = settings.temperature
        system, *rest = request.messages
        stream = await self._client.messages.create(
            model=settings.model, system=system["content"], messages=_alternating(rest), max_tokens=settings.max_tokens,
            stream=True, **more,
        )  # fmt: skip
        into = out = cached = 0
        answered, finished = settings.model, False
        async with stream:
            async for event in stream:
                if event.type == "message_start":
                    told = event.message.usage
                    cached = told.cache_read_input_tokens or 0
                    into = told.input_tokens + cached + (told.cache_creation_input_tokens or 0)
                    answered = event.message.model or answered
                elif event.type == "message_delta":
                    out = event.usage.output_tokens or out
                elif event.type == "message_stop":
                    finished = True
                heard = arriving.feed(event if spoken.native else _text(event))
                if heard.text:
                    say(heard.text)
        if not finished:
            raise Broken("the stream ended before the reply did")
        usage = ModelUsage(into, out, cached)
        usage = ModelUsage(into, out, cached, priced("anthropic", settings, usage))
        return ModelReply(arriving.close(), usage, answered)

    async def close(self) -> None:
        await self._client.close()


def _text(event: Any) -> str:
    delta = event.delta if event.type == "content_block_delta" else None
    return str(delta.text) if delta is not None and delta.type == "text_delta" else ""


def _alternating(messages: Any) -> list[dict[str, Any]]:
    """The API takes turns: messages of one side that follow each other become one. An empty one is no message."""
    made: list[dict[str, Any]] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) and content else content
        if not blocks:
            continue
        if made and made[-1]["role"] == message["role"]:
            made[-1]["content"] = [*made[-1]["content"], *blocks]
        else:
            made.append({"role": message["role"], "content": list(blocks)})
    return made
