"""From a configuration to servers: where their state is kept, and what they may refer to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from toolgate.core.names import Registry
from toolgate.features.servers.config import ServerSpec, Sources
from toolgate.features.servers.filepins import FilePins
from toolgate.features.servers.gate_port import GatePort
from toolgate.features.servers.servers import Servers
from toolgate.features.servers.store import ServerStore
from toolgate.project import config, trust


def servers_of(
    specs: Mapping[str, ServerSpec], root: Path, state_dir: Path, registry: Registry, secret: Callable[[str], str | None], redact: Callable[[Any, tuple[str, ...]], Any],
    port: GatePort, files: Mapping[str, FilePins],
) -> Servers:  # fmt: skip
    store = ServerStore(state_dir / "servers" / trust.make_project_id(root))
    servers = Servers(
        specs, root, Sources(config.environment(), secret, redact), store, registry, port, files
    )
    servers.attach()
    return servers
