"""Ways for a secret's value round the redactor: names of files, jobs, what takes long to search."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from toolgate.secrets.redactor import VaultRedactor

from .gates_to_pass import VALUE, approved, opened

NAMES = """
token = get_secret("TOKEN").encode().decode()
import os
open(token, "w").write("x")
os.makedirs("d/" + token.encode().hex())
open("d/" + token.encode().hex() + "/e", "w").write("x")
open("good", "w").write("x")
"""


async def test_no_file_that_a_program_leaves_is_named_by_a_secret(tmp_path: Path) -> None:
    async with opened(tmp_path) as gate:
        await gate.set_secret("TOKEN", VALUE, reveal=True)
        found = await approved(gate, "exec.python", {"code": NAMES, "secrets": ["TOKEN"]})
        assert [each["name"] for each in found["files"]] == ["good"]
        assert found["warnings"][-1] == "2 files were not saved: their names hold a secret"
    names = " ".join(str(path) for path in tmp_path.rglob("*"))
    assert VALUE not in names
    assert VALUE.encode().hex() not in names


async def test_what_takes_long_to_search_for_secrets_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Escapes take the longest, most of a second for a megabyte."""
    searched: list[bool] = []
    real = VaultRedactor.redact

    def watched(self: VaultRedactor, value: Any, hidden: tuple[str, ...] = ()) -> Any:
        if isinstance(value, bytes) and value.startswith(b"%61%61"):
            searched.append(threading.current_thread() is threading.main_thread())
        return real(self, value, hidden)

    monkeypatch.setattr(VaultRedactor, "redact", watched)
    async with opened(tmp_path) as gate:
        await gate.set_secret("TOKEN", VALUE)
        left = await gate.call("exec.python", {"code": "open('a', 'w').write('%61' * 100_000)"})
        assert left.ok, left.error
    assert searched == [False]


async def test_a_job_keeps_no_secret_of_the_vault_in_any_form(tmp_path: Path) -> None:
    async with opened(tmp_path) as gate:
        await gate.set_secret("TOKEN", VALUE)
        for args in (
            {"code": f"print('{VALUE}')"}, {"code": "", "stdin": VALUE[::-1]}, {"code": "", "files": {"a": VALUE}},
        ):  # fmt: skip
            refused = await gate.call("exec.python", args | {"background": True})
            assert refused.error is not None
            assert refused.error.code == "invalid_args"
        said = {"reason": f"because {VALUE}", "conversation": VALUE}
        assert (await gate.call("exec.python", {"code": "", "background": True}, **said)).ok
    stored = b"".join(file.read_bytes() for file in (tmp_path / ".toolgate").rglob("*") if file.is_file())
    assert VALUE.encode() not in stored
    assert VALUE[::-1].encode() not in stored
