"""`python -m zoo`: output, exit status, and never a traceback for what a user can cause."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from framework.hub import store as hub
from framework.hub.commands import main

REPO = Path(__file__).resolve().parents[4]


@pytest.fixture
def net(catalogue, server):
    """One entry with weights and a dictionary, both on the server."""
    catalogue(server.source("/x.onnx", b"weights", size=7), dict=[server.source("/dict.txt", b"a\n")])
    return server


def test_list(net, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["name", "family", "form", "licence", "MB", "hash", "here"]
    assert row.split() == ["net", "Nets", "deploy", "Apache-2.0", "0.0", "published", "-"]
    hub.fetch("net")
    assert main(["list", "--domain", "ocr"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[-1] == "yes"
    assert main(["list", "--domain", "nlp"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_list_json(net, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    row = {
        "name": "net",
        "family": "Nets",
        "domain": "ocr",
        "form": "deploy",
        "licence": "Apache-2.0",
        "path": None,
        "hash": "published",
        "sha256": hashlib.sha256(b"weights").hexdigest(),
        "size": 7,
    }
    assert json.loads(capsys.readouterr().out) == [row]
    hub.fetch("net")
    assert main(["list", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert Path(row["path"]) == home / "weights" / "net" / "weights.onnx"


def test_list_of_what_reads_a_language(capsys: pytest.CaptureFixture[str]) -> None:
    def names(*arguments: str) -> list[str]:
        assert main(["list", *arguments]) == 0
        return [row.split()[0] for row in capsys.readouterr().out.splitlines()[1:]]

    assert names("--lang", "ar") == ["arabic_pp_ocrv4_mobile_rec", "arabic_pp_ocrv5_mobile_rec"]
    assert names("--lang", "korean") == ["korean_pp_ocrv4_mobile_rec", "korean_pp_ocrv5_mobile_rec"]
    assert "eslav_pp_ocrv5_mobile_rec" in names("--lang", "ru,en") and "pp_ocrv6_small_rec" in names(
        "--lang", "de"
    )
    assert main(["list", "--lang", "de,ru"]) == 1
    assert (
        "no weights of the index read all of these languages\n  received: de, ru" in capsys.readouterr().err
    )
    assert main(["list", "--lang", "os"]) == 1
    assert "nearest: cyrillic_pp_ocrv5_mobile_rec lacks ӕ of os" in capsys.readouterr().err
    assert main(["list", "--lang", "germam"]) == 1
    assert "did you mean 'german'" in capsys.readouterr().err
    assert main(["show", "cyrillic_pp_ocrv5_mobile_rec"]) == 0
    out = capsys.readouterr().out
    assert "languages: abq, ady, " in out and "lacks of os: ӕ\n" in out


def test_show(net, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "net"]) == 0
    out = capsys.readouterr().out
    assert "licence: Apache-2.0\n" in out
    assert "weights: not on this machine\n" in out
    assert f"  {net.root}/x.onnx\n    7 bytes, SHA-256 {hashlib.sha256(b'weights').hexdigest()}\n" in out


def test_show_shipped_entries(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in hub.entries():
        assert main(["show", name]) == 0
    out = capsys.readouterr().out
    assert "score: Hmean % 84.1 on PaddleOCR in-house, not public (PaddleOCR documentation)\n" in out
    assert "size not known, no published hash: pinned at the first download\n" in out
    assert 'preprocess: {"color": "bgr"' in out


def test_pull(net, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = home / "weights" / "net"
    assert main(["pull", "net"]) == 0
    assert capsys.readouterr().out == f"weights: {folder / 'weights.onnx'}\n"
    assert main(["pull", "net", "--all-files"]) == 0
    assert capsys.readouterr().out == f"weights: {folder / 'weights.onnx'}\ndict: {folder / 'dict.txt'}\n"
    assert len(net.log) == 2


def test_pull_that_fails(net, capsys: pytest.CaptureFixture[str]) -> None:
    net.files.clear()
    assert main(["pull", "net"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: net (weights): the weights cannot be had\n")
    assert "HTTP 404" in captured.err and "Traceback" not in captured.err


def test_verify(net, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "net"]) == 1
    assert capsys.readouterr().out == "weights: not on this machine\ndict: not on this machine\n"
    path = hub.fetch("net")
    assert main(["verify", "net"]) == 0
    assert capsys.readouterr().out == f"weights: ok, {path}\ndict: not on this machine\n"
    stamp = path.stat().st_mtime_ns
    path.write_bytes(b"WEIGHTS")
    os.utime(path, ns=(stamp, stamp))
    assert (
        hub.locate("net") == path
    )  # size and time stamp are the old ones: only `verify` reads the bytes again
    assert main(["verify", "net"]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"weights: damaged\n  {path}: SHA-256 ")
    assert hub.locate("net") is None  # and what it found is remembered


def test_verify_says_that_a_hash_is_not_published(
    catalogue, server, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue({"url": server.put("/x.pdparams", b"one"), "sha256": "unknown"}, form="trainable")
    path = hub.fetch("net")
    assert main(["verify", "net"]) == 0
    pin = hashlib.sha256(b"one").hexdigest()
    said = f"weights: ok (as first downloaded; no hash is published), {path}\n  pinned: SHA-256 {pin}\n"
    assert capsys.readouterr().out == said


def test_a_row_without_a_hash_says_whether_it_was_fetched(
    catalogue, server, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue({"url": server.put("/x.pdparams", b"one"), "sha256": "unknown"}, form="trainable")

    def row() -> dict:
        assert main(["list", "--json"]) == 0
        return json.loads(capsys.readouterr().out)[0]

    assert (row()["hash"], row()["sha256"], row()["size"]) == ("never fetched", None, None)
    assert main(["verify"]) == 0
    assert capsys.readouterr().out == "0 of 1 entries have files on this machine\n"
    hub.fetch("net")
    pin = hashlib.sha256(b"one").hexdigest()
    assert (row()["hash"], row()["sha256"], row()["size"]) == ("pinned", pin, 3)
    assert main(["list"]) == 0
    assert "  pinned  " in capsys.readouterr().out
    assert main(["verify"]) == 0
    assert "net:\n  weights: ok" in (out := capsys.readouterr().out)
    assert f"    pinned: SHA-256 {pin}\n1 of 1 entries" in out
    (home / "weights" / "net" / "weights.pdparams").write_bytes(b"two")
    assert main(["verify"]) == 1
    assert "weights: damaged" in capsys.readouterr().out


def test_a_row_with_a_hash_and_no_size_says_that_it_was_never_fetched(
    catalogue, server, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sha256 = hashlib.sha256(b"one").hexdigest()
    catalogue({"url": server.put("/x.pdparams", b"one"), "sha256": sha256}, form="trainable")

    def row() -> dict:
        assert main(["list", "--json"]) == 0
        return json.loads(capsys.readouterr().out)[0]

    assert (row()["hash"], row()["sha256"], row()["size"]) == ("published, never fetched", sha256, None)
    hub.fetch("net")
    assert (row()["hash"], row()["size"]) == ("published", 3)


def test_every_shipped_row_has_a_licence_and_a_hash_or_was_never_fetched(home: Path) -> None:
    for name, item in hub.entries().items():
        assert item.licence, name
        for file in item.files:
            facts = hub.file_facts(name, file)
            complete = facts.sha256 and facts.size
            states = ("published",) if complete else ("never fetched", "published, never fetched")
            assert facts.state in states, name
            assert facts.state.startswith("published") == (facts.sha256 is not None), name


def test_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("show", "pull", "verify"):
        assert main([command, "pp_ocrv6_smal_det"]) == 1
        assert "did you mean 'pp_ocrv6_small_det'?" in capsys.readouterr().err


def test_broken_index(catalogue, capsys: pytest.CaptureFixture[str]) -> None:
    folder = catalogue({"path": "x", "sha256": "0" * 64})
    (folder / "nets.yml").write_text("family: 1\n", encoding="utf-8")
    assert main(["list"]) == 1
    assert "nets.yml.family: wrong type" in capsys.readouterr().err


def test_interrupt(net, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*args: object) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(hub, "fetch", interrupt)
    assert main(["pull", "net"]) == 130
    assert "pull again to go on" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [[], ["pull"], ["list", "--domain", "audio"], ["drop", "net"]])
def test_wrong_usage(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 2
    assert "usage: python -m zoo" in capsys.readouterr().err


def _run(*argv: str, **options) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": str(REPO), "PYTHONUTF8": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "zoo", *argv], env=env, text=True, encoding="utf-8", **options
    )


def test_as_a_process(home: Path) -> None:
    with _run("list", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "pp_ocrv6_small_det" in out


@pytest.mark.skipif(sys.platform == "win32", reason="Windows reports a closed pipe differently")
def test_reader_that_goes_away(home: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with _run("list", stdout=writer, stderr=subprocess.PIPE) as process:
        os.close(writer)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
