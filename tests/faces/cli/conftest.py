from __future__ import annotations

from pathlib import Path

import pytest

from toolgate.project import config, trust

POLICY = """\
version: 1
default_persona: builder
personas:
  reader: {phase: observe}
  builder: {phase: contribute}
  hasty: {phase: observe, limits: {per_minute: 1}}
plugins: ["toolgate.faces.cli.demo_tools:toolset", "./more.py"]
policy:
  rules:
    - {name: reviewed, persona: builder, tools: [notes.append], decision: ask, reason: it is reviewed}
    - {name: elsewhere, persona: builder, tools: [more.post], decision: ask, reason: not here, channels: [console]}
    - name: no-deploy
      tools: ["notes.*"]
      when: {path: "deploy/**"}
      decision: deny
      reason: people deploy
      examples:
        - {call: {tool: notes.append, args: {path: deploy/a, text: x}, persona: builder}, expect: deny}
"""
MORE = '''\
import asyncio
from toolgate import tool
from toolgate.core.errors import UnknownOutcome

def toolset(services):
    @tool("more.fail", reads=["system"])
    async def fail(message: str) -> str:
        """Always fails."""
        raise ValueError(message)

    @tool("more.echo", reads=["system"])
    async def echo(text: str) -> str:
        """Says it again."""
        return text

    @tool("more.post", writes=["internet"])
    async def post(text: str) -> str:
        """Sends it away."""
        return text

    @tool("more.lose", reads=["system"], writes=["memory"])
    async def lose() -> str:
        """Nobody knows how it ends."""
        raise UnknownOutcome("the line went dead", "look on the other side")

    @tool("more.hang", writes=["memory"])
    async def hang(said: str) -> str:
        """Says that it runs, and runs on."""
        with open(said, "w") as pipe:
            pipe.write("running")
        await asyncio.sleep(60)

    return [fail, echo, post, lose, hang]
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A trusted project with a note, two toolsets and a policy."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "toolgate.yaml").write_text(POLICY)
    (root / "more.py").write_text(MORE)
    (root / "hours.md").write_text("9 to 17\n")
    trust.trust(root, config.state_dir())
    return root
