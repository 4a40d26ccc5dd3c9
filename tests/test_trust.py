"""Which project is trusted: ids are read from real files only, a copy is no move."""

from __future__ import annotations

import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolgate.core.errors import SetupError
from toolgate.project import trust

ID = "0" * 32 + "\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    return root


def test_a_linked_state_directory_is_refused_before_anything_in_it_is_read(
    project: Path, tmp_path: Path, own_state_dir: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "project").write_text(ID)
    (project / ".toolgate").symlink_to(tmp_path / "elsewhere")
    for ask in (trust.project_id, trust.make_project_id, lambda root: trust.is_trusted(root, own_state_dir)):
        with pytest.raises(SetupError, match="is a symbolic link"):
            ask(project)


@pytest.mark.parametrize("kind", ["pipe", "link", "directory"])
def test_an_id_that_is_no_regular_file_is_refused_without_waiting_for_it(project: Path, kind: str) -> None:
    file = project / ".toolgate" / "project"
    file.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "link":
        file.symlink_to("/dev/zero")
    else:
        file.mkdir()
    for ask in (trust.project_id, trust.make_project_id):
        with pytest.raises(SetupError, match="is not a regular file"):
            ask(project)


def test_a_copy_of_a_trusted_project_is_refused(project: Path, tmp_path: Path, own_state_dir: Path) -> None:
    first = trust.trust(project, own_state_dir)
    copy = shutil.copytree(project, tmp_path / "copy")
    with pytest.raises(SetupError, match="is a copy of") as refused:
        trust.trust(copy, own_state_dir)
    assert str(copy / ".toolgate") in refused.value.fix
    assert not trust.is_trusted(copy, own_state_dir)
    shutil.rmtree(copy / ".toolgate")
    assert trust.trust(copy, own_state_dir) != first
    assert trust.is_trusted(project, own_state_dir)


def test_a_moved_project_keeps_its_id_and_its_old_path_is_forgotten(
    project: Path, tmp_path: Path, own_state_dir: Path
) -> None:
    first = trust.trust(project, own_state_dir)
    moved = project.rename(tmp_path / "moved")
    assert trust.trust(moved, own_state_dir) == first
    shutil.copytree(moved, project)
    assert not trust.is_trusted(project, own_state_dir)


def test_who_makes_an_id_at_once_with_others_gets_the_same(project: Path) -> None:
    for turn in range(20):
        root = project / str(turn)
        root.mkdir()
        together = threading.Barrier(4)

        def make(root: Path = root, together: threading.Barrier = together) -> str:
            together.wait(10)
            return trust.make_project_id(root)

        with ThreadPoolExecutor(4) as threads:
            made = {threads.submit(make) for _ in range(4)}
            assert {one.result() for one in made} == {trust.project_id(root)}


def test_a_damaged_id_is_replaced(project: Path) -> None:
    (project / ".toolgate").mkdir()
    (project / ".toolgate" / "project").write_text("half of an i")
    made = trust.make_project_id(project)
    assert len(made) == 32
    assert trust.project_id(project) == made
