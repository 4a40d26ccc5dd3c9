"""Models that speak the OpenAI chat protocol, through the official SDK: OpenAI's own, and local servers by `base_url`."""

from __future__ import annotations

from typing import Any

from toolgate.agents.models import ModelReply, ModelRequest, ModelSettings, ModelUsage, Say, missing, priced
from toolgate.agents.wires import wire

try:
    import openai

    from toolgate.agents.models.sdk import Broken, patiently
except ImportError as error:
    raise missing("openai", error) from None

NO_KEY = "none"
"""For servers that want no key; the SDK wants a word."""


class OpenAIModel:
    def __init__(self, settings: ModelSettings, client: Any = None) -> None:
        self.name, self.wire = settings.model, settings.wire or "openai"
        self._settings = settings
        self._client: Any = client or openai.AsyncOpenAI(
            api_key=settings.key or NO_KEY, base_url=settings.base_url or None, timeout=settings.timeout_s,
            max_retries=settings.retries,
        )  # fmt: skip

    async def ask(self, request: ModelRequest, say: Say) -> ModelReply:
        return await patiently(self._settings, lambda: self._attempt(request, say), openai)

    async def _attempt(self, request: ModelRequest, say: Say) -> ModelReply:
        settings, spoken = self._settings, wire(self.wire)
        arriving = spoken.stream(request.known)
        more: dict[str, Any] = {}
        if spoken.native and request.specs:
            more |= {"tools": request.specs.as_openai(), "tool_choice": "none" if request.final else "auto"}
        # servers that only speak the protocol know the limit by its old name
        more["max_tokens" if settings.base_url else "max_completion_tokens"] = settings.max_tokens
        if settings.temperature is not None:
            more["temperature"] = settings.temperature
        stream = await self._client.chat.completions.create(
            model=settings.model, messages=list(request.messages), stream=True,
            stream_options={"include_usage": True}, **more,
        )  # fmt: skip
        usage, answered, finished = ModelUsage(), settings.model, False
        async with stream:
            async for chunk in stream:
                answered = chunk.model or answered
                if chunk.usage is not None:
                    usage = _usage(chunk.usage)
                for choice in chunk.choices:
                    finished = finished or bool(choice.finish_reason)
                heard = arriving.feed(chunk if spoken.native else _text(chunk))
                if heard.text:
                    say(heard.text)
        if not finished:
            raise Broken("the stream ended before the reply did")
        usage = ModelUsage(usage.input, usage.output, usage.cached, priced("openai", settings, usage))
        return ModelReply(arriving.close(), usage, answered)

    async def close(self) -> None:
        await self._client.close()


def _text(chunk: Any) -> str:
    return "".join(choice.delta.content or "" for choice in chunk.choices if choice.index == 0)


def _usage(told: Any) -> ModelUsage:
    details = told.prompt_tokens_details
    cached = (details.cached_tokens or 0) if details is not None else 0
    return ModelUsage(told.prompt_tokens or 0, told.completion_tokens or 0, cached)
