from __future__ import annotations

import pytest
from policy_world import policy

from toolgate.core.errors import ConfigError, NotAllowed
from toolgate.core.ports import Window


def found(windows: tuple[Window, ...]) -> dict[str, list[tuple[int, float]]]:
    scopes: dict[str, list[tuple[int, float]]] = {}
    for window in windows:
        scopes.setdefault(window.scope, []).append((window.limit, window.seconds))
    return scopes


def test_the_strict_profile_has_the_small_numbers() -> None:
    made = policy(personas={"p": {}}, limits={"profile": "strict"})
    assert found(made.windows("p", "code.search")) == {
        "global": [(100, 60.0), (2000, 3600.0)],
        "persona/p": [(3, 18.0), (10, 60.0), (200, 3600.0)],
        "tool/p/code.search": [(3, 60.0)],
    }


def test_without_limits_the_roomy_profile_holds_without_tool_limits_or_burst() -> None:
    made = policy(personas={"p": {}})
    assert found(made.windows("p", "code.search")) == {
        "global": [(3000, 60.0), (60_000, 3600.0)],
        "persona/p": [(1200, 60.0), (30_000, 3600.0)],
    }


def test_a_persona_overrides_the_usual_limits_field_by_field() -> None:
    made = policy(
        personas={"p": {"limits": {"per_minute": 20}}, "q": {}},
        limits={"profile": "roomy", "persona": {"per_hour": 500, "burst": 2}},
    )
    assert found(made.windows("p", "fs.read"))["persona/p"] == [(2, 6.0), (20, 60.0), (500, 3600.0)]
    assert found(made.windows("q", "fs.read"))["persona/q"] == [(2, 0.1), (1200, 60.0), (500, 3600.0)]


def test_a_burst_as_large_as_the_minute_adds_no_window() -> None:
    made = policy(personas={"p": {"limits": {"per_minute": 3, "burst": 3}}}, limits={"profile": "strict"})
    assert found(made.windows("p", "fs.read"))["persona/p"] == [(3, 60.0), (200, 3600.0)]


def test_a_tool_glob_gives_the_tools_it_matches_one_shared_window() -> None:
    made = policy(personas={"p": {}}, limits={"profile": "roomy", "tool": {"exec.*": {"per_minute": 4}}})
    shell, python = made.windows("p", "exec.shell"), made.windows("p", "exec.python")
    assert found(shell)["tool/p/exec.*"] == found(python)["tool/p/exec.*"] == [(4, 60.0)]
    assert "tool/p/exec.*" not in found(made.windows("p", "fs.read"))


def test_a_subagents_calls_count_for_its_parents_too() -> None:
    made = policy(
        personas={"boss": {"limits": {"per_minute": 5}}, "p": {"parent": "boss"}},
        limits={"profile": "strict"},
    )
    windows = found(made.windows("p", "code.read"))
    assert (5, 60.0) in windows["persona/boss"]
    assert {"persona/p", "tool/boss/code.read", "tool/p/code.read", "global"} <= set(windows)


def test_a_burst_without_a_rate_is_refused() -> None:
    with pytest.raises(ConfigError, match="`burst` needs `per_minute`"):
        policy(personas={"p": {}}, limits={"tool": {"fs.read": {"burst": 2}}})


def test_an_unknown_persona_has_no_windows() -> None:
    with pytest.raises(NotAllowed):
        policy(personas={"p": {}}).windows("q", "fs.read")


def test_a_limit_by_effect_is_shared_by_all_tools_that_have_it_and_named_by_its_setting() -> None:
    made = policy(
        personas={"p": {"limits": {"writes": {"project": {"per_minute": 2}}}}, "q": {"parent": "p"}},
        limits={"writes": {"project": {"per_hour": 20}, "internet": {"per_hour": 5}}},
    )
    edit = made.windows("p", "fs.edit", ("project",))
    assert (
        found(edit)["writes/p/project"]
        == found(made.windows("p", "fs.write", ("project",)))["writes/p/project"]
    )
    assert {window.name for window in edit if window.scope.startswith("writes/")} == {
        "personas.p.limits.writes.project.per_minute",
        "limits.writes.project.per_hour for p",
    }
    assert {"writes/p/internet", "writes/q/internet"} <= set(
        found(made.windows("q", "t.post", ("internet",)))
    )
    assert not [scope for scope in found(made.windows("p", "fs.read")) if scope.startswith("writes/")]


@pytest.mark.parametrize("where", ["limits", "personas"])
def test_a_limit_of_an_effect_that_there_is_not_is_refused(where: str) -> None:
    rates = {"writes": {"projects": {"per_hour": 20}}}
    with pytest.raises(ConfigError, match="'projects' is not an effect"):
        policy(
            personas={"p": {"limits": rates} if where == "personas" else {}},
            limits=rates if where == "limits" else {},
        )


def test_a_burst_of_an_effect_without_its_rate_is_refused_at_its_place() -> None:
    with pytest.raises(ConfigError, match=r"personas\.p\.limits\.writes\.project\.burst"):
        policy(personas={"p": {"limits": {"writes": {"project": {"burst": 2}}}}})
