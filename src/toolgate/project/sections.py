"""Models of the sections of toolgate.yaml that belong to no feature: ledger, consent, budgets, time-outs, cache, images,
MCP, HTTP; and the file that `toolgate init` writes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from toolgate.policy.model import Strict

Count = Annotated[int, Field(ge=1, le=100_000, strict=True)]
Wait = Annotated[float, Field(gt=0, le=3600, strict=True)]
Seconds = Annotated[float, Field(gt=0, le=31_536_000, strict=True)]
Flag = Annotated[bool, Field(strict=True)]
ToolGlobs = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=256)], ...], Field(max_length=1000)]
Profile = Literal["minimal", "code", "full"] | ToolGlobs


class LedgerSpec(Strict):
    database: Annotated[str, Field(pattern=r"^postgres(ql)?://")] | None = None
    """Absent: SQLite in `.toolgate/`."""
    key_file: str | None = None
    """Absent: in the user's state directory."""


class NotifySpec(Strict):
    """Absent: nobody is told outside the channels themselves."""

    webhook: Annotated[str, Field(pattern=r"^https?://\S+$", max_length=2048)] | None = None
    desktop: Flag = False


class ConsentSpec(Strict):
    expires_s: Seconds = 900
    max_open: Annotated[int, Field(ge=1, le=1000, strict=True)] = 25
    """Open questions per persona."""
    unattended: Flag = False
    """Nobody answers here: what would be asked is refused at once."""
    mcp: Flag = True
    """Whether the user of an MCP client may answer in it; the client vouches that a person did."""
    notify: NotifySpec = NotifySpec.model_construct()


class McpSpec(Strict):
    """What MCP clients are shown and sent. Showing is not permission."""

    profile: Profile = "code"
    """Which tools are listed: a profile by its name, or names and globs of tools."""
    personas: dict[str, Profile] = Field(default_factory=dict)
    """The profiles of personas that have one of their own."""
    list: Literal["auto", "all", "find"] = "auto"
    """Whether all of them are listed, or a few and `tools.find`; auto: by how many there are."""
    structured: Literal["never", "auto", "always"] = "auto"
    """Whether output schemas and structured content are sent beside the text; auto: to clients that ask for it."""
    names: Literal["plain", "dotted"] = "plain"
    """`fs_read` or `fs.read`; both are understood."""


class BudgetSpec(Strict):
    """How large a result may be."""

    tokens: Annotated[int, Field(ge=100, le=10_000_000, strict=True)] = 25_000
    bytes: Annotated[int, Field(ge=1000, le=1 << 30, strict=True)] = 1_000_000


class TimeoutsSpec(Strict):
    default_s: Seconds = 30.0
    """For tools that name none of their own."""
    max_s: Seconds = 600.0
    tool: dict[str, Seconds] = Field(default_factory=dict)


class CacheSpec(Strict):
    """Results of reads that may be served again."""

    bytes: Annotated[int, Field(ge=0, le=1 << 32, strict=True)] = 32 << 20
    """For all of them, in memory, in each process; 0 keeps none."""
    watch: Flag = True
    """Whether trees are watched, so that searches and listings of them can be served too."""


class ImagesSpec(Strict):
    """Contents of changed files, kept for undo and recovery. Each persona has a budget of its own."""

    total_bytes: Annotated[int, Field(ge=1 << 20, le=1 << 50, strict=True)] = 1 << 30
    persona_bytes: Annotated[int, Field(ge=1 << 16, le=1 << 50, strict=True)] | None = None
    """Of one persona. Absent: equal shares of the whole for the personas and the human."""
    keep_days: Annotated[int, Field(ge=1, le=3650, strict=True)] = 30
    """How long a change that a human was asked about keeps its images, whatever else is written."""
    full: Literal["warn", "refuse"] = "warn"
    """What becomes of a change that does not fit: it runs and says that it cannot be undone, or it is refused."""
    change_bytes: Annotated[int, Field(ge=1 << 10, le=1 << 40, strict=True)] = 256 << 20
    """A change that needs more is refused."""


