"""Every error as {code, message, fix}, and which HTTP status goes with which code."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from toolgate.core.errors import CallError, Code, NotAllowed, ToolgateError
from toolgate.core.result import Result
from toolgate.faces.console.pages import login_page, lost_page

log = logging.getLogger("toolgate.http")

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


def of(error: ToolgateError) -> Json:
    if isinstance(error, CallError):
        return problem(error.code, error.message, error.fix, error.data, getattr(error, "status", 0))
    return problem(Code.UNAVAILABLE, error.message, error.fix)


def _retry(data: Any) -> dict[str, str]:
    wait = data.get("retry_after_s") if isinstance(data, Mapping) else None
    return {"Retry-After": str(max(1, round(wait + 0.5)))} if isinstance(wait, int | float) else {}


def install(app: FastAPI) -> None:
    """However a request goes wrong, its answer has the one shape."""

    async def known(request: Request, error: Exception) -> Response:
        assert isinstance(error, ToolgateError)
        if isinstance(error, Unauthenticated) and "text/html" in request.headers.get("accept", ""):
            return login_page(error.message, 401)  # a person in a browser, not a program
        return of(error)

    async def malformed(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return _malformed(request, error)

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return _http(request, error)

    async def bug(request: Request, error: Exception) -> Response:
        log.error("a request failed", exc_info=error)
        return problem(
            Code.FAILED,
            f"toolgate itself failed: {type(error).__name__}",
            "the trace is in the log; report it",
        )

    app.add_exception_handler(ToolgateError, known)
    app.add_exception_handler(RequestValidationError, malformed)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, bug)


def _malformed(request: Request, error: RequestValidationError) -> Response:
    found = [
        {"where": ".".join(str(part)[:100] for part in each["loc"]), "problem": str(each["msg"])[:200]}
        for each in list(error.errors())[:10]
    ]
    first = found[0] if found else {"where": "body", "problem": "it cannot be read"}
    message = f"{first['where']}: {first['problem']}"
    if _for_people(request):
        return lost_page(request, _base(request), Code.INVALID_ARGS, message, 400)
    fix = "/api/openapi.json describes what this address takes"
    return problem(Code.INVALID_ARGS, message, fix, {"problems": found})


_CODES = {400: Code.INVALID_ARGS, 403: Code.NOT_ALLOWED, 404: Code.NOT_FOUND, 405: Code.INVALID_ARGS, 408: Code.TIMEOUT,
          413: Code.TOO_LARGE, 415: Code.INVALID_ARGS, 503: Code.UNAVAILABLE}  # fmt: skip


def _http(request: Request, error: HTTPException) -> Response:
    code = _CODES.get(error.status_code, Code.FAILED if error.status_code >= 500 else Code.INVALID_ARGS)
    where = f"{request.method} {request.url.path[:200]}"
    words = {404: f"there is nothing at {where}", 405: f"{where} cannot be done"}
    message = words.get(error.status_code, str(error.detail)[:200])
    if _for_people(request):
        return lost_page(request, _base(request), code, message, error.status_code)
    return problem(code, message, "/api/openapi.json lists what there is", status=error.status_code)


def _for_people(request: Request) -> bool:
    """A person in a browser, at an address that is not for programs. The console's own script wants no whole page."""
    path = request.url.path.removeprefix(_base(request))
    wants_page = "text/html" in request.headers.get("accept", "") and "HX-Request" not in request.headers
    return wants_page and not path.startswith(("/api", "/mcp", "/assets/"))


def _base(request: Request) -> str:
    return str(request.app.state.site.base)
