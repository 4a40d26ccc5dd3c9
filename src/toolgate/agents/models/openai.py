"""Models that speak OpenAI's chat or Responses protocol, through the official SDK: OpenAI's own, and local servers by
`base_url`."""

from __future__ import annotations

from typing import Any

from toolgate.agents.models import (
    ModelReply,
    ModelRequest,
    ModelSettings,
    ModelUsage,
    Say,
    estimated,
    missing,
    priced,
)
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
        arriving, heard = spoken.stream(request.known), _Heard(settings.model)
        more: dict[str, Any] = {}
        if settings.temperature is not None:
            more["temperature"] = settings.temperature
        by_response = self.wire == "openai-responses"
        stream = await (
            self._response(request, more) if by_response else self._chat(request, more, spoken.native)
        )
        async with stream:
            async for event in stream:
                (heard.event if by_response else heard.chunk)(event)
                told = arriving.feed(event if spoken.native else _text(event))
                if told.text:
                    say(told.text)
        if not heard.finished:
            raise Broken("the stream ended before the reply did")
        parsed = arriving.close()
        used = heard.usage if heard.usage.tokens else estimated(request, parsed)
        usage = ModelUsage(used.input, used.output, used.cached, priced("openai", settings, used))
        return ModelReply(parsed, usage, heard.model)

    def _chat(self, request: ModelRequest, more: dict[str, Any], native: bool) -> Any:
        settings = self._settings
        if native and request.specs:
            more |= {"tools": request.specs.as_openai(), "tool_choice": "none" if request.final else "auto"}
        # servers that only speak the protocol know the limit by its old name
        more["max_tokens" if settings.base_url else "max_completion_tokens"] = settings.max_tokens
        return self._client.chat.completions.create(
            model=settings.model, messages=list(request.messages), stream=True,
            stream_options={"include_usage": True}, **more,
        )  # fmt: skip

    def _response(self, request: ModelRequest, more: dict[str, Any]) -> Any:
        settings, (system, *rest) = self._settings, request.messages
        if request.specs:
            tools = [
                {"type": "function", "strict": False, **one["function"]} for one in request.specs.as_openai()
            ]
            more |= {"tools": tools, "tool_choice": "none" if request.final else "auto"}
        items = [
            item
            for one in rest
            for item in (one["output"] if "role" not in one and "type" not in one else [one])
        ]
        return self._client.responses.create(
            model=settings.model, instructions=system["content"], input=items, max_output_tokens=settings.max_tokens,
            store=False, stream=True, **more,
        )  # fmt: skip

    async def close(self) -> None:
        await self._client.close()


class _Heard:
    """What a stream says beside the reply itself."""

    def __init__(self, model: str) -> None:
        self.model, self.finished, self.usage = model, False, ModelUsage()

    def chunk(self, chunk: Any) -> None:
        self.model = chunk.model or self.model
        if chunk.usage is not None:
            details = chunk.usage.prompt_tokens_details
            cached = (details.cached_tokens or 0) if details is not None else 0
            self.usage = ModelUsage(
                chunk.usage.prompt_tokens or 0, chunk.usage.completion_tokens or 0, cached
            )
        self.finished = self.finished or any(choice.finish_reason for choice in chunk.choices)

    def event(self, event: Any) -> None:
        if event.type == "response.failed":
            raise Broken(getattr(event.response.error, "message", "") or "the response failed")
        if event.type == "error":
            raise Broken(event.message)
        if event.type not in ("response.completed", "response.incomplete"):
            return
        self.model, self.finished, told = event.response.model or self.model, True, event.response.usage
        if told is not None:
            cached = getattr(told.input_tokens_details, "cached_tokens", 0) or 0
            self.usage = ModelUsage(told.input_tokens or 0, told.output_tokens or 0, cached)


def _text(chunk: Any) -> str:
    return "".join(choice.delta.content or "" for choice in chunk.choices if choice.index == 0)
