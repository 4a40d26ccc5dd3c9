"""From a configuration to servers: where their state is kept, and what they may refer to."""

from __future__ import annotations

from toolgate.feature import FeatureContext
from toolgate.features.servers.config import Sources
from toolgate.features.servers.gate_port import GatePort
from toolgate.features.servers.servers import Servers
from toolgate.features.servers.store import ServerStore
from toolgate.project import config, trust


def open_servers(context: FeatureContext) -> Servers:
    services = context.services

    def secret(name: str) -> str | None:
        kept = context.vault.get(name) if context.vault is not None else None
        return kept.value if kept is not None else None

    store = ServerStore(config.state_dir() / "servers" / trust.make_project_id(context.root))
    sources = Sources(config.environment(), secret, services.redactor.redact)
    port = GatePort(context.gate.call, services.ledger.tell)
    servers = Servers(
        context.config, context.root, sources, store, services.registry, port, context.held or {}
    )
    servers.attach()
    context.stack.push_async_callback(servers.close)
    return servers
