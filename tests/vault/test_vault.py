"""The vault keeps what it was given, wherever it keeps it; nobody else can read it, and nobody can change it unseen."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backends import fail, null

from toolgate.core.errors import InvalidArgs, NotFound, Unavailable
from toolgate.secrets.vault import LONGEST, MANY, Vault
from toolgate.secrets.vault_stores import trustworthy, usable_keyring

from .corpus import VALUES
from .keyrings import MemoryKeyring

SETTER = Path(__file__).with_name("setter.py")


@pytest.fixture
def memory() -> Iterator[MemoryKeyring]:
    before = keyring.get_keyring()
    made = MemoryKeyring()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


@pytest.fixture(params=["file", "keyring"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "keyring":
        request.getfixturevalue("memory")
    return tmp_path


def opened(state: Path, project: str = "p") -> Vault:
    vault = Vault(state, project)
    vault.refresh()
    return vault


# --- one contract for every store ------------------------------------------------------------------------------


def test_every_value_comes_back_as_it_was_with_what_it_may_be_used_for(state: Path) -> None:
    vault = opened(state)
    for name, value in VALUES.items():
        assert vault.set(name, value, ["Api.Example.com", "*.b.org:8080"], reveal=name == "GITHUB") is False
    again = opened(state)
    assert again.names() == sorted(VALUES)
    for name, value in VALUES.items():
        kept = again.need(name)
        assert kept.value == value
        assert kept.hosts == ("api.example.com", "*.b.org:8080")
        assert kept.reveal is (name == "GITHUB")
        assert value not in repr(kept)


def test_the_kind_is_the_one_that_can_be_had(state: Path, request: pytest.FixtureRequest) -> None:
    vault = opened(state)
    assert vault.kind == ""
    vault.set("A", "some-value-1")
    assert vault.kind == request.node.callspec.params["state"]


def test_a_value_can_be_replaced_and_removed(state: Path) -> None:
    vault = opened(state)
    vault.set("A", "some-value-1")
    assert vault.set("A", "some-value-2") is True
    assert opened(state).need("A").value == "some-value-2"
    vault.remove("A")
    assert opened(state).names() == []
    assert vault.finder is None
    with pytest.raises(NotFound, match="no secret A"):
        vault.remove("A")


def test_what_one_does_the_other_knows_at_its_next_look(state: Path) -> None:
    one, other = opened(state), opened(state)
    for number in range(20):
        one.set("A", f"some-value-{number}")
        other.refresh()
        assert other.need("A").value == f"some-value-{number}"
    one.remove("A")
    other.refresh()
    assert other.get("A") is None


def test_projects_do_not_see_each_others_secrets(state: Path) -> None:
    opened(state, "p").set("A", "some-value-1")
    assert opened(state, "q").names() == []


def test_nothing_on_disk_holds_a_value_and_nobody_else_may_look(state: Path) -> None:
    vault = opened(state)
    for name, value in VALUES.items():
        vault.set(name, value)
    files = [path for path in state.rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert path.stat().st_mode & 0o077 == 0
        assert list(vault.within(path.read_bytes())) == []


def test_the_scan_hears_of_every_form(state: Path) -> None:
    vault = opened(state)
    vault.set("A", "some-value-1")
    assert list(vault.within(b"x some-value-1 y")) == [("A", 2, 14)]
    assert [name for name, _, _ in vault.within(b"some%2Dvalue%2D1")] == ["A"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("seven77", "has 7 characters"),
        ("a b c d e f", "has 6 characters"),
        ("x" * 40, "repeated"),
        ("é é é é é é é é", "repeated"),
        (b"\xff\xfe12345678", "not text"),
        ("with\0nul-in-it", "not text"),
        ("ab" * LONGEST, "the limit is 65,536"),
        ("", "has 0 characters"),
    ],
)
def test_what_cannot_be_a_secret_is_refused_without_repeating_it(state: Path, value: Any, why: str) -> None:
    with pytest.raises(InvalidArgs, match=why) as refused:
        opened(state).set("A", value)
    assert not value or str(value) not in str(refused.value) + refused.value.fix
    assert opened(state).names() == []


@pytest.mark.parametrize("name", ["", "a", "1A", "A-B", "A" * 65, "Ä", "A\n", "../A", "A B"])
def test_a_name_is_capital_letters_digits_and_underscores(state: Path, name: str) -> None:
    with pytest.raises(InvalidArgs, match="not a secret's name"):
        opened(state).set(name, "some-value-1")


@pytest.mark.parametrize("host", ["", "a b", "http://a", "a/b", "*", "*.", "a..b", "a:b", "é@org", "-a"])
def test_what_is_no_host_is_refused(tmp_path: Path, host: str) -> None:
    with pytest.raises(InvalidArgs, match="is not a host"):
        opened(tmp_path).set("A", "some-value-1", [host])


def test_a_vault_is_not_endless(tmp_path: Path) -> None:
    vault = opened(tmp_path)
    vault._known = {f"S{number}": vault.get("S0") or object() for number in range(MANY)}  # type: ignore[misc]
    with pytest.raises(InvalidArgs, match=f"{MANY} secrets"):
        vault.set("ONE_MORE", "some-value-1")


@pytest.mark.parametrize(
    ("host", "fits"),
    [
        ("api.example.com", True), ("API.example.com.", True), ("api.example.com:443", True),
        ("evil-api.example.com", False), ("api.example.com.evil.org", False), ("example.com", False),
        ("a.b.org:8080", True), ("a.c.b.org:8080", True), ("b.org:8080", False), ("a.b.org", False),
        ("a.b.org:80", False), ("evilb.org:8080", False), ("[::1]:99", True), ("[::1]", True), ("", False),
    ],
)  # fmt: skip
def test_a_value_goes_only_to_the_hosts_it_is_for(tmp_path: Path, host: str, fits: bool) -> None:
    vault = opened(tmp_path)
    vault.set("A", "some-value-1", ["api.example.com", "*.b.org:8080", "[::1]"])
    assert vault.need("A").fits(host) is fits


# --- the encrypted file ------------------------------------------------------------------------------------------


def document(state: Path, project: str = "p") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((state / "vault" / f"{project}.json").read_text())
    return found


def swap_values(data: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = data["secrets"]["A"], data["secrets"]["B"]
    first["box"], second["box"] = second["box"], first["box"]


def another_project(data: dict[str, Any], other: dict[str, Any]) -> None:
    data.update(other)


def one_of_another_project(data: dict[str, Any], other: dict[str, Any]) -> None:
    data["secrets"]["A"] = other["secrets"]["A"]


def reveal(data: dict[str, Any], other: dict[str, Any]) -> None:
    data["secrets"]["A"]["reveal"] = True


def another_host(data: dict[str, Any], other: dict[str, Any]) -> None:
    data["secrets"]["A"]["hosts"] = ["evil.org"]


def take_out(data: dict[str, Any], other: dict[str, Any]) -> None:
    del data["secrets"]["A"]


def nonsense(data: dict[str, Any], other: dict[str, Any]) -> None:
    data["secrets"] = [1]


def another_kind(data: dict[str, Any], other: dict[str, Any]) -> None:
    data["kind"] = "shoebox"


@pytest.mark.parametrize(
    "change",
    [swap_values, another_project, one_of_another_project, reveal, another_host, take_out, nonsense, another_kind],
)  # fmt: skip
def test_whatever_is_changed_in_the_file_is_found(tmp_path: Path, change: Any) -> None:
    for project in ("p", "q"):
        vault = opened(tmp_path, project)
        vault.set("A", "some-value-1")
        vault.set("B", "other-value-2")
    (tmp_path / "keys" / "q.vault").write_bytes((tmp_path / "keys" / "p.vault").read_bytes())
    (tmp_path / "vault" / "q.json").unlink()
    again = opened(tmp_path, "q")  # with the same key, so that only the project is different
    again.set("A", "some-value-1")
    data = document(tmp_path)
    change(data, document(tmp_path, "q"))
    (tmp_path / "vault" / "p.json").write_text(json.dumps(data))
    with pytest.raises(Unavailable) as broken:
        opened(tmp_path)
    assert "value" not in str(broken.value)


def test_a_file_that_others_can_read_or_that_is_a_link_is_not_believed(tmp_path: Path) -> None:
    opened(tmp_path).set("A", "some-value-1")
    path = tmp_path / "vault" / "p.json"
    path.chmod(0o644)
    with pytest.raises(Unavailable, match="can be read by others"):
        opened(tmp_path)
    path.chmod(0o600)
    path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(Unavailable, match="cannot be read"):
        opened(tmp_path)


def test_without_its_key_a_vault_says_what_is_missing_and_makes_no_new_one(tmp_path: Path) -> None:
    opened(tmp_path).set("A", "some-value-1")
    (tmp_path / "keys" / "p.vault").unlink()
    with pytest.raises(Unavailable, match=r"p\.vault is missing"):
        opened(tmp_path)
    with pytest.raises(Unavailable, match="missing"):
        Vault(tmp_path, "p").set("B", "some-value-2")
    assert not (tmp_path / "keys" / "p.vault").exists()


def setter(state: Path, prefix: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(SETTER), str(state), "p", prefix, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_that_set_secrets_at_once_lose_none(tmp_path: Path) -> None:
    running = [setter(tmp_path, prefix, 10) for prefix in ("ONE", "TWO", "THREE")]
    for process in running:
        process.communicate(timeout=30)
        assert process.returncode == 0
    vault = opened(tmp_path)
    assert len(vault.names()) == 30
    assert all(
        vault.need(f"{prefix}_{n}").value.endswith(f"{prefix}-{n:05}")
        for prefix in ("ONE", "TWO")
        for n in range(10)
    )


def test_killed_at_any_moment_it_has_kept_everything_it_said_it_kept(tmp_path: Path) -> None:
    opened(tmp_path).set("BEFORE", "it-was-here-before")
    for turn in range(6):
        with setter(tmp_path, "A", 100_000) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.02 + turn * 0.013)
            process.send_signal(signal.SIGKILL)
            told = [int(line) for line in process.stdout.read().splitlines() if line.strip().isdigit()]
        vault = opened(tmp_path)
        assert vault.need("BEFORE").value == "it-was-here-before"
        for number in (told or [0])[-9:]:
            found = int(vault.need(f"A_{number % 10}").value.rpartition("-")[2])
            assert found >= number
    opened(tmp_path).set("AFTER", "it-came-afterwards")
    assert not [path for path in (tmp_path / "vault").iterdir() if path.name.startswith(".")]


# --- the keyring -------------------------------------------------------------------------------------------------


def test_keyrings_that_keep_nothing_or_keep_it_in_the_open_are_not_used() -> None:
    plain = type("PlaintextKeyring", (MemoryKeyring,), {"__module__": "keyrings.alt.file"})
    for backend in (fail.Keyring(), null.Keyring(), plain()):
        assert not trustworthy(backend)
    assert trustworthy(MemoryKeyring())
    mixed = type("Chain", (), {"backends": [MemoryKeyring(), null.Keyring()]})()
    assert not trustworthy(mixed)
    assert not trustworthy(type("Chain", (), {"backends": []})())


def test_a_keyring_that_forgets_or_fails_is_not_used(
    memory: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert usable_keyring() is memory
    assert memory.kept == {}, "what it was tried with is gone"
    monkeypatch.setattr(memory, "get_password", lambda service, username: None)
    assert usable_keyring() is None


def test_a_vault_that_began_in_a_keyring_never_falls_back_to_a_file(
    memory: MemoryKeyring, tmp_path: Path
) -> None:
    opened(tmp_path).set("A", "some-value-1")
    keyring.set_keyring(fail.Keyring())
    with pytest.raises(Unavailable, match="in a keyring"):
        opened(tmp_path)


def test_a_name_whose_value_never_reached_the_keyring_counts_as_none(
    memory: MemoryKeyring, tmp_path: Path
) -> None:
    vault = opened(tmp_path)
    vault.set("A", "some-value-1")
    vault.set("B", "some-value-2")
    memory.kept.pop(("toolgate/p", "A"))
    assert opened(tmp_path).names() == ["B"]
    memory.kept["toolgate/p", "A"] = memory.kept["toolgate/p", "B"]
    with pytest.raises(Unavailable, match="not what toolgate put there"):
        opened(tmp_path)
