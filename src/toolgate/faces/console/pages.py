"""Pages that are there before anybody is logged in."""

from __future__ import annotations

from html import escape

from starlette.responses import HTMLResponse

_LOGIN = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>toolgate</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><main><h1>toolgate</h1><p role="status">{message}</p>
<form method="post" action="/login"><label>Token <input name="token" type="password" autocomplete="off" required></label>
<button>Log in</button></form>
<p>Open the address that <code>toolgate up</code> printed, or paste what <code>toolgate token</code> prints.</p>
</main></body></html>
"""


def login_page(message: str = "", status: int = 200) -> HTMLResponse:
    return HTMLResponse(_LOGIN.format(message=escape(message)), status)
