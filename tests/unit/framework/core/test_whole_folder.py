"""A folder that replaces another one, in a process that is killed at each step of it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from framework.core import whole_folder
from framework.core.disk import DiskError, whole_file
from framework.core.disk import whole_folder as write_whole
from framework.core.whole_folder import (
    folder_around,
    is_mount,
    put_in_place,
    recover,
    remove_leftovers,
    work_folder,
)
from framework.export import Artifact, load_artifact

KILLED = """
import os, signal, sys
from pathlib import Path
from framework.core import whole_folder
step, exchange, target = sys.argv[1], sys.argv[2] == "yes", Path(sys.argv[3])
if not exchange:
    whole_folder._exchange = lambda one, other: False
replace, calls = os.replace, []
def counted(one, other):
    if step == f"before {len(calls)}":
        os.kill(os.getpid(), signal.SIGKILL)
    replace(one, other)
    calls.append(other)
    if step == f"after {len(calls)}":
        os.kill(os.getpid(), signal.SIGKILL)
whole_folder.os.replace = counted
with whole_folder.work_folder(target) as work:
    (work / "new").mkdir()
    (work / "new" / "file").write_text("new")
    if step == "written":
        os.kill(os.getpid(), signal.SIGKILL)
    whole_folder.put_in_place(work, target)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def forget() -> None:
    remove_leftovers.cache_clear()


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("exchange", ["yes", "no"])
@pytest.mark.parametrize("step", ["written", "before 0", "after 1", "before 1", "after 2", "end"])
def test_a_killed_process_loses_nothing_and_leaves_nothing(tmp_path: Path, step: str, exchange: str) -> None:
    target = tmp_path / ("long " * 20)
    target.mkdir()
    (target / "file").write_text("old", encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", KILLED, step, exchange, str(target)], check=False)
    assert done.returncode == -signal.SIGKILL
    recover(target)
    assert (target / "file").read_text(encoding="utf-8") in ("old", "new")
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_an_artifact_that_was_moved_away_is_found_again(tmp_path: Path) -> None:
    folder = Artifact({"name": "a"}, weights={"w": np.ones(3, np.float32)}).save(tmp_path / "a")
    work = tmp_path / ".a.k3jd_9xq"  # of an earlier version, which named it so
    work.mkdir()
    folder.rename(work / "old")
    for file in (work, *work.rglob("*")):
        os.utime(file, (time.time() - 4000,) * 2)
    assert load_artifact(folder).weights["w"].tolist() == [1, 1, 1]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_another_process_writes_now_stays(tmp_path: Path) -> None:
    with work_folder(tmp_path / "a") as work:
        (work / "new").mkdir()
        remove_leftovers.cache_clear()
        remove_leftovers(tmp_path)
        assert work.is_dir()
        put_in_place(work, tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_old_hidden_files_go_and_those_of_others_stay(tmp_path: Path) -> None:
    names = [
        ".page.0123456789ab.json",
        ".page.0123456789ac.md",
        ".git",
        ".env.production",
        ".cache.0123456789ab",
    ]
    for name in names:
        (tmp_path / name).write_text("x", encoding="utf-8")
    (tmp_path / ".data.k3jd_9xq").mkdir()
    (tmp_path / ".data.k3jd_9xq" / "theirs").write_text("x", encoding="utf-8")
    for path in (*tmp_path.iterdir(), *(tmp_path / ".data.k3jd_9xq").iterdir()):
        if path.name != names[1]:
            os.utime(path, (time.time() - 4000,) * 2)
    with whole_file(tmp_path / "out.json") as file:
        file.write_text("{}", encoding="utf-8")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {names[1], ".git", ".env.production", ".data.k3jd_9xq", "out.json"}


def test_a_folder_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for exchange in (whole_folder._exchange, lambda one, other: False):
        monkeypatch.setattr(whole_folder, "_exchange", exchange)
        for text in ("one", "two"):
            with write_whole(tmp_path / "a") as fresh:
                (fresh / text).write_text(text, encoding="utf-8")
            assert [path.name for path in (tmp_path / "a").iterdir()] == [text]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose name cannot be changed, as that of a container's volume."""
    folder, rename = tmp_path / "volume", os.replace
    (folder / "lost+found").mkdir(parents=True)

    def replace(source: Path, target: Path) -> None:
        if folder in (Path(source), Path(target)):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        rename(source, target)

    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == folder)
    monkeypatch.setattr(whole_folder.os, "replace", replace)
    monkeypatch.setattr(whole_folder, "_exchange", lambda one, other: False)
    return folder


def test_a_mount_keeps_its_name_and_has_the_new_content(mount: Path) -> None:
    for names in (("a", "b"), ("b", "c")):
        with write_whole(mount) as fresh:
            for name in names:
                (fresh / name).write_text(" ".join(names), encoding="utf-8")
        assert sorted(os.listdir(mount)) == [*names, "lost+found"]
        assert (mount / "b").read_text(encoding="utf-8") == " ".join(names)
    assert os.listdir(mount.parent) == ["volume"]


def test_a_mount_that_does_not_take_all_stays_as_it_was(mount: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (mount / "a").write_text("before", encoding="utf-8")
    rename = whole_folder.os.replace

    def replace(source: Path, target: Path) -> None:
        if Path(target) == mount / "z":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(source, target)

    monkeypatch.setattr(whole_folder.os, "replace", replace)
    with pytest.raises(DiskError), write_whole(mount) as fresh:
        for name in ("a", "z"):
            (fresh / name).write_text("after", encoding="utf-8")
    assert sorted(os.listdir(mount)) == ["a", "lost+found"]
    assert (mount / "a").read_text(encoding="utf-8") == "before"


def test_a_folder_of_the_same_file_system_is_a_mount_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`mount --bind`, which has the device of the folder around it."""
    folder, table = tmp_path / "a volume", tmp_path / "mountinfo"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    written = os.fsencode(os.path.realpath(folder)).replace(b" ", rb"\040")
    table.write_bytes(
        b"1 2 254:0 /there / rw - ext4 /dev/vda rw\n3 1 254:0 /there " + written + b" rw - ext4 x rw\n"
    )
    monkeypatch.setattr(whole_folder, "_MOUNTS", table)
    assert is_mount(folder) and is_mount(tmp_path / "link") and not is_mount(tmp_path)
    assert folder_around(folder) == folder
    monkeypatch.setattr(whole_folder, "_MOUNTS", tmp_path / "none")
    assert not is_mount(folder)


def test_an_artifact_is_written_to_a_mount_and_replaced(mount: Path) -> None:
    for value in (1.0, 2.0):
        Artifact({}, {}, {"w": np.full(2, value, np.float32)}).save(mount)
        assert load_artifact(mount).weights["w"][0] == value
    assert not [name for name in os.listdir(mount) if name.startswith(".")]


@pytest.mark.parametrize("exchange", [True, False])
def test_two_runs_into_one_folder_leave_one_of_them_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    if not exchange:
        monkeypatch.setattr(whole_folder, "_exchange", lambda one, other: False)
    problems: list[BaseException] = []

    def save(name: str) -> None:
        try:
            for _ in range(15):
                with write_whole(tmp_path / "a") as fresh:
                    for number in range(3):
                        (fresh / f"{name}{number}").write_text(name, encoding="utf-8")
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=save, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == [] or not exchange
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names in (["one0", "one1", "one2"], ["two0", "two1", "two2"])
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_link_to_a_folder_stays_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool
) -> None:
    """Models that are kept on another disk."""
    if not exchanges:
        monkeypatch.setattr(whole_folder, "_exchange", lambda one, other: False)
    (tmp_path / "disk/net").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk/net", target_is_directory=True)
    for value in (1.0, 2.0):
        Artifact({}, {}, {"w": np.full(2, value, np.float32)}).save(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert load_artifact(tmp_path / "disk/net").weights["w"][0] == value
    assert os.listdir(tmp_path / "disk") == ["net"]
