"""Errors of whole requests, as the one JSON shape or, for a person in a browser, as a page."""

from __future__ import annotations

import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from toolgate.core.errors import Code, ToolgateError
from toolgate.faces.console.templates import login_page, lost_page
from toolgate.kits.web.answers import Unauthenticated, problem, problem_of

log = logging.getLogger("toolgate.http")


def install(app: FastAPI) -> None:
    """However a request goes wrong, its answer has the one shape."""

    async def known(request: Request, error: Exception) -> Response:
        assert isinstance(error, ToolgateError)
        if isinstance(error, Unauthenticated) and "text/html" in request.headers.get("accept", ""):
            return login_page(error.message, 401)  # a person in a browser, not a program
        return problem_of(error)

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
        return lost_page(request, Code.INVALID_ARGS, message, 400)
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
        return lost_page(request, code, message, error.status_code)
    return problem(code, message, "/api/openapi.json lists what there is", status=error.status_code)


def _for_people(request: Request) -> bool:
    """A person in a browser, at an address that is not for programs. The console's own script wants no whole page."""
    path = request.url.path.removeprefix(_base(request))
    wants_page = "text/html" in request.headers.get("accept", "") and "HX-Request" not in request.headers
    return wants_page and not path.startswith(("/api", "/mcp", "/assets/"))


def _base(request: Request) -> str:
    return str(request.app.state.site.base)
