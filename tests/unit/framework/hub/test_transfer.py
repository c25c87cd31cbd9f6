"""Downloads from a server that misbehaves, by several at once, and through huggingface-hub."""

from __future__ import annotations

import hashlib
import io
import sys
import threading
import time
from pathlib import Path

import pytest

from framework.core.errors import HubError
from framework.hub import store as hub
from framework.hub import transfer

CONTENT = bytes(range(256)) * 4096  # 1 MiB
PATH = "/a/net.onnx"  # where the server has it


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def message(error: pytest.ExceptionInfo[Exception]) -> str:
    return str(error.value)


def test_download_then_never_a_request_again(
    catalogue, server, home: Path, request, reads: list[Path]
) -> None:
    catalogue(server.source(PATH, CONTENT, size=len(CONTENT)))
    path = hub.fetch("net")
    assert path == home / "weights" / "net" / "weights.onnx"
    assert path.read_bytes() == CONTENT
    assert sorted(p.name for p in path.parent.iterdir()) == [".lock", "weights.onnx"]
    assert server.gets() == [None]
    assert len(reads) == 1
    request.getfixturevalue("no_socket")
    assert hub.fetch("net") == hub.fetch("net", offline=True) == hub.locate("net") == path
    assert len(reads) == 1  # verified once


def test_wrong_content_falls_through_to_the_next_source(catalogue, server, home: Path) -> None:
    bad = {"url": server.put("/bad.onnx", b"error page"), "sha256": sha(CONTENT)}
    catalogue(bad, server.source(PATH, CONTENT))
    assert hub.fetch("net").read_bytes() == CONTENT
    catalogue(bad)
    (home / "weights" / "net" / "weights.onnx").unlink()
    with pytest.raises(HubError, match=rf"bad\.onnx: SHA-256 {sha(b'error page')[:12]}… instead of"):
        hub.fetch("net")
    assert not list(home.rglob("*.part"))


def test_missing_and_refused(catalogue, server, home: Path) -> None:
    gone = {"url": f"{server.root}/gone.onnx", "sha256": "0" * 64}
    closed = {"url": "http://127.0.0.1:1/x.onnx", "sha256": "1" * 64}
    catalogue(gone, closed, {"package": "oar_no_such_package", "path": "x.onnx", "sha256": "0" * 64})
    with pytest.raises(HubError) as error:
        hub.fetch("net")
    text = message(error)
    assert text.startswith("net (weights): the weights cannot be had\n")
    assert f"{home / 'weights' / 'net' / 'weights.onnx'}: not there" in text
    assert "package oar_no_such_package: x.onnx: not installed" in text
    assert "/gone.onnx: HTTP 404" in text
    assert "http://127.0.0.1:1/x.onnx: cannot connect" in text
    assert "oar models pull net" in text
    assert f"put the file at {home / 'weights' / 'net' / 'weights.onnx'}" in text and "0" * 64 in text
    assert "-o …weights=PATH" in text
    assert f"set OAR_HOME to a folder that has it (now {home})" in text


def test_size_is_checked_before_anything_is_stored(catalogue, server, home: Path) -> None:
    catalogue(server.source(PATH, CONTENT, size=5))
    with pytest.raises(HubError, match="the server offers 1,048,576 bytes, 5 are expected"):
        hub.fetch("net")
    server.lengthless.add(PATH)
    with pytest.raises(HubError, match="the server sends more than the expected 5 bytes"):
        hub.fetch("net")
    assert sum(path.stat().st_size for path in home.rglob("*.part")) == 0


def test_cut_connection_is_taken_up_again(catalogue, server) -> None:
    server.cuts[PATH] = [400_000, 300_000]
    catalogue(server.source(PATH, CONTENT))
    assert hub.fetch("net").read_bytes() == CONTENT
    assert server.gets() == [None, "bytes=400000-", "bytes=700000-"]


def test_next_call_goes_on_where_the_last_one_stopped(catalogue, server, home: Path) -> None:
    server.cuts[PATH] = [400_000, 0]
    catalogue(server.source(PATH, CONTENT))
    with pytest.raises(HubError, match=r"the connection broke: 400,000 of 1,048,576 bytes came"):
        hub.fetch("net")
    (part,) = home.rglob("*.part")
    assert part.read_bytes() == CONTENT[:400_000]
    assert hub.fetch("net").read_bytes() == CONTENT
    assert server.gets()[2:] == ["bytes=400000-"]
    assert not part.exists()


def test_server_that_keeps_cutting(catalogue, server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "RESUMES", 3)
    server.cuts[PATH] = [10] * 5
    catalogue(server.source(PATH, CONTENT))
    with pytest.raises(
        HubError, match="the connection broke 3 times; 30 bytes are kept, pull again to go on"
    ):
        hub.fetch("net")


