"""The hub: what is found on this machine, and what `weights=` stands for."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from framework.core.errors import ConfigError, HubError
from framework.hub import store as hub
from framework.hub.index import Source

REPO = Path(__file__).resolve().parents[4]
CONTENT = bytes(range(256)) * 4096  # 1 MiB
PATH = "/a/net.onnx"  # where the server has it


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def message(error: pytest.ExceptionInfo[Exception]) -> str:
    return str(error.value)


# --- the record of hashes ------------------------------------------------------------------------


def test_digest_is_remembered(home: Path, tmp_path: Path, reads: list[Path]) -> None:
    path = tmp_path / "x.onnx"
    path.write_bytes(b"one")
    assert hub.digest(path) == hub.digest(path) == sha(b"one")
    assert len(reads) == 1
    assert hub.digest(path, fresh=True) == sha(b"one")
    assert len(reads) == 2
    path.write_bytes(b"two!")
    assert hub.digest(path) == sha(b"two!")
    os.utime(path, (1, 1))
    assert hub.digest(path) == sha(b"two!")
    assert len(reads) == 4


def test_broken_record_is_computed_anew(home: Path, tmp_path: Path, reads: list[Path]) -> None:
    path = tmp_path / "x.onnx"
    path.write_bytes(b"one")
    hub.digest(path)
    (record,) = (home / "verified").glob("*.json")
    for text in ("{", "[]", "{}", '{"sha256": "' + "0" * 64 + '"}'):
        record.write_text(text, encoding="utf-8")
        assert hub.digest(path) == sha(b"one")


def test_empty_file(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.write_bytes(b"")
    assert hub.verify(path, Source("path", str(path), sha256=sha(b""), size=0)) == sha(b"")


def test_verify_names_both_sizes_and_hashes(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.onnx"
    path.write_bytes(b"one")
    source = Source("url", "https://h/x.onnx", sha256=sha(b"two"), size=1234)
    with pytest.raises(
        HubError, match=r"x\.onnx: 3 bytes instead of 1,234\n.*https://h/x\.onnx\n.*pull it again"
    ):
        hub.verify(path, source)
    source = Source("url", "https://h/x.onnx", sha256=sha(b"two"))
    with pytest.raises(HubError) as error:
        hub.verify(path, source)
    assert f"SHA-256 {sha(b'one')[:12]}… instead of {sha(b'two')[:12]}…" in message(error)
    assert sha(b"one") in message(error) and sha(b"two") in message(error)


# --- local sources ----------------------------------------------------------------------------------------------------


def test_package_file_is_found_without_import(
    catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_socket: None
) -> None:
    package = tmp_path / "site" / "oar_fake_models"
    (package / "models").mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('imported')", encoding="utf-8")
    (package / "models" / "x.onnx").write_bytes(b"one")
    monkeypatch.syspath_prepend(package.parent)
    source = {"package": "oar_fake_models", "path": "models/x.onnx", "sha256": sha(b"one"), "size": 3}
    catalogue(source)
    assert hub.fetch("net") == package / "models" / "x.onnx"
    catalogue({**source, "path": "models/y.onnx"})
    _, misses = hub.look("net")
    assert str(misses[1]).startswith(
        "package oar_fake_models: models/y.onnx: not installed, or of another version"
    )
    assert "pip install oar_fake_models" in misses[1].reason
    catalogue({**source, "sha256": "0" * 64})
    assert hub.locate("net") is None
    catalogue({**source, "package": "oar_no_such_package"})
    assert hub.locate("net") is None
    catalogue({**source, "package": "sys"})  # a module that is no package
    assert hub.locate("net") is None


def test_path_source(catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_socket: None) -> None:
    (tmp_path / "x.onnx").write_bytes(b"one")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    catalogue({"path": "~/x.onnx", "sha256": sha(b"one")})
    assert hub.fetch("net") == tmp_path / "x.onnx"
    catalogue({"path": str(tmp_path), "sha256": sha(b"one")})
    _, misses = hub.look("net")
    assert misses[-1].found and "cannot be read" in misses[-1].reason


def test_local_sources_come_before_requests(catalogue, server, tmp_path: Path) -> None:
    (tmp_path / "x.onnx").write_bytes(b"one")
    catalogue(server.source(PATH, CONTENT), {"path": str(tmp_path / "x.onnx"), "sha256": sha(b"one")})
    assert hub.fetch("net") == tmp_path / "x.onnx"
    assert server.log == []


def test_file_put_into_the_cache(catalogue, home: Path, no_socket: None) -> None:
    catalogue({"url": "https://no.example/net.onnx", "sha256": sha(b"one")})
    assert hub.locate("net") is None
    target = home / "weights" / "net" / "weights.onnx"
    target.parent.mkdir(parents=True)
    target.write_bytes(b"one")
    assert hub.fetch("net") == hub.locate("net") == target


def test_cache_that_cannot_be_written(
    catalogue, server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "x.onnx").write_bytes(b"one")
    monkeypatch.setenv("OAR_HOME", str(tmp_path / "file"))
    catalogue({"path": str(tmp_path / "x.onnx"), "sha256": sha(b"one")})
    assert hub.fetch("net") == tmp_path / "x.onnx"
    catalogue(server.source(PATH, CONTENT))
    with pytest.raises(HubError, match="cannot write below"):
        hub.fetch("net")


# --- offline ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["OAR_OFFLINE", "HF_HUB_OFFLINE"])
def test_offline_variables(
    catalogue, no_socket: None, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "1")
    catalogue(
        {"hf": "owner/repo", "file": "x.onnx", "revision": "abc", "sha256": "0" * 64},
        {"url": "https://no.example/x.onnx", "sha256": "0" * 64},
    )
    with pytest.raises(HubError) as error:
        hub.fetch("net")
    assert f"hf://owner/repo/x.onnx@abc: not tried, {variable} is set" in message(error)
    assert f"https://no.example/x.onnx: not tried, {variable} is set" in message(error)
    monkeypatch.setenv(variable, "0")
    with pytest.raises(HubError, match=r"x\.onnx: not tried, offline was asked for"):
        hub.fetch("net", offline=True)


def test_offline_argument_overrides_the_variable(catalogue, server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OAR_OFFLINE", "true")
    catalogue(server.source(PATH, CONTENT))
    assert hub.fetch("net", offline=False).read_bytes() == CONTENT


# --- weights= ---------------------------------------------------------------------------------------------------------


def test_resolve_path_and_name(catalogue, server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue(server.source(PATH, CONTENT))
    monkeypatch.chdir(tmp_path)
    Path("net").write_bytes(b"a file called like the entry")
    Path("x.onnx").write_bytes(b"one")
    assert hub.resolve("x.onnx") == hub.resolve(Path("x.onnx")) == Path("x.onnx")
    assert hub.resolve(str(tmp_path)) == tmp_path
    assert (
        hub.resolve("./net").read_bytes()
        == hub.resolve(Path("net")).read_bytes()
        == b"a file called like the entry"
    )
    assert server.log == []
    assert hub.resolve("net").read_bytes() == hub.resolve("net", "ocr").read_bytes() == CONTENT
    assert hub.resolve("N-E_t").read_bytes() == CONTENT and hub.find_name("NET") == "net"


def test_resolve_errors(catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_socket: None) -> None:
    monkeypatch.chdir(tmp_path)
    catalogue({"url": "https://no.example/x", "sha256": "0" * 64}, domain="detection")
    with pytest.raises(
        HubError, match=r"no such file, and no weights of this name\n.*'nett'\n.*\n.*mean 'net'\?"
    ):
        hub.resolve("nett")
    with pytest.raises(HubError, match="weights: these weights are for detection"):
        hub.resolve("net", "ocr")
    with pytest.raises(HubError, match="no such file"):
        hub.resolve("")
    for spec in ("ftp://h/x", "hf://owner/x", "https://h/x#sha256=12", "https://h/x#md5=12"):
        with pytest.raises(
            HubError, match=f"not an address that weights can be fetched from\n.*{re.escape(spec)}"
        ):
            hub.resolve(spec)
    for spec in ("http://example.org/x.onnx", "https://", "https://[x"):
        with pytest.raises(ConfigError, match=f"not safe to fetch\n.*{re.escape(spec)}\n.*https://"):
            hub.resolve(spec)
    with pytest.raises(HubError, match="not tried, offline was asked for"):
        hub.resolve("https://example.org/x.onnx", offline=True)


def test_resolve_address(server, home: Path, request) -> None:
    address = server.put("/m/x.onnx?download=true", CONTENT)
    pinned = f"{address}#sha256={sha(CONTENT)}"
    path = hub.resolve(address)
    assert path.name == "x.onnx" and path.read_bytes() == CONTENT
    assert path.is_relative_to(home / "addresses")
    assert hub.resolve(pinned).read_bytes() == CONTENT
    assert len(server.log) == 2
    with pytest.raises(HubError, match="SHA-256"):
        hub.resolve(f"{address}#sha256={'0' * 64}")
    request.getfixturevalue("no_socket")
    assert hub.resolve(address) == path
    assert hub.resolve(pinned).read_bytes() == CONTENT


def test_resolve_hugging_face(hf, home: Path) -> None:
    hf.put("/owner/repo/resolve/v1/sub/x.safetensors", CONTENT)
    hf.put("/owner/repo/resolve/main/x.safetensors", b"main")
    assert hub.resolve("hf://owner/repo/sub/x.safetensors@v1").read_bytes() == CONTENT
    assert hub.resolve(f"hf://owner/repo/sub/x.safetensors@v1#sha256={sha(CONTENT)}").name == "x.safetensors"
    assert hub.resolve("hf://owner/repo/x.safetensors").read_bytes() == b"main"


# --- import -----------------------------------------------------------------------------------------------------------


def test_import_is_light() -> None:
    """Everything heavy waits for a real download."""
    heavy = ("numpy", "jax", "huggingface_hub", "tqdm", "urllib.request", "http.client", "ssl")
    code = (
        f"import sys, framework.hub; framework.hub.entries(); print([m for m in {heavy} if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPO,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        encoding="utf-8",
    )
    assert result.stdout.strip() == "[]"
