"""The HTTP face: the API under /api/v1, the login, the stream of events. It translates; it never decides."""

from __future__ import annotations

from toolgate.faces.http.app import create_app

__all__ = ["create_app"]