def test_server_without_ranges_starts_over(catalogue, server) -> None:
    server.cuts[PATH] = [400_000]
    server.rangeless.add(PATH)
    catalogue(server.source(PATH, CONTENT))
    assert hub.fetch("net").read_bytes() == CONTENT
    assert server.gets() == [None, "bytes=400000-"]


def test_kept_bytes_of_another_content_are_dropped(catalogue, server) -> None:
    catalogue(server.source(PATH, CONTENT))
    server.files[PATH] = b"x" * len(CONTENT)  # upstream changes its mind between two calls
    server.cuts[PATH] = [1000, 0]
    with pytest.raises(HubError):
        hub.fetch("net")
    server.files[PATH] = CONTENT
    assert hub.fetch("net").read_bytes() == CONTENT
    assert server.gets()[2:] == ["bytes=1000-", None]


@pytest.mark.parametrize("tagged", [True, False])
def test_two_contents_of_an_address_without_a_hash_are_not_mixed(
    catalogue, server, home: Path, tagged: bool
) -> None:
    address = "/x.pdparams"
    if not tagged:
        server.tagless.add(address)
    catalogue({"url": server.put(address, CONTENT), "sha256": "unknown"}, form="trainable")
    # The second call asks for the rest first, and sees by the tag that it is of another content.
    for cuts in ([400_000, 0], [300_000] * (2 if tagged else 1) + [0]):
        server.cuts[address] = cuts
        with pytest.raises(HubError, match="the connection broke"):
            hub.fetch("net")
        server.files[address] = CONTENT[::-1]  # of the same size
    assert hub.fetch("net").read_bytes() == CONTENT[::-1]
    # Bytes of what is still there are taken up, where the server says that they are.
    assert server.gets()[-1] == ("bytes=300000-" if tagged else None)
    assert sorted(path.name for path in home.rglob("weights.*")) == [
        "weights.pdparams",
        "weights.pdparams.sha256",
    ]


@pytest.mark.parametrize(("size", "requests"), [(3, 0), (None, 1)])
def test_complete_part_is_not_loaded_again(server, tmp_path: Path, size: int | None, requests: int) -> None:
    address = server.put("/x", b"one")
    part = tmp_path / "x.part"
    part.write_bytes(b"one")
    assert transfer.download(address, part, size, "x") is True
    assert part.read_bytes() == b"one"
    assert len(server.log) == requests


def test_part_longer_than_the_file(server, tmp_path: Path) -> None:
    address = server.put("/x", b"one")
    part = tmp_path / "x.part"
    part.write_bytes(b"longer")
    assert transfer.download(address, part, 3, "x") is False
    assert part.read_bytes() == b"one"


def test_damaged_cache_is_replaced(catalogue, server, home: Path) -> None:
    catalogue(server.source(PATH, CONTENT))
    path = hub.fetch("net")
    path.write_bytes(b"damaged")
    assert hub.locate("net") is None
    with pytest.raises(HubError, match=rf"weights\.onnx: SHA-256 {sha(b'damaged')[:12]}… instead of"):
        hub.fetch("net", offline=True)
    assert hub.fetch("net").read_bytes() == CONTENT


def test_sources_with_different_bytes(catalogue, server, home: Path) -> None:
    """The same weights in two containers: either is accepted in the cache, under the same name."""
    catalogue(server.source("/one/a.onnx", b"one"), server.source("/two/b.onnx", b"two"))
    target = home / "weights" / "net" / "weights.onnx"
    assert hub.fetch("net") == target and target.read_bytes() == b"one"
    target.write_bytes(b"two")
    assert hub.fetch("net") == target and target.read_bytes() == b"two"
    assert len(server.log) == 1


def test_other_files_of_an_entry(catalogue, server, home: Path) -> None:
    catalogue(server.source(PATH, CONTENT), dict=[server.source("/en_dict.txt", b"a\nb\n")])
    assert hub.fetch("net", "dict") == home / "weights" / "net" / "dict.txt"
    assert hub.locate("net") is None
    server.files.clear()
    with pytest.raises(HubError, match="oar models pull net` where"):
        hub.fetch("net")
    (home / "weights" / "net" / "dict.txt").unlink()
    with pytest.raises(HubError, match="oar models pull net --all-files`"):
        hub.fetch("net", "dict")


