"""A program gets placeholders, and values only where their owner said so; the proxy gets a value for its hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolgate.secrets.vault import SecretBroker, Vault


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    made = Vault(tmp_path, "p")
    made.set("HIDDEN", "hidden-value-1", ["api.example.com"])
    made.set("SHOWN", "shown-value-2", reveal=True)
    made.set("OTHER", "other-value-3", ["api.example.com"], reveal=True)
    return made


def test_a_program_holds_a_placeholder_unless_the_owner_lets_it_hold_the_value(vault: Vault) -> None:
    broker = SecretBroker(vault, ["HIDDEN", "SHOWN"])
    answer = broker.answer({"op": "secret", "name": "HIDDEN"})
    assert set(answer) == {"placeholder"}
    assert broker.placeholders[answer["placeholder"]] == "HIDDEN"
    assert answer["placeholder"].startswith("tgs_")
    assert answer["placeholder"].endswith("_HIDDEN")
    assert broker.answer({"op": "secret", "name": "SHOWN"}) == {"value": "shown-value-2"}
    assert broker.answer({"op": "list"}) == {"names": ["HIDDEN", "SHOWN"]}


def test_placeholders_of_two_jobs_are_not_the_same(vault: Vault) -> None:
    one, other = SecretBroker(vault, ["HIDDEN"]), SecretBroker(vault, ["HIDDEN"])
    assert set(one.placeholders).isdisjoint(other.placeholders)


@pytest.mark.parametrize(
    "message",
    [
        {"op": "secret", "name": "OTHER"}, {"op": "secret", "name": "NOPE"}, {"op": "secret", "name": ["OTHER"]},
        {"op": "secret"}, {"op": "set", "name": "HIDDEN", "value": "x"}, {}, {"op": None}, {"op": "secret", "name": "x" * 100_000},
    ],
)  # fmt: skip
def test_whatever_else_is_asked_gives_an_error_and_nothing_of_use(
    vault: Vault, message: dict[str, Any]
) -> None:
    answer = SecretBroker(vault, ["HIDDEN"]).answer(message)
    assert "error" in answer
    assert "value" not in answer
    assert "placeholder" not in answer
    assert len(str(answer)) < 500
    assert "other-value-3" not in str(answer)


def test_a_secret_that_was_given_and_is_gone_is_said_to_be_gone(vault: Vault) -> None:
    broker = SecretBroker(vault, ["HIDDEN"])
    vault.remove("HIDDEN")
    assert broker.answer({"op": "secret", "name": "HIDDEN"})["error"] == "there is no secret HIDDEN"
    assert broker.resolve("HIDDEN", "api.example.com") is None
    assert "error" in SecretBroker(None, ["HIDDEN"]).answer({"op": "secret", "name": "HIDDEN"})


def test_the_proxy_gets_a_value_only_for_a_host_it_is_for_and_a_name_that_was_given(vault: Vault) -> None:
    broker = SecretBroker(vault, ["HIDDEN", "SHOWN"])
    assert broker.resolve("HIDDEN", "api.example.com:443") == "hidden-value-1"
    assert broker.resolve("HIDDEN", "evil.org") is None
    assert broker.resolve("SHOWN", "api.example.com") is None, "it names no host"
    assert broker.resolve("OTHER", "api.example.com") is None, "it was not given"
