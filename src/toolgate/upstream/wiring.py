"""From a configuration to servers: where their state is kept, and what of the environment they may refer to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from toolgate import config, trust
from toolgate.core.names import Registry
from toolgate.serverspec import ServerSpec
from toolgate.upstream.servers import Servers
from toolgate.upstream.store import Store


def servers_of(specs: Mapping[str, ServerSpec], root: Path, state_dir: Path, registry: Registry) -> Servers:
    store = Store(state_dir / "servers" / trust.make_project_id(root))
    servers = Servers(specs, root, config.environment(), store, registry)
    servers.attach()
    return servers
