"""The tools and policies that the policy tests speak about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolgate.core.decision import Decision
from toolgate.core.effects import Effects
from toolgate.core.names import Registry
from toolgate.core.paths import MountPath
from toolgate.core.ports import Facts
from toolgate.core.tool import Tool, tool
from toolgate.policy.explain import facts_from
from toolgate.policy.model import ExampleCall
from toolgate.policy.policy import Policy
from toolgate.project.config import Config


def _nothing() -> None:
    """Does nothing."""


def _path(path: MountPath) -> None:
    """Takes one path."""


def _save(path: MountPath, content: str = "") -> None:
    """Writes one path."""


def _paths(paths: list[MountPath]) -> None:
    """Takes several paths."""


def _move(source: MountPath, target: MountPath) -> None:
    """Takes two paths."""


def _search(pattern: str, paths: list[MountPath] | None = None, max_matches: int = 100) -> None:
    """Searches."""


def _python(
    code: str = "", network: bool | list[str] = False, project: bool = False, secrets: list[str] | None = None
) -> None:
    """Runs a program."""


def _request(url: str, method: str = "GET") -> None:
    """Asks a host."""


def _sql(sql: str, database: str = "staging") -> None:
    """Asks a database."""


def _push(branch: str, force: bool = False, remote: str = "origin") -> None:
    """Pushes."""


def _text(text: str = "") -> None:
    """Takes a text."""


def _python_effects(args: Mapping[str, Any]) -> Effects:
    reads = [word for word, on in (("internet", args.get("network")), ("project", args.get("project"))) if on]
    return Effects.of([*reads, *(["secrets"] if args.get("secrets") else [])], ["process"])


TOOLS: tuple[Tool, ...] = (
    tool("tools.list", reads=["tools"], free=True)(_nothing),
    tool("code.read", reads=["project"])(_path),
    tool("code.search", reads=["project"])(_search),
    tool("fs.read", reads=["project"])(_path),
    tool("fs.write", writes=["project"])(_save),
    tool("fs.patch", writes=["project"])(_paths),
    tool("fs.move", writes=["project"])(_move),
    tool("fs.delete", writes=["project"], risk="high")(_path),
    tool("fs.save", writes=["scratch"])(_save),
    tool("code.create_test", writes=["branch"])(_save),
    tool("exec.python", writes=["process"], effects_of=_python_effects)(_python),
    tool("git.commit", writes=["history"])(_text),
    tool("git.push", writes=["history", "internet"])(_push),
    tool("http.get", reads=["internet"])(_request),
    tool("http.request", reads=["internet"], writes=["internet"])(_request),
    tool("db.query", reads=["database"])(_sql),
    tool("db.execute", reads=["database"], writes=["database"])(_sql),
    tool("ai.ask", reads=["model"], writes=["model"])(_text),
    tool("web.search", reads=["search"])(_text),
    tool("events.log", writes=["ledger"])(_text),
    tool("memory.store", writes=["memory"])(_text),
    tool("memory.recall", reads=["memory"])(_text),
    tool("garden.search", reads=["garden"])(_text),
    tool("md.patch_section", writes=["garden"])(_save),
    tool("secrets.use", reads=["secrets"])(_text),
    tool("system.ping")(_nothing),
    tool("system.screenshot", reads=["system"], phase="experiment")(_nothing),
    tool("robot.arm", writes=["outside"])(_nothing),
    replace(tool("github.list_issues", reads=["outside"])(_text), origin="imported"),
    replace(tool("github.create_issue", reads=["outside"], writes=["outside"])(_text), origin="imported"),
)
REGISTRY = Registry(TOOLS)
facts_for = facts_from(REGISTRY)


def facts(tool: str, args: Mapping[str, Any] | None = None, persona: str = "p", **more: Any) -> Facts:
    return replace(facts_for(ExampleCall(tool=tool, args=dict(args or {}), persona=persona)), **more)


def config(**sections: Any) -> Config:
    return Config.from_dict({"version": 1, **sections})


def policy(trusted: bool = True, **sections: Any) -> Policy:
    return config(**sections).policy(trusted=trusted)


def one(
    tool: str,
    args: Mapping[str, Any] | None = None,
    *,
    persona: Mapping[str, Any] | None = None,
    rules: list[dict[str, Any]] | None = None,
    **sections: Any,
) -> Decision:
    """The decision for a single persona `p` under the given rules."""
    made = policy(personas={"p": persona or {}}, policy={"rules": rules or []}, **sections)
    return made.decide(facts(tool, args))
