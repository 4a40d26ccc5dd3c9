"""Router of the console's pages, its own and those of features. All are below the console's path, for the human's session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from toolgate.core.errors import NotFound
from toolgate.faces.console import pages_inbox, pages_policy, pages_record
from toolgate.faces.console.console import Console, route_class
from toolgate.feature import load
from toolgate.kits.web.pages import is_part


def router(console: Console) -> APIRouter:
    """Included below `site.base`; links in pages begin with it. `{base}/api/v1` is the API for the session's cookie."""

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        yield
        await console.close()

    made = APIRouter(route_class=route_class(console), lifespan=lifespan)
    for part in (pages_inbox, pages_record, pages_policy):
        part.add(made, console)
    for _, page in console.brought:
        load(page.adds)(made, console)
    return made


def no_such_page(console: Console) -> APIRouter:
    """Included last: whatever else is asked for below the console's path. It is a page too, with the way on."""
    made = APIRouter(route_class=route_class(console))

    @made.api_route("/{rest:path}", methods=["GET", "POST"])
    async def lost(request: Request, rest: str) -> Response:
        if rest.startswith("api/") or is_part(request):
            raise HTTPException(404)
        raise NotFound(f"there is no page /{rest[:200]}", "check the address, or choose one of the pages")

    return made
