"""The console's pages. Everything here is below the console's own path and needs the human's session."""

from __future__ import annotations

from html import escape

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from toolgate.faces.http.auth import Human
from toolgate.faces.http.site import Site


def router(site: Site) -> APIRouter:
    """Included below `site.base`; links in pages begin with it. `{base}/api/v1` is the API for the session's cookie."""
    pages = APIRouter()

    @pages.get("/")
    async def home(who: Human) -> Response:
        questions = await site.gate.approvals()
        items = "".join(f"<li>{escape(each.persona)} wants {escape(each.tool)}</li>" for each in questions)
        csrf = who.session.csrf if who.session else ""
        return HTMLResponse(
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>toolgate</title></head><body><main>'
            f"<h1>toolgate</h1><p>{len(questions)} open questions</p><ul>{items}</ul>"
            f'<form method="post" action="{site.base}/logout"><input type="hidden" name="csrf" value="{csrf}">'
            f"<button>Log out</button></form></main></body></html>"
        )

    return pages
