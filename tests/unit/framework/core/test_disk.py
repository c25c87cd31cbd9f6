"""Writing: whole or not at all, and what is said when the disk does not take it."""

import ast
import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from framework.core import disk
from framework.core.disk import (
    DiskError,
    check_writable,
    disk_errors,
    free_bytes,
    scratch_folder,
    walk_files,
    whole_file,
    write_file,
)
from framework.core.errors import InputError, OarError
from framework.interop import write_safetensors
from framework.vision import image
from framework.workflow.domain.outputs import make_folder, write_json

REPO = Path(__file__).resolve().parents[4]


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.txt"
    write_file(path, b"one")
    with pytest.raises(RuntimeError), whole_file(path) as temporary:
        temporary.write_bytes(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"one" and os.listdir(path.parent) == ["a.txt"]


@pytest.mark.parametrize(
    ("number", "problem", "fix"),
    [
        (errno.ENOSPC, "the disk is full", "free some space"),
        (errno.EROFS, "the file system is read-only", "another file system"),
        (errno.EACCES, "this may not be written here", "another folder"),
        (
            errno.EFBIG,
            "the file is larger than its file system or the limit of this process allows",
            "ulimit -f",
        ),
    ],
)
def test_what_is_said(tmp_path: Path, number: int, problem: str, fix: str) -> None:
    with pytest.raises(DiskError) as caught, disk_errors(tmp_path / "a", 1234):
        raise OSError(number, os.strerror(number))
    error = caught.value
    assert isinstance(error, OarError) and isinstance(error, OSError) and error.errno == number
    assert error.problem == problem and error.where == tmp_path / "a" and fix in str(error.fix)
    assert "1,234 bytes to write" in str(error) and f"{free_bytes(tmp_path):,}"[:2] in str(error)


def test_what_stands_in_the_way_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("stays", encoding="utf-8")
    for path in (tmp_path / "file" / "a.txt", tmp_path / "file" / "deep" / "a.txt"):
        with pytest.raises(DiskError, match="a file stands where a folder is needed") as caught:
            write_file(path, b"one")
        assert "bytes" not in str(caught.value)
    with pytest.raises(DiskError, match="a folder stands where a file is to be written"):
        write_file(tmp_path, b"one")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "stays"


def test_a_folder_is_looked_at_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_writable(tmp_path)
    check_writable(tmp_path / "a" / "b")
    assert not os.listdir(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file", tmp_path / "file" / "a" / "b"):
        with pytest.raises(DiskError, match="a file stands where a folder is needed"):
            check_writable(path)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(DiskError, match="this may not be written here"):
        check_writable(tmp_path / "a" / "b")


@pytest.mark.skipif(os.name != "posix", reason="limits of a process")
def test_a_file_above_the_limit_of_the_process_is_named(tmp_path: Path) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(DiskError, match=r"a\.txt: the file is larger"):
            write_file(tmp_path / "a.txt", b"x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not os.listdir(tmp_path)


def test_errors_of_libraries_in_rust_and_what_is_none_of_the_disk(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="the disk is full"), disk_errors(tmp_path):
        raise RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)")
    with pytest.raises(DiskError, match="the disk is full"), disk_errors(tmp_path):
        raise ValueError("RESOURCE_EXHAUSTED: No space left on device [os_error_code='28']")  # tensorstore
    for other in (ValueError("x"), InputError("x"), TimeoutError("x")):
        with pytest.raises(type(other)) as caught, disk_errors(tmp_path):
            raise other
        assert caught.value is other
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "a"):
        (tmp_path / "input.png").read_bytes()


def test_the_free_bytes_of_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert (free_bytes(tmp_path / "a" / "b") or 0) > 0


def test_every_writer_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk.os, "replace", full)
    for name, write in (
        ("a.png", lambda path: image.write(path, np.zeros((4, 4, 3), np.uint8))),
        ("a.json", lambda path: write_json(path, {"a": 1})),
        ("a.safetensors", lambda path: write_safetensors(path, {"a": np.zeros(3, np.float32)})),
    ):
        with pytest.raises(DiskError, match=rf"{name}: the disk is full\n.*left\n.*free some space"):
            write(tmp_path / name)
        assert not os.listdir(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DiskError, match=r"file.*a file stands where a folder is needed"):
        make_folder(tmp_path / "file" / "folder")


