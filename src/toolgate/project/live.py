"""The policy and the settings in force, as the file says now."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from toolgate.consent.desk import Settings
from toolgate.core.errors import Unavailable
from toolgate.core.paths import MountPath
from toolgate.core.ports import Window
from toolgate.core.status import FileLook, FileStatus
from toolgate.gate.flow import Budget, Services, Timeouts
from toolgate.ledger.ledger import Ledger
from toolgate.ledger.limits import Allowance
from toolgate.policy.policy import Policy
from toolgate.project.plugins import OwnCode

if TYPE_CHECKING:
    from toolgate.project.config import Config


class LivePolicy:
    """The policy in force, read again whenever its file changes. A broken file stops everything: fail closed."""

    def __init__(
        self, config: Config, source: Path | None, trusted: bool, root: Path | None = None,
        own_code: Callable[[Config], OwnCode] | None = None,
    ) -> None:  # fmt: skip
        self._source, self._trusted, self._root = source, trusted, root
        self._own_code = own_code
        self.opened_with = own_code(config) if own_code is not None else OwnCode()
        """What runs as long as the gate is open, whatever the file says later."""
        self._status = FileLook(source or Path())
        self._stamp = self._look()
        self.config = config
        self._policy = self._made(config)
        self._error: Exception | None = None
        self.ledger: Ledger | None = None
        self.services: Services | None = None

    def current(self) -> Policy:
        if self._source is not None and (stamp := self._look()) != self._stamp:
            self._stamp = stamp
            self._reload()
        if self._error is not None:
            raise self._error
        return self._policy

    def _made(self, config: Config) -> Policy:
        found = self.opened_with
        if self._own_code is not None and hasattr(self, "config"):
            found = found.also(self._own_code(config))
        return config.policy(self._trusted, found.own, found.held)

    def tried(self, config: Config) -> Policy:
        """The policy of another file, in this project as it is trusted and with what this gate loads and runs."""
        return self._made(config)

    def shut(self, paths: Iterable[MountPath]) -> None:
        """Plugins have loaded these: no tool writes them from now on."""
        self.opened_with = self.opened_with.also(OwnCode(tuple(paths)))
        self._policy = self._made(self.config)

    def windows(self, persona: str, tool: str, writes: tuple[str, ...] = ()) -> tuple[Window, ...]:
        return self._policy.windows(persona, tool, writes) if persona in self._policy.personas else ()

    def limits_effects(self) -> bool:
        return self._policy.limits_effects

    def _look(self) -> FileStatus | None:
        if self._source is None:
            return None
        try:
            return self._status()  # several times a call
        except OSError:
            return None

    def _reload(self) -> None:
        from toolgate.project import config as configuration

        source = self._source
        assert source is not None
        try:
            source = source.absolute()
            config = configuration.load_from(
                source, self._root or source.parent, self.config.mounts, self.config.brought
            )
            self._policy, self.config = self._made(config), config
            self._error = None
        except Exception as error:  # whatever it is: the policy from before is not in force any more
            fix = getattr(error, "fix", "") or "repair the file"
            self._error = Unavailable(f"the policy cannot be read: {error}", fix)
            return
        if self.ledger is not None:
            self.ledger.forget()  # limits may look back further now
        if self.services is not None:
            apply_settings(self.services, self.config)


def apply_settings(services: Services, config: Config) -> None:
    """What a changed file changes at once; mounts, plugins and the database wait for the next opening."""
    services.desk.settings = consent_settings(config)
    services.ledger.allowance = allowance_of(config)
    services.budget = Budget(config.budget.tokens, config.budget.bytes)
    services.timeouts = Timeouts(config.timeouts.default_s, config.timeouts.max_s, config.timeouts.tool)


def allowance_of(config: Config) -> Allowance:
    spec = config.limits.journal_bytes
    return Allowance(spec.per_minute, spec.kept)


def consent_settings(config: Config) -> Settings:
    return Settings(config.consent.expires_s, config.consent.max_open, config.consent.unattended)
