"""Weights inside an archive: one file is taken out, and archives that are damaged or hostile write nothing else."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from framework.core.errors import HubError
from framework.hub import archive as archives
from framework.hub import store as hub
from tests.unit.framework.hub.conftest import sha256

WEIGHTS = bytes(range(256)) * 400
MEMBER = "net/best/model.pdparams"


def tar(*members: tuple[str, bytes | tarfile.TarInfo], packed: str = "") -> bytes:
    """An archive of files, and of links and the like as they are."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=f"w:{packed}") as file:  # type: ignore[call-overload]
        for name, content in members:
            if isinstance(content, tarfile.TarInfo):
                file.addfile(content)
                continue
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tuple[str, tarfile.TarInfo]:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return name, entry


def written(folder: Path) -> Sequence[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("packed", ["", "gz", "bz2", "xz"])
@pytest.mark.parametrize("before", ["", "./"])
def test_a_member_is_taken_out(packed: str, before: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(
        tar(("net/latest/model.pdparams", b"other"), (before + MEMBER, WEIGHTS), packed=packed)
    )
    archives.extract_member(tmp_path / "a", MEMBER, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == WEIGHTS and written(tmp_path) == ["a", "out"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (tar(("../../" + MEMBER, WEIGHTS)), "has no net/best/model.pdparams, but ../../net"),
        (tar(("/" + MEMBER, WEIGHTS)), "has no net/best/model.pdparams, but /net"),
        (tar(special(MEMBER, tarfile.SYMTYPE, "/etc/passwd")), "a link or a folder"),
        (tar(("x", WEIGHTS), special(MEMBER, tarfile.LNKTYPE, "x")), "a link or a folder"),
        (tar(special(MEMBER, tarfile.DIRTYPE)), "a link or a folder"),
        (tar(special(MEMBER, tarfile.FIFOTYPE)), "a link or a folder"),
        (tar(), "but nothing"),
        (tar(*((f"{n}.txt", b"") for n in range(9))), "7.txt and more"),
        (tar((MEMBER, WEIGHTS))[:50_000], "cannot be unpacked"),
        (tar((MEMBER, WEIGHTS), packed="gz")[:300], "cannot be unpacked"),
        (b"<html>", "cannot be unpacked"),
        (b"", "cannot be unpacked"),
    ],
)
def test_archives_that_are_damaged_or_hostile(content: bytes, message: str, tmp_path: Path) -> None:
    folder = tmp_path / "one" / "two"
    folder.mkdir(parents=True)
    (folder / "a").write_bytes(content)
    with pytest.raises(HubError) as caught:
        archives.extract_member(folder / "a", MEMBER, folder / "out")
    assert message in str(caught.value)
    assert set(written(tmp_path)) <= {str(Path("one/two/a")), str(Path("one/two/out"))}


def test_more_than_an_archive_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "LARGE", 1000)
    for members in ([(MEMBER, bytes(1_000_000))], [("zeros", bytes(1_000_000)), (MEMBER, b"small")]):
        (tmp_path / "a").write_bytes(tar(*members, packed="gz"))
        with pytest.raises(HubError, match="far more than it can"):
            archives.extract_member(tmp_path / "a", MEMBER, tmp_path / "out")
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)
    (tmp_path / "a").write_bytes(tar(*((f"{n}", b"") for n in range(4)), (MEMBER, b"")))
    with pytest.raises(HubError, match="far more than it can"):
        archives.extract_member(tmp_path / "a", MEMBER, tmp_path / "out")


def test_a_row_with_a_member(catalogue, server, home: Path, request: pytest.FixtureRequest) -> None:
    packed = tar((MEMBER, WEIGHTS), ("net/log.txt", b"#"))
    catalogue(server.source("/n.tar", packed, member=MEMBER, size=len(packed)))
    path = hub.fetch("net")
    assert path == home / "weights" / "net" / "weights.pdparams" and path.read_bytes() == WEIGHTS
    assert written(path.parent) == [".lock", "weights.pdparams", "weights.pdparams.sha256"]
    request.getfixturevalue("no_socket")
    assert hub.fetch("net") == hub.locate("net") == path
    path.write_bytes(WEIGHTS[:-1] + b"?")  # the file's own hash was taken when it was unpacked
    _, misses = hub.look("net")
    assert "pinned earlier" in misses[0].reason and misses[0].found


def test_an_archive_of_another_hash_or_without_the_member(catalogue, server, home: Path) -> None:
    source = server.source("/n.tar", tar((MEMBER, WEIGHTS)), member=MEMBER)
    catalogue({**source, "sha256": "0" * 64})
    with pytest.raises(HubError, match=r"/n\.tar: net/best/model\.pdparams: SHA-256 \w+… instead of 000"):
        hub.fetch("net")
    catalogue({**source, "member": "net/model.pdparams"})
    with pytest.raises(HubError, match=r"has no net/model\.pdparams, but net/best/model\.pdparams"):
        hub.fetch("net")
    assert written(home / "weights" / "net") == [".lock"]
    catalogue({**source, "sha256": "unknown"})
    assert hub.fetch("net").read_bytes() == WEIGHTS
    assert sha256(WEIGHTS) in (home / "weights" / "net" / "weights.pdparams.sha256").read_text("utf-8")


def test_a_cut_archive_goes_on_where_it_stopped(catalogue, server) -> None:
    packed = tar((MEMBER, WEIGHTS))
    catalogue(server.source("/n.tar", packed, member=MEMBER))
    server.cuts["/n.tar"] = [5000]
    assert hub.fetch("net").read_bytes() == WEIGHTS and server.gets() == [None, "bytes=5000-"]
