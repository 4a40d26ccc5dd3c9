"""Style, scripts and their licences: known files from memory, under a name that changes with their content.

They hold nothing private and are there before anybody has logged in; no path of a request is ever opened.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from toolgate.core.errors import NotFound

ROOT = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}


def _sent(path: Path) -> bytes:
    """Style without comments and the blanks around its signs, which only whoever writes it needs."""
    content = path.read_bytes()
    if path.suffix != ".css":
        return content
    return re.sub(rb"\s*([{};])\s*", rb"\1", re.sub(rb"/\*.*?\*/", b"", content, flags=re.S)).strip()


FILES: dict[str, tuple[bytes, str]] = {
    path.relative_to(ROOT).as_posix(): (_sent(path), _TYPES[path.suffix])
    for path in sorted(ROOT.rglob("*"))
    if path.suffix in _TYPES
}
VERSION = hashlib.sha256(b"".join(content for content, _ in FILES.values())).hexdigest()[:12]
SMALL = {name: gzip.compress(content, 9, mtime=0) for name, (content, _) in FILES.items()}
"""Nothing secret is in them, so nothing can be learned from how well they compress."""
_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
router = APIRouter(include_in_schema=False)


def url(name: str) -> str:
    assert name in FILES, name
    return f"/assets/{VERSION}/{name}"


@router.get("/assets/{version}/{name:path}")
async def asset(request: Request, version: str, name: str) -> Response:
    if version != VERSION or name not in FILES:
        raise NotFound("there is no such asset", "reload the page")
    content, kind = FILES[name]
    headers = dict(_FOR_EVER)
    if "gzip" in request.headers.get("accept-encoding", ""):
        content, headers["Content-Encoding"] = SMALL[name], "gzip"
    return Response(content, media_type=f"{kind}; charset=utf-8", headers=headers)