def test_unknown_hash_is_pinned_at_the_first_download(catalogue, server, home: Path, caplog) -> None:
    catalogue({"url": server.put("/x.pdparams", b"one"), "sha256": "unknown"}, form="trainable")
    path = hub.fetch("net")
    pin = path.with_name("weights.pdparams.sha256")
    assert pin.read_text(encoding="utf-8") == f"{sha(b'one')}  weights.pdparams\n"
    assert "no SHA-256 is published" in caplog.text
    assert hub.fetch("net") == path and len(server.log) == 1
    path.write_bytes(b"two")
    assert hub.locate("net") is None  # damaged: it is not what was pinned
    assert hub.fetch("net").read_bytes() == b"one"
    path.unlink()
    server.files["/x.pdparams"] = b"new content"
    with pytest.raises(HubError, match=r"SHA-256 \w{12}… instead of \w{12}…, pinned earlier"):
        hub.fetch("net")
    path.write_bytes(b"two")
    with pytest.raises(HubError, match=r"delete .*weights\.pdparams\.sha256 to accept the new file"):
        hub.verify(path, hub.entry("net").files["weights"].sources[0])
    pin.unlink()
    path.unlink()
    assert hub.fetch("net").read_bytes() == b"new content"


def test_a_published_md5_sum_is_that_of_the_download(catalogue, server, home: Path) -> None:
    source = {"url": server.put("/x.pdparams", b"one"), "sha256": "unknown"}
    catalogue({**source, "md5": hashlib.md5(b"two").hexdigest()}, form="trainable")
    with pytest.raises(HubError, match=r"MD5 f97c5d29941bfb1b2fdab0874906ab82 instead of b8a9f715dbb64fd5"):
        hub.fetch("net")
    assert not list((home / "weights" / "net").glob("*.pdparams*"))
    catalogue({**source, "md5": hashlib.md5(b"one").hexdigest()}, form="trainable")
    assert hub.fetch("net").read_bytes() == b"one"


# --- several at once --------------------------------------------------------------------------------------------------


