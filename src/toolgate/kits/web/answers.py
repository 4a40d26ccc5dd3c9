"""JSON answers of the HTTP API: every error as {code, message, fix}, and the status that goes with each code."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any

import orjson
from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from toolgate.core import wire
from toolgate.core.errors import CallError, Code, NotAllowed, ToolgateError
from toolgate.core.result import Result

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""
STATUS: dict[Code, int] = {
    Code.PENDING: 202,
    Code.INVALID_ARGS: 400,
    Code.NOT_ALLOWED: 403,
    Code.DENIED: 403,
    Code.OUTSIDE_MOUNT: 403,
    Code.BLOCKED_PATH: 403,
    Code.BLOCKED_CONTENT: 403,
    Code.UNKNOWN_TOOL: 404,
    Code.NOT_FOUND: 404,
    Code.CONFLICT: 409,
    Code.CANCELLED: 409,
    Code.EXPIRED: 410,
    Code.TOO_LARGE: 413,
    Code.NOT_TEXT: 415,
    Code.RATE_LIMITED: 429,
    Code.FAILED: 500,
    Code.UNKNOWN_OUTCOME: 500,
    Code.UNAVAILABLE: 503,
    Code.TIMEOUT: 504,
}
"""The status is a hint for programs that know nothing of toolgate; the code says it exactly."""


class Unauthenticated(NotAllowed):
    """Nobody we know: not refused by policy, but not let in."""

    status = 401


class Json(Response):
    """JSON of anything a tool may give: very large integers and broken characters must not become a 500."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        try:
            return orjson.dumps(content)
        except TypeError:
            return json.dumps(content, default=str).encode()


def result(made: Result) -> Json:
    """A Result, in the shape it has everywhere, with the status of its code."""
    status = 200 if made.error is None else STATUS[made.error.code]
    return Json(made.as_dict(), status, _retry(made.data))


def problem(
    code: Code, message: str, fix: str, data: Mapping[str, Any] | None = None, status: int = 0
) -> Json:
    body: dict[str, Any] = {"code": code.value, "message": message, "fix": fix}
    if data:
        body["data"] = dict(data)
    headers = _retry(data)
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="toolgate"'
    return Json(body, status or STATUS[code], headers)


def problem_of(error: ToolgateError) -> Json:
    if isinstance(error, CallError):
        return problem(error.code, error.message, error.fix, error.data, getattr(error, "status", 0))
    return problem(Code.UNAVAILABLE, error.message, error.fix)


def _retry(data: Any) -> dict[str, str]:
    wait = data.get("retry_after_s") if isinstance(data, Mapping) else None
    return {"Retry-After": str(max(1, round(wait + 0.5)))} if isinstance(wait, int | float) else {}


class Measured(APIRoute):
    """A route whose body is JSON: refused before it is parsed where parsing it would hold everybody up."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            if request.method not in SAFE:
                wire.check_size(await request.body())
            return await handle(request)

        return handled


class Why(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    reason: Annotated[str, Field(max_length=4000)] = ""
