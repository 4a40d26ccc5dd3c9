"""The toolgate.yaml that `toolgate init` writes."""

from __future__ import annotations

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
