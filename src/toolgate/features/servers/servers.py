"""All servers of one gate: which tools stand in its registry, which are held, and who approved what."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from toolgate.core.annotations import Field
from toolgate.core.clock import iso
from toolgate.core.errors import CallError, Conflict, NotFound, SetupError, UnknownTool
from toolgate.core.names import Registry
from toolgate.core.tool import Tool, tool
from toolgate.feature import FeatureContext
from toolgate.features.servers.active_calls import ServersPort
from toolgate.features.servers.config import ServerSpec, Sources
from toolgate.features.servers.definitions import (
    ServerListing,
    ServerStore,
    Stamp,
    ToolPins,
    difference,
    summary,
)
from toolgate.features.servers.filepins import ABSENT, FilePins
from toolgate.features.servers.server import UpstreamServer
from toolgate.features.servers.tools import enters, imported, reading_tools, stub
from toolgate.project import config, trust

log = logging.getLogger("toolgate.upstream")
LOOK_SECONDS = 0.1
"""Two changes within one tick of the file system's clock look like one, so the files are looked at again anyway."""
CHANGED = "its definition is not the one that was approved"
NEW = "nobody has approved this tool yet"
MOVED = "the server is started or reached in another way than when its tools were approved"
GONE = "the server no longer lists it"
FILES = "+files:"
"""Between the hash of a definition and that of the files, in what is shown to be approved."""
MOST_TOLD = 50
Name = Annotated[str, Field(max_length=256, description="The server, by its name in toolgate.yaml.")]
Shown = Annotated[
    dict[str, str],
    Field(description="The hash of each definition as it was shown, by the tool's name; empty forgets it."),
]
By = Annotated[str, Field(max_length=256, description="Who approves.")]
Channel = Annotated[str, Field(max_length=256, description="Where it was approved.")]


