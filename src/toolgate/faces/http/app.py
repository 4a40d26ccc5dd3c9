"""The ASGI application: which routes there are, and what stands before all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolgate.core.errors import SetupError
from toolgate.facade import Gate
from toolgate.faces.http import login, problems
from toolgate.faces.http.api import calls, consent, control, health, record, stream
from toolgate.faces.http.guard import Guard
from toolgate.faces.http.site import ServerSite
from toolgate.feature import Feature, load
from toolgate.kits.web.answers import Json
from toolgate.kits.web.auth import Routes, anyone, human, persona_by_token
from toolgate.kits.web.tokens import Tokens
from toolgate.version import VERSION

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
    problems.install(app)
    app.include_router(health.public, prefix="/api/v1")
    routes = api(_features(gate))
    app.include_router(routes, prefix="/api/v1")
    if console:
        _include_console(app, site, routes)
    _mount_mcp(app, site)
    app.add_middleware(calls.Direct, site=site)
    app.add_middleware(Guard, site=site)  # the last one is the first that a request comes to
    return app


OWN: Routes = (
    (calls.router, anyone), (record.router, anyone), (stream.router, anyone), (health.router, anyone),
    (consent.router, human), (control.router, human),
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
    from toolgate.faces.console import assets
    from toolgate.faces.console.console import Console
    from toolgate.faces.console.router import no_such_page, router

    guarded = [Depends(human)]
    app.include_router(login.router)
    app.include_router(assets.router)
    app.include_router(login.inside, prefix=site.base, dependencies=guarded)
    console = Console(site, _features(site.gate))
    app.include_router(router(console), prefix=site.base, dependencies=guarded, include_in_schema=False)
    app.include_router(routes, prefix=f"{site.base}/api/v1", dependencies=guarded, include_in_schema=False)
    app.include_router(no_such_page(console), prefix=site.base, dependencies=guarded, include_in_schema=False)


def _mount_mcp(app: FastAPI, site: ServerSite) -> None:
    """The MCP server is a face of its own; it is here if it is installed."""
    application = mcp_application(site)
    if application is not None:
        app.router.routes.append(Route("/mcp", _Asgi(application)))  # a mount would answer below /mcp/ only


def mcp_application(site: ServerSite) -> ASGIApp | None:
    try:
        if find_spec("toolgate.faces.mcp.http") is None:
            return None
    except ModuleNotFoundError:
        return None
    made: Any = import_module("toolgate.faces.mcp.http").application(
        site.gate,
        partial(persona_by_token, site),
        console=site.address,
        hosts=site.hosts,
        refused=site.refused,
        streams=site.places.stream,
        sessions=site.places.limits.persona_sessions,
    )
    if hasattr(made, "close"):
        site.closers.append(made.close)
    application: ASGIApp = made
    return application


class _Asgi:
    """An application, not a function that takes a request: Starlette tells them apart by their kind."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application(scope, receive, send)
