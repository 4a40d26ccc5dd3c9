"""`/diary` in the console."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from toolgate.kits.web.auth import Human
from toolgate.kits.web.pages import Pages


def add(router: APIRouter, console: Pages) -> None:
    @router.get("/diary")
    async def diary(request: Request, who: Human) -> Response:
        entries = await console.gate.feature("diary").read()
        return await console.page(request, who, "diary/diary.html", entries=entries)
