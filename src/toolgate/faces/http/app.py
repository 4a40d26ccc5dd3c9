"""The ASGI application: which routes there are, and what stands before all of them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolgate.core.errors import Code, SetupError, ToolgateError
from toolgate.facade import Gate
from toolgate.faces.console.templates import login_page, lost_page
from toolgate.faces.http import calls, consent, record
from toolgate.faces.http.guard import Guard
from toolgate.faces.http.site import ServerSite
from toolgate.feature import Feature, load
from toolgate.kits.web.answers import Json, Unauthenticated, problem, problem_of
from toolgate.kits.web.auth import Routes, anyone, human, persona_by_token
from toolgate.kits.web.tokens import Tokens
from toolgate.version import VERSION

log = logging.getLogger("toolgate.http")


def install(app: FastAPI) -> None:
    """However a request goes wrong, its answer has the one shape."""

    async def known(request: Request, error: Exception) -> Response:
        assert isinstance(error, ToolgateError)
        if isinstance(error, Unauthenticated) and "text/html" in request.headers.get("accept", ""):
            return login_page(error.message, 401)  # a person in a browser, not a program
        return problem_of(error)

    async def bug(request: Request, error: Exception) -> Response:
        log.error("a request failed", exc_info=error)
        return problem(
            Code.FAILED,
            f"toolgate itself failed: {type(error).__name__}",
            "the trace is in the log; report it",
        )

    app.add_exception_handler(ToolgateError, known)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, bug)


async def _malformed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
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


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
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


NO_TELEMETRY: TelemetryConfig = {"auto_configure": False, "tracing": False, "metrics": False, "logs": False}
"""Addresses carry tokens, arguments may be private: nothing of a request is sent anywhere by the framework."""


def create_app(
    gate: Gate, tokens: Tokens, *, hosts: Iterable[str] = (), console: bool = True, site: ServerSite | None = None
) -> FastAPI:  # fmt: skip
    """`hosts` are names, besides those of loopback, by which this server may be reached; a `site` brings its own."""
    site = site or ServerSite(gate, tokens, tuple(hosts))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        site.notifier.close()
        site.counts.close()

    app = FastAPI(
        title="toolgate", version=VERSION, summary="The gate between an AI agent and everything it can touch.",
        openapi_url="/api/openapi.json", docs_url=None, redoc_url=None, default_response_class=Json,
        redirect_slashes=False, lifespan=lifespan, telemetry=NO_TELEMETRY,
    )  # fmt: skip
    app.state.site = site
    install(app)
    app.include_router(record.public_router, prefix="/api/v1")
    routes = api(_features(gate))
    app.include_router(routes, prefix="/api/v1")
    if console:
        _include_console(app, site, routes)
    _mount_mcp(app, site)
    app.add_middleware(calls.Direct, site=site)
    app.add_middleware(Guard, site=site)  # the last one is the first that a request comes to
    return app


OWN: Routes = (
    (calls.router, anyone), (record.router, anyone), (record.health_router, anyone), (consent.router, human),
)  # fmt: skip


def _features(gate: Gate) -> list[Feature]:
    return [context.feature for context in gate.features.values()]


def api(features: Iterable[Feature]) -> APIRouter:
    """The API's own routes and those of features. None is there without a question of who asks."""
    made = APIRouter()
    brought = (each for feature in features if feature.routes for each in load(feature.routes)())
    for router, who in (*OWN, *brought):
        if who not in (anyone, human):
            raise SetupError("a router of a feature does not say who may use it", "say `anyone` or `human`")
        made.include_router(router, dependencies=[Depends(who)])
    return made


def _include_console(app: FastAPI, site: ServerSite, routes: APIRouter) -> None:
    """Below its secret path the API is there once more, for the cookie that is sent nowhere else."""
    from toolgate.faces.console import templates
    from toolgate.faces.console.console import Console
    from toolgate.faces.console.router import doors, inner_doors, no_such_page, router

    guarded = [Depends(human)]
    app.include_router(doors)
    app.include_router(templates.asset_router)
    app.include_router(inner_doors, prefix=site.base, dependencies=guarded)
    console = Console(site, _features(site.gate))
    app.include_router(router(console), prefix=site.base, dependencies=guarded, include_in_schema=False)
    app.include_router(routes, prefix=f"{site.base}/api/v1", dependencies=guarded, include_in_schema=False)
    app.include_router(no_such_page(console), prefix=site.base, dependencies=guarded, include_in_schema=False)


def _mount_mcp(app: FastAPI, site: ServerSite) -> None:
    app.router.routes.append(
        Route("/mcp", _Asgi(mcp_application(site)))
    )  # a mount would answer below /mcp/ only


def mcp_application(site: ServerSite) -> ASGIApp:
    """The MCP server is a face of its own."""
    from toolgate.faces.mcp.http import application

    made: Any = application(
        site.gate,
        partial(persona_by_token, site),
        console=site.address,
        hosts=site.hosts,
        refused=site.refused,
        streams=site.places.stream,
        sessions=site.places.limits.persona_sessions,
    )
    site.closers.append(made.close)
    served: ASGIApp = made
    return served


class _Asgi:
    """An application, not a function that takes a request: Starlette tells them apart by their kind."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application(scope, receive, send)