def test_processes_and_threads_download_once(catalogue, server, start_fetch) -> None:
    server.gates[PATH] = threading.Event()
    folder = catalogue(server.source(PATH, CONTENT))
    processes = [start_fetch(folder) for _ in range(2)]  # each is about to fetch when this returns
    got: list[bytes] = []
    threads = [threading.Thread(target=lambda: got.append(hub.fetch("net").read_bytes())) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert server.started.wait(20)
    time.sleep(0.3)  # all four are at it now; the file comes when the gate opens
    server.gates[PATH].set()
    for process in processes:
        out, err = process.communicate(timeout=30)
        assert process.returncode == 0, err
        assert Path(out.strip()).read_bytes() == CONTENT
    for thread in threads:
        thread.join(30)
    assert got == [CONTENT, CONTENT]
    assert server.gets() == [None]


def test_killed_download_leaves_no_lock(catalogue, server, start_fetch, home: Path) -> None:
    content = CONTENT * 2  # half of it is more than the reader's buffer
    gate = server.gates[PATH] = threading.Event()
    folder = catalogue(server.source(PATH, content))
    process = start_fetch(folder)
    assert server.started.wait(20)
    process.kill()
    process.communicate(timeout=30)
    gate.set()
    assert hub.fetch("net").read_bytes() == content


# --- Hugging Face -----------------------------------------------------------------------------------------------------


def test_hugging_face(catalogue, hf, home: Path, request) -> None:
    hf.put("/owner/repo/resolve/rev1/sub/x.onnx", CONTENT)
    catalogue({"hf": "owner/repo", "file": "sub/x.onnx", "revision": "rev1", "sha256": sha(CONTENT)})
    path = hub.fetch("net")
    assert path == home / "weights" / "net" / "weights.onnx"
    assert path.read_bytes() == CONTENT
    assert sorted(p.name for p in path.parent.iterdir()) == [".lock", "weights.onnx"]
    request.getfixturevalue("no_socket")
    assert hub.fetch("net") == path


def test_hugging_face_wrong_content_and_missing_file(catalogue, hf) -> None:
    hf.put("/owner/repo/resolve/main/x.onnx", b"other")
    source = {"hf": "owner/repo", "file": "x.onnx", "sha256": sha(CONTENT)}
    catalogue(source)
    with pytest.raises(HubError, match=r"hf://owner/repo/x\.onnx@main: SHA-256 \w+… instead of"):
        hub.fetch("net")
    catalogue({**source, "file": "gone.onnx"})
    with pytest.raises(HubError, match=r"hf://owner/repo/gone\.onnx@main: \w+Error: .*404"):
        hub.fetch("net")


def test_hugging_face_out_of_reach(catalogue, hf, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    catalogue({"hf": "owner/repo", "file": "x.onnx", "sha256": "0" * 64}, hf.source(PATH, CONTENT))
    assert hub.fetch("net").read_bytes() == CONTENT
    catalogue({"hf": "owner/repo", "file": "x.bin", "sha256": "0" * 64})
    with pytest.raises(HubError, match=r"hf://owner/repo/x\.bin@main: cannot connect"):
        hub.fetch("net")


def test_hugging_face_not_installed(catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    catalogue({"hf": "owner/repo", "file": "x.onnx", "sha256": "0" * 64})
    with pytest.raises(HubError, match="the package huggingface-hub is not installed"):
        hub.fetch("net")


@pytest.mark.parametrize("target", ["http://example.com/x.onnx", "ftp://127.0.0.1/x.onnx"])
def test_a_redirect_to_where_the_content_could_be_changed_is_not_followed(
    catalogue, server, home: Path, target: str
) -> None:
    server.redirects["/r.onnx"] = target
    catalogue({"url": f"{server.root}/r.onnx", "sha256": "unknown"})
    with pytest.raises(HubError, match=f"the server leads to {target}"):
        hub.fetch("net")
    assert not list(home.rglob("weights.onnx"))


def test_a_redirect_on_this_machine_is_followed(catalogue, server, home: Path) -> None:
    server.redirects["/r.onnx"] = server.put(PATH, CONTENT)
    catalogue({"url": f"{server.root}/r.onnx", "sha256": "unknown"})
    assert hub.fetch("net").read_bytes() == CONTENT


def test_https_never_leads_to_http(monkeypatch: pytest.MonkeyPatch) -> None:
    import urllib.request

    def opened(self, request, **kwargs):  # as where the server answers 302
        (handler,) = [one for one in self.handlers if type(one).__name__ == "Redirects"]
        return handler.redirect_request(request, io.BytesIO(), 302, "", {}, "http://127.0.0.1/x")

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", opened)
    with pytest.raises(transfer.RedirectRefused, match="from https to http://127"):
        transfer.open_url("https://localhost/x", {})


def test_a_file_without_a_size_has_an_end(
    catalogue, server, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "LIMIT", 300_000)
    catalogue({"url": server.put(PATH, CONTENT), "sha256": "unknown"})
    with pytest.raises(HubError, match=r"offers 1,048,576 bytes, at most 300,000 are taken"):
        hub.fetch("net")
    server.lengthless.add(PATH)
    with pytest.raises(HubError, match=r"sends more than 300,000 bytes and does not say how many"):
        hub.fetch("net")
    assert sum(path.stat().st_size for path in home.rglob("*.part")) == 0


@pytest.mark.parametrize("lengthless", [False, True])
def test_the_disk_is_not_filled(
    catalogue, server, home: Path, monkeypatch: pytest.MonkeyPatch, lengthless: bool
) -> None:
    monkeypatch.setattr(transfer, "free_bytes", lambda path: 1000 if lengthless else transfer.SPARE + 1000)
    if lengthless:
        server.lengthless.add(PATH)
    catalogue(server.source(PATH, CONTENT) if lengthless else server.source(PATH, CONTENT, size=len(CONTENT)))
    with pytest.raises(HubError, match="the disk has"):
        hub.fetch("net")


def test_a_server_that_sends_next_to_nothing_is_left(
    catalogue, server, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "_SLOW_SECONDS", -1.0)
    monkeypatch.setattr(transfer, "SLOWEST", 1 << 60)
    catalogue(server.source(PATH, CONTENT))
    with pytest.raises(HubError, match=r"bytes in 0 seconds; pull again"):
        hub.fetch("net")


def test_who_waits_for_another_download_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "oar.hub")
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with transfer.locked(tmp_path / ".lock"):
            held.set()
            release.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    threading.Timer(0.3, release.set).start()
    with transfer.locked(tmp_path / ".lock"):
        pass
    thread.join()
    assert caplog.text.count("another process downloads into") == 1


@pytest.mark.parametrize("bypassed", [False, True])
def test_a_socks_proxy_is_named(catalogue, server, monkeypatch: pytest.MonkeyPatch, bypassed: bool) -> None:
    """urllib would speak HTTP to it, and tell of an answer that did not come."""
    catalogue(server.source(PATH, CONTENT))
    monkeypatch.setenv("http_proxy", "socks5h://me:secret@127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1" if bypassed else "")
    if bypassed:
        assert hub.fetch("net").read_bytes() == CONTENT
        return
    with pytest.raises(HubError, match=r"socks5h://127\.0\.0\.1 speaks SOCKS") as error:
        hub.fetch("net")
    assert "secret" not in message(error)
