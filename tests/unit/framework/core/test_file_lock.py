"""Locks on a file system that has none: a run and a download go on, and two downloads do not share a file."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from framework.core.file_lock import acquire_lock
from framework.hub import transfer
from framework.workflow.batch.parts import PartFolder
from framework.workflow.train.run import _run_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="flock")


@pytest.fixture(params=[errno.ENOLCK, errno.EOPNOTSUPP, None])
def no_locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        if request.param is None:
            raise NotImplementedError("FileSystem does not appear to support flock")
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(FileLock, "acquire", fail)
    if request.param is not None:
        monkeypatch.setattr("fcntl.flock", fail)


def test_a_file_system_without_locks(
    no_locks: None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert acquire_lock(tmp_path / "lock") is None
    assert "has no locks" in caplog.text
    with PartFolder(tmp_path / "batch", "jsonl").open({"a": 1}), _run_folder(tmp_path / "run", resume=False):
        assert (tmp_path / "run").is_dir()


def test_other_errors_stay(tmp_path: Path) -> None:
    held = acquire_lock(tmp_path / "lock")
    assert held is not None
    with pytest.raises(Timeout):
        acquire_lock(tmp_path / "lock")
    held.release()
    with pytest.raises(OSError):
        acquire_lock(tmp_path / "lock" / "no folder")


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOLCK])
def test_downloads_without_locks_have_folders_of_their_own(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    target = tmp_path / "net.onnx"
    with transfer.place_for(target) as place:
        assert place == tmp_path
    monkeypatch.setattr("fcntl.flock", fail)
    with transfer.place_for(target) as one, transfer.place_for(target) as other:
        assert one != other and one.is_dir() and one.is_relative_to(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    monkeypatch.setattr("fcntl.flock", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "broken")))
    with pytest.raises(OSError, match="broken"), transfer.place_for(target):
        pass