_FULL = """
import sys
from pathlib import Path
import numpy as np
from framework.core.disk import DiskError
from framework.export import Artifact, TensorSpec, load_artifact, lower_program
from framework.interop import write_safetensors
from framework.vision import image
from framework.workflow.domain.outputs import write_json
root = Path(sys.argv[1])
big = np.random.default_rng(0).integers(0, 255, (3000, 1000, 3), np.uint8)
weights = {"w": np.ones((3000, 300), np.float32)}
program = lower_program(lambda w, x: {"y": x["x"] @ w["w"].T}, weights, {"x": TensorSpec((1, 300))}, platforms=("cpu",))
artifact = Artifact({"domain": "a"}, {"float32": program}, weights)
for name, write in (
    ("a.png", lambda path: image.write(path, big)),
    ("a.json", lambda path: write_json(path, {"text": "x" * 3_000_000})),
    ("a.safetensors", lambda path: write_safetensors(path, weights)),
    ("artifact", artifact.save),
):
    try:
        write(root / name)
        raise SystemExit("written")
    except DiskError as error:
        assert error.problem == "the disk is full" and str(error.where).startswith(str(root)), error
        assert "bytes left" in str(error) and ("bytes to write" in str(error) or name == "a.json"), error
    assert not list(root.rglob("*")), list(root.rglob("*"))
import subprocess
subprocess.run(["mount", "-o", "remount,size=40m", str(root)], check=True)  # there is room again
image.write(root / "a.png", big)
load_artifact(artifact.save(root / "artifact"))
subprocess.run(["mount", "-o", "remount,ro", str(root)], check=True)
try:
    image.write(root / "b.png", big)
except DiskError as error:
    assert error.problem == "the file system is read-only", error
    print("done")
"""


def _can_mount(folder: Path) -> bool:
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, timeout=20).returncode == 0
    except OSError:
        return False


def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    if not _can_mount(tmp_path):
        pytest.skip("this user may not mount a small disk")
    script = f"mount -t tmpfs -o size=2m tmpfs {tmp_path} && exec {sys.executable} -c '{_FULL}' {tmp_path}"
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script],
        cwd=REPO,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == "done", done.stdout + done.stderr


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a"
    with disk.whole_folder(path) as folder:
        (folder / "one").write_bytes(b"1")
        assert not path.exists()
    with pytest.raises(KeyboardInterrupt), disk.whole_folder(path) as folder:
        (folder / "two").write_bytes(b"2")
        raise KeyboardInterrupt
    assert os.listdir(path) == ["one"] and os.listdir(path.parent) == ["a"]
    with disk.whole_folder(path) as folder:
        (folder / "two").write_bytes(b"2")
    assert os.listdir(path) == ["two"] and os.listdir(path.parent) == ["a"]
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DiskError), disk.whole_folder(tmp_path / "file" / "a"):
        pass


def test_files_of_a_moment_are_in_memory_where_no_disk_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    with scratch_folder("oar-") as folder:
        assert folder.parent == Path(tempfile.gettempdir())
    assert not folder.exists()
    monkeypatch.setattr(tempfile, "gettempdir", find)
    monkeypatch.setattr(disk, "_MEMORY", tmp_path)
    with scratch_folder("oar-") as folder:
        assert folder.parent == tmp_path and folder.name.startswith("oar-")
    monkeypatch.setattr(disk, "_MEMORY", tmp_path / "none")
    with (
        pytest.raises(DiskError, match=r"no folder for temporary files(.|\n)*mount a folder"),
        scratch_folder(""),
    ):
        pass


def test_no_folder_for_temporary_files_is_taken_for_granted() -> None:
    """Containers have none: `scratch_folder` finds another, and says what is missing."""
    makers = {"TemporaryDirectory", "TemporaryFile", "NamedTemporaryFile", "mkdtemp", "mkstemp"}
    root = Path(disk.__file__).parents[1]
    found = [
        f"{path.relative_to(root)}:{node.lineno}"
        for path in root.rglob("*.py")
        if "tempfile" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in makers
        and "dir" not in {keyword.arg for keyword in node.keywords}
    ]
    assert not found, f"use framework.core.disk.scratch_folder: {found}"


def test_files_behind_links_are_walked(tmp_path: Path) -> None:
    for name in ("set/b.txt", "set/a/d.txt", "set/a/.hidden", "set/.cache/x.txt", "elsewhere/more/c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "set/linked").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "elsewhere/back").symlink_to(tmp_path / "set/a", target_is_directory=True)
    (tmp_path / "set/a/loop").symlink_to(tmp_path / "set", target_is_directory=True)
    (tmp_path / "elsewhere/more/up").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    found = [Path(file).relative_to(tmp_path / "set").as_posix() for file in walk_files(tmp_path / "set")]
    assert found == ["b.txt", "a/d.txt", "linked/back/d.txt", "linked/more/c.txt"]
    assert list(walk_files(tmp_path / "none")) == []