class Servers:
    """Made by the composition root; the tools it puts into the registry start a server when they are called."""

    def __init__(
        self, specs: Mapping[str, ServerSpec], root: Path, sources: Sources, store: ServerStore,
        registry: Registry, port: ServersPort, files: Mapping[str, FilePins] | None = None,
    ) -> None:  # fmt: skip
        self._store = store
        self._registry = registry
        self._all = {
            name: UpstreamServer(name, spec, root, sources, store, self._look_again, port)
            for name, spec in specs.items()
        }
        self._files = files or {}
        for name, server in self._all.items():
            server.unchanged = partial(self.other_files, name)
        self._directory: Stamp = None
        self._looked_at = 0.0
        self._stamps: dict[str, tuple[Stamp, Stamp]] = {}
        self._listings: dict[str, ServerListing] = {}
        self._pins: dict[str, ToolPins] = {}
        self._held: dict[str, str] = {}
        """Why, by the tool's full name."""
        self._standing: dict[str, dict[str, str]] = {name: {} for name in specs}
        """What stands in the registry: full name to the hash it was made from."""
        self._clashes: dict[str, dict[str, str]] = {name: {} for name in specs}

    def attach(self) -> None:
        """Put what is known into the registry. Starts nothing."""
        self._registry.add(self._approving())
        self.refresh()
        self._registry.refresh = self.refresh
        self._registry.late = self._late

    # --- which tools there are ----------------------------------------------------------------------------

    def refresh(self) -> None:
        """Notice what other processes approved or listed. Mostly one look at a directory: it is asked for every call."""
        now, directory = time.monotonic(), self._store.changed()
        if directory == self._directory and now - self._looked_at < LOOK_SECONDS:
            return
        self._directory, self._looked_at = directory, now
        for name in self._all:
            stamps = self._store.stamp(name)
            if self._stamps.get(name) != stamps:
                self._stamps[name] = stamps
                self._sync(name)

    def _look_again(self, name: str) -> None:
        self._stamps.pop(name, None)
        self._looked_at = 0.0
        self.refresh()

    def _sync(self, name: str) -> None:
        server = self._all[name]
        try:
            listing, pins = self._store.listing(name), self._store.pins(name)
        except CallError as error:
            log.warning("%s", error.message)
            listing, pins = ServerListing(), ToolPins()
        pins = self._first(server, listing, pins)
        self._listings[name], self._pins[name] = listing, pins
        wanted = self._wanted(server, listing, pins) if server.spec.enabled else {}
        standing = self._standing[name]
        for full in [full for full, made in standing.items() if wanted.get(full, ("", None))[0] != made]:
            self._registry.remove(full)
            del standing[full]
        self._clashes[name] = {}
        for full, (made, build) in wanted.items():
            if full not in standing:
                self._add(name, full, made, build)

    def _first(self, server: UpstreamServer, listing: ServerListing, pins: ToolPins) -> ToolPins:
        """`pin: first` approves the first listing, once."""
        if server.spec.pin != "first" or pins.tools or pins.launch or not listing.launch:
            return pins
        if listing.launch != server.spec.launch:
            return pins
        about = {local: _signed("toolgate.yaml (pin: first)", "file") for local in listing.good}
        files = self._files.get(server.name)
        made = ToolPins(listing.launch, dict(listing.good), about, files.snapshot().files if files else {})
        self._store.save_pins(server.name, made)
        return made

    def _wanted(
        self, server: UpstreamServer, listing: ServerListing, pins: ToolPins
    ) -> dict[str, tuple[str, Callable[[], Tool]]]:
        found: dict[str, tuple[str, Callable[[], Tool]]] = {}
        for local in sorted({*listing.good, *pins.tools}):
            seen, pinned = listing.good.get(local), pins.tools.get(local)
            one = pinned or seen
            if one is None or not enters(server.spec, one.name):
                continue
            full = f"{server.name}.{local}"
            self._held[full] = _why(server.spec, listing, pins, local)
            if pinned is not None:
                found[full] = (pinned.digest, partial(imported, server, local, pinned, self._holder(full)))
            else:
                found[full] = ("", partial(stub, server, local, self._holder(full)))
        approved = bool(pins.tools) and pins.launch == server.spec.launch
        ours = reading_tools(server, listing.facts) if approved else []
        if approved and server.spec.sampling != "deny":
            ours.append(server.samplings.tool())
        for made in ours:
            found.setdefault(made.name, (made.definition, lambda made=made: made))  # type: ignore[misc]
        return found

    def _holder(self, full: str) -> Callable[[], str]:
        def held() -> str:
            self.refresh()
            return self._held.get(full, GONE)

        return held

    def _add(self, name: str, full: str, made: str, build: Callable[[], Tool]) -> None:
        """A tool that cannot enter is this tool's problem alone."""
        try:
            self._registry.add(build())
        except (SetupError, CallError) as error:
            self._clashes[name][full] = error.message
            log.warning("%s does not enter: %s", full, error.message)
            return
        self._standing[name][full] = made

    async def _late(self, called: str) -> bool:
        """A name that nobody knows, of a server that may be asked and has not been."""
        name = _server_of(called)
        server = self._all.get(name)
        if server is None or (self._listings[name].launch and server.spec.enabled):
            return False
        if not server.spec.enabled:
            raise UnknownTool(f"the server {name} is disabled", "set `enabled: true` in toolgate.yaml")
        if server.spec.pin != "first":
            fix = f"a human looks at them and approves them: `toolgate servers approve {name}`"
            raise UnknownTool(f"the tools of the server {name} are not known yet", fix)
        await self.discover(name)
        return True

    async def discover(self, name: str = "") -> None:
        """Ask a server, or all whose tools are not known yet, what it offers. Each failure is its own."""
        if name:
            server = self._server(name)
            if not await asyncio.to_thread(self.other_files, name):  # else a human must see them first
                await server.ready()
            return
        asked = [
            one for one in self._all.values() if one.spec.enabled and not self._listings[one.name].launch
        ]
        await asyncio.gather(*(one.ready() for one in asked), return_exceptions=True)

    # --- for people ---------------------------------------------------------------------------------------

    def status(self) -> list[dict[str, Any]]:
        """Every server: state, health, tools, what is held and why. Starts nothing."""
        self.refresh()
        return [self._status(name) for name in self._all]

    def other_files(self, name: str) -> str:
        """Why it is not started although it was approved: it would be another program."""
        files, pins = self._files.get(name), self._store.pins(name)
        if files is None or not pins.tools or pins.launch != self._all[name].spec.launch:
            return ""  # what nobody has approved is started only for a human who looks at it
        return files.check(pins.files)

    def _status(self, name: str) -> dict[str, Any]:
        listing, pins = self._listings[name], self._pins[name]
        other = self.other_files(name)
        standing = {full: self._held.get(full, "") or other for full in self._standing[name]}
        state = self._all[name].describe()
        state["elsewhere"] = self._store.running(name)
        if state["state"] == "idle" and not listing.launch:
            state["state"] = "unseen"
        return {
            **state,
            "tools": sorted(full for full, why in standing.items() if not why),
            "held": {full: why for full, why in standing.items() if why},
            "refused": {**listing.bad, **self._clashes[name]},
            "approved": {local: dict(about) for local, about in pins.about.items()},
            "moved": bool(pins.tools) and pins.launch != self._all[name].spec.launch,
            "says": listing.facts,
        }

    def diff(self, name: str) -> list[dict[str, str]]:
        """What a human must see before approving: per tool why it is held, what changed, and the hash of it."""
        self._server(name)
        self.refresh()
        listing, pins = self._listings[name], self._pins[name]
        spec = self._all[name].spec
        other, files = self.other_files(name), self._files_now(name)
        found = []
        for local in sorted({*listing.good, *pins.tools}):
            seen, pinned = listing.good.get(local), pins.tools.get(local)
            if not enters(spec, (seen or pinned).name):  # type: ignore[union-attr]
                continue
            why = _why(spec, listing, pins, local) or other
            if why:
                # what is approved is both: what it says of the tool, and the files that it is started from
                digest = (seen.digest if seen is not None else "") + files
                told = {"summary": summary(seen), "approved": local if pinned is not None else ""}
                found.append(
                    {"tool": local, "why": why, "diff": difference(pinned, seen), "definition": digest} | told
                )
        return found

    def definition(self, full: str) -> Mapping[str, Any] | None:
        """What the server said of an approved tool (title, annotations, output schema), as it said it."""
        name, _, local = full.partition(".")
        pins = self._pins.get(name)
        found = pins.tools.get(local) if pins is not None else None
        return found.raw if found is not None else None

    async def check(self, name: str, seconds: float) -> float:
        """Start it if need be and ask whether it answers; the milliseconds it took."""
        async with asyncio.timeout(seconds):
            connection = await self._server(name).ready()
            return await connection.ping(seconds)

    async def subscribe(self, name: str, uri: str, tell: Callable[[], None]) -> Callable[[], Awaitable[None]]:
        """Hear when a resource changes. What comes back ends that, whether or not it is waited for."""
        server = self._server(name)
        connection = await server.ready()
        await server.subscriptions.join(connection, uri, tell)
        return lambda: asyncio.shield(server.beside(server.subscriptions.leave(uri, tell)))

    async def restart(self, name: str) -> None:
        await self._server(name).restart()

    async def close(self) -> None:
        """Every server ends, all at once."""
        await asyncio.gather(*(one.close() for one in self._all.values()), return_exceptions=True)

    def _server(self, name: str) -> UpstreamServer:
        if name not in self._all:
            known = ", ".join(self._all) or "none"
            raise NotFound(f"there is no server {name!r}", f"toolgate.yaml has: {known}")
        return self._all[name]

    # --- approving ----------------------------------------------------------------------------------------

    def _approving(self) -> Tool:
        @tool("servers.approve", reads=["tools"], writes=["outside"], human=True, risk="high")
        async def approve(
            server: Name, tools: Shown, by: By = "", channel: Channel = "library"
        ) -> dict[str, Any]:
            """Approve definitions of a server's tools: each by its name and the hash of what was shown."""
            return self._approve(server, tools, by, channel)

        return approve

    def _approve(self, name: str, shown: Mapping[str, str], by: str, channel: str) -> dict[str, Any]:
        spec = self._server(name).spec
        listing, pins = self._store.listing(name), self._store.pins(name)
        if listing.launch != spec.launch:
            raise Conflict(f"{name} has not been asked since toolgate.yaml changed", "look at it again first")
        if pins.launch != spec.launch:
            pins = ToolPins(spec.launch)  # whatever was approved was approved for another program
        pins.files = self._approved_files(name, shown.values())
        for local, text in shown.items():
            digest = text.partition(FILES)[0]
            seen = listing.good.get(local)
            if seen is None and not digest:
                pins.tools.pop(local, None)  # a tool that is gone is forgotten
                pins.about.pop(local, None)
                continue
            if seen is None or seen.digest != digest:
                raise Conflict(
                    f"{name}.{local} is not what was shown any more", "look at the difference again"
                )
            pins.tools[local], pins.about[local] = seen, _signed(by, channel)
        self._store.save_pins(name, pins)
        self._look_again(name)
        return {
            "server": name, "approved": sorted(shown), "launch": spec.launch, "files": sorted(pins.files)[:MOST_TOLD]
        }  # fmt: skip

    def files(self, name: str) -> list[str]:
        """The files in mounts that it is started from, as far as they are there and their content is approved."""
        files = self._files.get(name)
        found = files.snapshot().files if files is not None else {}
        return sorted(path for path, digest in found.items() if digest != ABSENT)

    def _files_now(self, name: str) -> str:
        files = self._files.get(name)
        return f"{FILES}{found}" if files is not None and (found := files.snapshot().digest) else ""

    def _approved_files(self, name: str, shown: Iterable[str]) -> dict[str, str]:
        """The files as they are, if they are those that were shown."""
        files = self._files.get(name)
        if files is None:
            return {}
        now = files.approvable()
        if any(text.partition(FILES)[2] != now.digest for text in shown):
            raise Conflict(
                f"the files that {name} is started from are not what was shown any more", "look at it again"
            )
        return now.files


