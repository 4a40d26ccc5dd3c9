"""Network access of one program: the vault's broker, the proxy that puts secrets in, and the journal of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from toolgate.core.context import Context
from toolgate.core.errors import NotFound
from toolgate.core.event import Requested
from toolgate.core.target import Reach
from toolgate.ledger.ledger import Ledger
from toolgate.sandbox.job import Broker, Egress, Request
from toolgate.secrets.redactor import Stream, VaultRedactor
from toolgate.secrets.vault import SecretBroker, Vault


@dataclass(frozen=True, slots=True)
class NetworkGrant:
    """What a call asks to reach outside: hosts, methods, and the secrets that may be put into requests."""

    hosts: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    """None named: every method."""
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NetworkAccess:
    """What leads out of the sandbox for one program."""

    egress: Egress | None
    broker: Broker | None
    exhausted: Callable[[], bool]
    """Whether it made more requests than it may."""
    recorded: Callable[[], Awaitable[None]]
    """Waits until every request that was made is in the journal."""


class SecretInjection:
    """The broker and the redactor, as the proxy asks for them."""

    def __init__(self, broker: SecretBroker, redactor: VaultRedactor) -> None:
        self._broker, self._redactor = broker, redactor

    @property
    def placeholders(self) -> Mapping[str, str]:
        return self._broker.placeholders

    def resolve(self, name: str, place: str) -> str | None:
        return self._broker.resolve(name, place)

    def stream(self, names: Sequence[str]) -> Stream:
        return self._redactor.stream()


class RequestJournal:
    """Every request becomes an event as it ends. If one cannot be recorded, the next ends the program's network, and the
    call fails: nothing goes out that nobody will know of."""

    def __init__(self, ledger: Ledger, context: Context) -> None:
        self._ledger, self._context = ledger, context
        self._writing: list[asyncio.Task[None]] = []

    def __call__(self, request: Request) -> None:
        for task in self._writing:
            if task.done():
                task.result()
        self._writing = [task for task in self._writing if not task.done()]
        self._writing.append(asyncio.ensure_future(self._ledger.tell(self._event(request))))

    async def recorded(self) -> None:
        await asyncio.gather(*self._writing)

    def _event(self, request: Request) -> Requested:
        context = self._context
        return Requested(
            call=context.call_id, persona=context.persona, tool=context.tool, conversation=context.conversation,
            method=request.method, url=request.url, allowed=request.allowed, status=request.status,
            reason=request.reason, address=request.address, sent=request.sent, received=request.received,
            injected=list(request.injected),
        )  # fmt: skip


def open_network(
    grant: NetworkGrant, context: Context, ledger: Ledger, redactor: VaultRedactor,
    private: Sequence[str],
) -> NetworkAccess:  # fmt: skip
    check_known(redactor.vault, grant.secrets)
    broker = SecretBroker(redactor.vault, grant.secrets)
    journal = RequestJournal(ledger, context)
    if not grant.hosts:
        return NetworkAccess(None, broker, lambda: False, journal.recorded)
    from toolgate.sandbox.egress.grant import HostGrant as Hosts  # the proxy is loaded by those who use it
    from toolgate.sandbox.egress.proxy import Proxy

    egress = Proxy(
        Hosts.parse(grant.hosts, grant.methods or None),
        private=private,
        secrets=SecretInjection(broker, redactor) if grant.secrets else None,
        redact=lambda text: str(redactor.redact(text)),
        on_request=journal,
    )
    return NetworkAccess(egress, broker, lambda: egress.exhausted, journal.recorded)


def check_hosts(hosts: Sequence[str], private: Sequence[str]) -> None:
    """Refuses places that no program may reach, where that is plain from what is written."""
    if hosts:
        from toolgate.sandbox.egress.addresses import check_literal  # the proxy is loaded by those who use it

        for host in hosts:
            reach = Reach.parse(host)
            if not reach.below:
                check_literal(reach.host, reach.ports, private)


def check_known(vault: Vault | None, names: Sequence[str]) -> None:
    for name in names:
        if vault is None or vault.get(name) is None:
            known = ", ".join(vault.names() if vault is not None else ()) or "none"
            raise NotFound(
                f"there is no secret {name}",
                f"there are: {known}; a human sets it: `toolgate secrets set {name}`",
            )
