"""What a model is told about the programs it may write: the helpers, and the names of secrets, never their values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

_HELPERS = (
    ("getSecret(name)", "get_secret(name)", "a secret for a request; it is masked wherever it is printed"),
    ("listSecrets()", "list_secrets()", "the names of the secrets"),
    ("getJSON(url, authSecret?)", "get_json(url, auth_secret=None)", "GET; the JSON that comes back"),
    (
        "postJSON(url, body, authSecret?)",
        "post_json(url, body, auth_secret=None)",
        "POST of JSON; the JSON that comes back",
    ),
    (
        "fetchWithAuth(url, {authSecret, ...options})",
        "fetch_with_auth(url, method, headers, body, auth_secret)",
        "any request, with `Authorization: Bearer` from a secret",
    ),
    ("output(data)", "output(data)", "structured output, better than printing"),
    ("sleep(ms)", "sleep(seconds)", "wait"),
)
_NOTES = {
    "javascript": "An ES module run by Deno, with top-level await; the request helpers and sleep return promises.",
    "python": "Python with its standard library; the helpers wait for their answer, and top-level await works.",
}


def prompt(names: Iterable[str] = (), language: Literal["javascript", "python"] = "javascript") -> str:
    """A paragraph for a system prompt."""
    javascript = language == "javascript"
    helpers = "\n".join(f"- `{js if javascript else python}`: {what}" for js, python, what in _HELPERS)
    secrets = ", ".join(sorted(names)) or "none"
    return f"""## Code execution environment

{_NOTES[language]} These globals are there:

{helpers}

Secrets, by name: {secrets}. Refer to a secret by its name only; never print one.
There is no network unless it was granted, and then only to the granted hosts. Files may be written in the working directory.
"""
