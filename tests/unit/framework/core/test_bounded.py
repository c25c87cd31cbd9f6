"""Bounded reads: what is refused, and that the message names the file, the limit and what to do."""

import io
import os
import zipfile

import pytest

from framework.core import bounded
from framework.core.errors import ConfigError, FormatError, InputError, OarError


def _zip(members: dict[str, bytes]) -> io.BytesIO:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data


def test_files_within_the_limit_are_read_whole(tmp_path):
    file = tmp_path / "a.json"
    file.write_bytes(b'\xef\xbb\xbf{"a": [1, 2]}')
    assert bounded.read_bytes(file, 16) == file.read_bytes()
    assert bounded.read_text(file) == '{"a": [1, 2]}'
    assert bounded.read_json(file) == {"a": [1, 2]}
    assert bounded.read_text("/proc/self/status") if os.path.exists("/proc/self/status") else True


def test_no_more_memory_is_taken_than_the_file_has(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert bounded.read_bytes(tmp_path / "a", 1 << 50) == b"abc"


def test_a_file_over_the_limit_is_refused_before_it_is_read(tmp_path):
    file = tmp_path / "sparse.bin"
    with file.open("wb") as out:
        out.truncate(1 << 40)
    with pytest.raises(InputError, match=r"sparse\.bin: the image is too large") as caught:
        bounded.read_bytes(file, 1000, "image", InputError)
    assert caught.value.received == f"{1 << 40:,} bytes" and caught.value.allowed == "at most 1,000 bytes"


@pytest.mark.skipif(os.name == "nt", reason="devices and pipes of POSIX")
def test_what_is_no_regular_file_is_refused_without_reading(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, kind in (("/dev/zero", "a device"), (tmp_path / "pipe", "a pipe"), (tmp_path, "a folder")):
        with pytest.raises(ConfigError, match=f"this is {kind}, not one base file"):
            bounded.read_bytes(path, 10, "base file", ConfigError)


def test_addresses_and_missing_files_say_what_to_do(tmp_path):
    with pytest.raises(FormatError, match=r"curl -LO https://example\.org/a\.png"):
        bounded.read_bytes("https://example.org/a.png")
    with pytest.raises(FormatError, match=r"curl -LO https://example\.org/a\.png"):
        bounded.read_bytes("https:/example.org/a.png")  # as pathlib leaves it
    with pytest.raises(FormatError, match="there is no such file"):
        bounded.read_bytes(tmp_path / "none")
    with pytest.raises(FormatError, match="null byte"):
        bounded.read_bytes("a\0b")


def test_names_that_are_no_text_can_be_printed(tmp_path):
    name = os.fsdecode(b"caf\xe9.json")
    with pytest.raises(FormatError) as caught:
        bounded.read_json(tmp_path / name)
    assert str(caught.value).encode("utf-8") and r"\udce9" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "an empty file"),
        (b"{", "not JSON"),
        (b'"\xff"', "line 1"),
        (b"[" * 101 + b"]" * 101, "levels"),
        (b"[" * 100_000, "levels|recursion"),
        (b"1" * 5000, "digits"),
    ],
)
def test_damaged_json_names_its_file(tmp_path, content, message):
    file = tmp_path / "a.json"
    file.write_bytes(content)
    with pytest.raises(FormatError, match=rf"(?s)a\.json.*({message})"):
        bounded.read_json(file)


def test_json_of_the_allowed_depth_is_read():
    assert bounded.parse_json("[" * 100 + "]" * 100, "here") is not None
    with pytest.raises(FormatError, match="holds no mapping"):
        bounded.check_mapping([], "here", "index")


def test_members_of_archives_are_bounded_by_what_they_unpack_to(tmp_path):
    archive = bounded.open_zip(_zip({"big": bytes(1 << 20), "small": b"ok"}), "a.zip")
    assert bounded.read_member(archive, "small", "a.zip") == b"ok"
    with pytest.raises(OarError, match=r"a\.zip, member 'big': the member is too large"):
        bounded.read_member(archive, "big", "a.zip", 1000)
    with pytest.raises(FormatError, match=r"a\.zip, member 'none'"):
        bounded.read_member(archive, "none", "a.zip")
    with pytest.raises(FormatError, match="zip archive cannot be read"):
        bounded.open_zip(io.BytesIO(b"PK\3\4"), "a.zip")
