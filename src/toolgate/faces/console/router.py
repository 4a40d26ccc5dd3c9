"""The console's pages. Everything here is below the console's own path and needs the human's session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter

from toolgate.faces.console import pages_answers, pages_inbox, pages_policy, pages_record, pages_servers
from toolgate.faces.console.console import Console, route_class
from toolgate.faces.http.site import Site


def router(site: Site) -> APIRouter:
    """Included below `site.base`; links in pages begin with it. `{base}/api/v1` is the API for the session's cookie."""
    console = Console(site)

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        yield
        await console.close()

    pages = APIRouter(route_class=route_class(console), lifespan=lifespan)
    for part in (pages_inbox, pages_answers, pages_record, pages_policy, pages_servers):
        part.add(pages, console)
    return pages
