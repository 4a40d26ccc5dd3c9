from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from faces.cli.driving import Cli, Done
from toolgate.faces.cli.main import main
from toolgate.features.servers import streams
from toolgate.project import config, trust

from .world import a_tool, alive, define, raw


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project's directory; whatever was started for it has ended when the test has."""
    monkeypatch.setattr(streams, "GRACE", 0.2)  # programs that will not end are not waited for long
    yield tmp_path
    assert alive(str(tmp_path)) == []


YAML = """\
version: 1   # kept
default_persona: ada
personas:
  ada: {phase: contribute, allow: ["up.*"]}
"""


@pytest.fixture
def project(place: Path) -> Path:
    root = place / "shop"
    root.mkdir()
    (root / "toolgate.yaml").write_text(YAML)
    trust.trust(root, config.state_dir())
    define(place, a_tool("pid", "Give the \x1b[31mnumber.", annotations={"readOnlyHint": True}))
    entry = {key: value for key, value in raw(place).items() if key in ("command", "args", "env")}
    entry["env"]["API_KEY"] = "very-secret-value"
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"Up": entry}}))
    return root


@pytest.fixture
def cli(project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("API_KEY", "another-secret-value")

    def run(*args: str) -> Done:
        monkeypatch.chdir(project)
        capsys.readouterr()
        code = main(args)
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run