class HttpSpec(Strict):
    """How much of the server one client may take."""

    connections: Count = 1000
    """Of all personas together."""
    reserved: Annotated[int, Field(ge=16, le=10_000, strict=True)] = 200
    """As many more for the human alone, and as many for connections that have not shown a token yet."""
    address_connections: Annotated[int, Field(ge=16, le=100_000, strict=True)] = 400
    """From one address that have not shown a token; the oldest of them goes."""
    persona_connections: Count = 200
    """Of one persona."""
    persona_streams: Count = 32
    """Of one persona: event streams, and streams and subscriptions of MCP."""
    persona_sessions: Count = 100
    """MCP sessions of one persona."""
    header_s: Wait = 10.0
    """For the whole of a request's head, and for the next one on a connection on which no token was shown."""
    body_s: Wait = 30.0
    """For a body, and as much more as it needs at 16 KiB a second."""
    idle_s: Wait = 75.0
    """A connection without a request. Clients keep theirs for 5 to 60: whoever lets go first, it should not be the server,
    or a call that is sent at that moment is lost on its way."""
    write_s: Wait = 20.0
    """A reader who takes less than 16 KiB a second for so long, where something waits for it, is dropped."""
    header_bytes: Annotated[int, Field(ge=4096, le=1 << 20, strict=True)] = 32 << 10
    body_bytes: Annotated[int, Field(ge=4096, le=8 << 20, strict=True)] = 8 << 20


DEFAULT_YAML = """\
# What agents may do here. No tool can write this file; `toolgate policy check` says whether it is right,
# `toolgate policy explain` why a call is decided as it is. docs/policy.md has all of it.
version: 1

# Whose calls they are when nobody says.
default_persona: reviewer

# Directories that tools may see. `project` and `scratch` are always there. Blocked names (.env*, keys,
# credentials, .git, .toolgate) stay shut; `unblock: [.env.example]` opens one of them.
mounts:
  project: {path: .}
  # garden: {path: garden}        # a Markdown memory; then `toolgate garden init`: docs/garden.md

# Who asks. Phases: observe reads, experiment also runs sandboxed programs, contribute also proposes changes of
# files, collaborate also what your own tools do to a history. What a phase does not allow is asked or denied.
personas:
  reviewer:
    description: reads and reports, changes nothing
    phase: observe
  builder:
    description: writes code; every change of the project is put to a human first
    phase: contribute
    deny: [fs.delete]
    # allow: [exec.python]        # without asking, whatever the program may reach
    # mounts: [project, scratch]  # the default
    # parent: reviewer            # a subagent: never gets more than its parent

# Programs run in a sandbox without network, secrets or project, unless their call asks for more: docs/tools-exec.md.
# sandbox:
#   python: .venv                                # the project's own environment: found by itself, false for none
#   packages: [numpy]                            # what `exec.python` may import beyond the standard library
#   network: {private: ["127.0.0.1:8000"]}       # places on this machine that a network grant may name

# Other MCP servers, behind this gate; `toolgate import .mcp.json` takes them from a client's file: docs/servers.md.
# servers:
#   weather: {command: npx, args: [-y, weather-mcp]}   # `sampling: ask` lets it use the client's model, each time a human agrees

# Models for `toolgate run`, `chat` and `room`; `key: NAME` names a secret, where one is needed: docs/agents.md.
# models:
#   local: {kind: openai, model: qwen3, base_url: "http://127.0.0.1:11434/v1"}

# Sliding windows. `roomy` stops runaway loops only; `strict` is 10 calls a minute per persona.
limits:
  profile: roomy
  # tool: {code.search: {per_minute: 60}}
  # writes: {project: {per_hour: 20}}   # by effect, whatever the tools are called

# Questions to humans expire; then the call is refused.
consent:
  expires_s: 900

# Before the phases: any matching deny, else any matching ask, else any matching allow.
# `toolgate policy test` runs the examples beside the rules.
policy:
  rules:
    - name: deployment-is-for-people
      tools: ["fs.*"]
      effects: {writes: [project]}
      when: {path: ["deploy/**", ".github/**"]}
      decision: deny
      reason: deployment files are edited by people
    - name: source-changes-are-reviewed
      persona: builder
      tools: ["fs.*"]
      effects: {writes: [project]}
      when: {path: "src/**"}
      decision: ask
      reason: source changes are reviewed
"""
