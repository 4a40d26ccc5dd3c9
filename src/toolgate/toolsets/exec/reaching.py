"""What one program may reach through its walls: secrets by a broker, hosts by a proxy, every request recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from toolgate.core.context import Context
from toolgate.core.errors import NotFound, Unavailable
from toolgate.core.event import Requested
from toolgate.ledger.ledger import Ledger, View, Work
from toolgate.sandbox.egress.grant import Grant as Hosts
from toolgate.sandbox.egress.proxy import Proxy
from toolgate.sandbox.job import Broker, Request
from toolgate.secrets.broker import SecretBroker
from toolgate.secrets.redactor import Stream, VaultRedactor
from toolgate.secrets.vault import Vault
from toolgate.toolsets.exec.means import Grant


class Journal:
    """Writes each request down as it ends. If one cannot be, the next is refused: nothing goes out unrecorded."""

    def __init__(self, ledger: Ledger, context: Context) -> None:
        self._ledger, self._context = ledger, context
        self._writing: set[asyncio.Task[None]] = set()
        self._failure: Exception | None = None

    def __call__(self, request: Request) -> None:
        if self._failure is not None:
            raise self._failure
        task = asyncio.get_running_loop().create_task(self._write(request))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def close(self) -> None:
        await asyncio.gather(*self._writing)
        if self._failure is not None:
            raise self._failure

    async def _write(self, request: Request) -> None:
        context = self._context
        words = asdict(request) | {"injected": list(request.injected)}
        event = Requested(
            call=context.call_id, persona=context.persona, tool=context.tool, conversation=context.conversation, **words
        )  # fmt: skip

        def record(view: View) -> None:
            view.emit(event)

        try:
            await self._ledger.do(Work(record))
        except Exception as error:
            self._failure = error


@dataclass(frozen=True, slots=True)
class Reach:
    egress: Proxy | None = None
    broker: Broker | None = None
    journal: Journal | None = None

    @property
    def exhausted(self) -> bool:
        return self.egress is not None and self.egress.exhausted

    async def close(self) -> None:
        """When the program has ended: until then requests may still be written down."""
        if self.journal is not None:
            await self.journal.close()


class Injected:
    """The secrets of one program, as the proxy sees them."""

    def __init__(self, broker: SecretBroker, redactor: VaultRedactor) -> None:
        self._broker, self._redactor = broker, redactor

    @property
    def placeholders(self) -> Mapping[str, str]:
        return self._broker.placeholders

    def resolve(self, name: str, place: str) -> str | None:
        return self._broker.resolve(name, place)

    def stream(self, names: Sequence[str]) -> Stream:
        return self._redactor.stream()


@dataclass(frozen=True, slots=True)
class Reaching:
    vault: Vault | None
    redactor: VaultRedactor
    ledger: Ledger
    private: tuple[str, ...] = ()
    """Hosts on this machine or network that the owner lets programs reach, as `host:port`."""

    def __call__(self, grant: Grant, context: Context) -> Reach:
        """Refuses what the owner does not let out before anything runs."""
        broker = self._broker(grant.secrets) if grant.secrets else None
        if not grant.hosts:
            return Reach(broker=broker)
        journal = Journal(self.ledger, context)
        proxy = Proxy(
            Hosts.parse(grant.hosts, grant.methods or None), private=self.private,
            secrets=Injected(broker, self.redactor) if broker is not None else None,
            redact=lambda text: str(self.redactor.redact(text)), on_request=journal,
        )  # fmt: skip
        return Reach(proxy, broker, journal)

    def _broker(self, names: Sequence[str]) -> SecretBroker:
        if self.vault is None:
            raise Unavailable("there is no vault here", "run it without `secrets`")
        self.vault.refresh()
        missing = [name for name in names if self.vault.get(name) is None]
        if missing:
            known = ", ".join(self.vault.names()) or "none"
            raise NotFound(f"there is no secret {missing[0]!r}", f"there are: {known}")
        return SecretBroker(self.vault, names)
