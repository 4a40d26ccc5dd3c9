"""What a program in the sandbox gets when it asks for a secret: a placeholder, unless the owner said `reveal`.

The placeholder means something only to the egress proxy of the same job, which puts the value in its place on the way to
a host that the secret is for. Messages and answers are plain JSON objects.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from toolgate.secrets.secret import NAME
from toolgate.secrets.vault import Vault


class SecretBroker:
    """One per job. Knows the names that the call was allowed, and gives nothing else away."""

    def __init__(self, vault: Vault | None, granted: Iterable[str]) -> None:
        self._vault = vault
        self._granted = tuple(dict.fromkeys(granted))
        job = secrets.token_hex(8)
        self._standing = {name: f"tgs_{job}_{name}" for name in self._granted}
        self.placeholders: Mapping[str, str] = {word: name for name, word in self._standing.items()}
        """The name that each placeholder stands for; for the egress proxy."""

    def answer(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        match message:
            case {"op": "list"}:
                return {"names": list(self._granted)}
            case {"op": "secret", "name": str(name)}:
                return self._secret(name)
        return {"error": "not a question that the broker answers", "fix": "ask for `secret` or `list`"}

    def _secret(self, name: str) -> Mapping[str, Any]:
        if name not in self._granted:
            shown = name if NAME.fullmatch(name) else "this"
            return {
                "error": f"{shown} was not given to this program",
                "fix": f"name it in `secrets` of the call; given: {', '.join(self._granted) or 'none'}",
            }
        secret = self._vault.get(name) if self._vault is not None else None
        if secret is None:
            return {
                "error": f"there is no secret {name}",
                "fix": f"a human sets it: toolgate secrets set {name}",
            }
        return {"value": secret.value} if secret.reveal else {"placeholder": self._standing[name]}

    def resolve(self, name: str, host: str) -> str | None:
        """The value, where the call was given it and it may be sent to this host; for the egress proxy."""
        if name not in self._granted or self._vault is None:
            return None
        secret = self._vault.get(name)
        return secret.value if secret is not None and secret.fits(host) else None