def _why(spec: ServerSpec, listing: ServerListing, pins: ToolPins, local: str) -> str:
    seen, pinned = listing.good.get(local), pins.tools.get(local)
    if pinned is None:
        return NEW
    if pins.launch != spec.launch:
        return MOVED
    if listing.launch != spec.launch:
        return ""  # not asked since; it is asked before anything is sent to it
    if seen is None:
        return f"{GONE}: {listing.bad[local]}" if local in listing.bad else GONE
    return CHANGED if seen.digest != pinned.digest else ""


def _signed(by: str, channel: str) -> dict[str, Any]:
    return {"by": by, "channel": channel, "at": iso(round(time.time() * 1_000_000))}


def _server_of(called: str) -> str:
    plain = called.removeprefix("archon.").removeprefix("mcp__")
    for mark in (".", "/", "__", "_"):
        if mark in plain:
            return plain.partition(mark)[0]
    return ""


def open_servers(context: FeatureContext) -> Servers:
    services = context.services

    def secret(name: str) -> str | None:
        kept = context.vault.get(name) if context.vault is not None else None
        return kept.value if kept is not None else None

    store = ServerStore(config.state_dir() / "servers" / trust.make_project_id(context.root))
    sources = Sources(config.environment(), secret, services.redactor.redact)
    port = ServersPort(context.gate.call, services.ledger.tell)
    servers = Servers(
        context.config, context.root, sources, store, services.registry, port, context.held or {}
    )
    servers.attach()
    context.stack.push_async_callback(servers.close)
    return servers
