"""The weights hub: which files a model needs, where they come from, and how they reach this machine.

Each `zoo/weights/*.yml` describes one family:

    family: PP-OCRv6
    domain: ocr                        # ocr | detection | segmentation | nlp
    homepage: https://…
    licence: Apache-2.0                # SPDX; an entry may override it
    entries:
      pp_ocrv6_small_rec:              # lower-case letters, digits and _: it is a folder's name too
        form: deploy                   # deploy (re-parameterised, for inference) | trainable
        files:
          weights:                     # every entry has it; others (dict, program, …) as the model needs
            sources:                   # in order of preference
              - {package: rapidocr, path: models/x.onnx, size: 123, sha256: …}        # a file of an installed package
              - {hf: owner/repo, file: x.onnx, revision: …, size: 123, sha256: …}     # through huggingface-hub
              - {url: https://…, size: 123, sha256: …}
              - {path: /mnt/models/x.onnx, sha256: …}                                 # `~` works
        model: {…}                     # these four are opaque to the hub: the domain that builds the model reads them
        preprocess: {…}
        precision: {…}
        scores: [{set: …, metric: …, value: …, source: …}]

A hash belongs to a source, not to a file: the same weights are published in several containers with different bytes.
Where upstream publishes no hash and none was measured, the source says `sha256: unknown` (only hf and url may). Such a
file is pinned at its first download: its hash is written beside it and every later use is checked against that; `show`
and `verify` say so.

`fetch` looks into the cache, then at local sources, and only then sends a request. Files are verified, then moved into
place in one step; a cut download goes on where it stopped; two processes never write the same file.
A file's hash is remembered by its size and time stamp, so that it is not computed at each start.

Environment: `OAR_HOME` (the cache), `OAR_OFFLINE=1` or `HF_HUB_OFFLINE=1` (never send a request).
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import logging
import os
import re
import sys
import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from framework.core.errors import ConfigError, HubError, nearest
from zoo import _transfer

WEIGHTS_DIR = Path(__file__).parent / "weights"
DOMAINS = ("ocr", "detection", "segmentation", "nlp")
FORMS = ("deploy", "trainable")

_log = logging.getLogger("oar.zoo")
_HEX = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[a-z0-9][a-z0-9_]*")
_REPO = re.compile(r"[\w.-]+/[\w.-]+")
# Which keys a source of each kind has; the first names the kind. `path` comes last: package sources have one as well.
_SOURCE_KEYS = {"package": ("path",), "hf": ("file", "revision"), "url": (), "path": ()}


@dataclass(frozen=True)
class Source:
    """One place where a file can be had. `sha256` None means that its hash is not known beforehand."""

    kind: str  # package | hf | url | path
    where: str  # the package, owner/repository, address or path
    file: str = ""  # the file in the package or repository, with forward slashes
    revision: str = "main"  # hf only
    sha256: str | None = None
    size: int | None = None  # bytes

    @property
    def is_local(self) -> bool:
        return self.kind in ("package", "path")

    @property
    def filename(self) -> str:
        """The last part of the address, reduced to characters that every file system takes."""
        location = urllib.parse.urlsplit(self.where).path if self.kind == "url" else self.file or self.where
        last = urllib.parse.unquote(location).replace("\\", "/").rpartition("/")[2]
        return re.sub(r"[^A-Za-z0-9._-]", "_", last).strip(".") or "file"

    def __str__(self) -> str:
        if self.kind == "package":
            return f"package {self.where}: {self.file}"
        if self.kind == "hf":
            return f"hf://{self.where}/{self.file}@{self.revision}"
        return self.where


@dataclass(frozen=True)
class File:
    """One file of an entry and its sources, best first."""

    name: str
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Entry:
    """One set of weights. The mappings `model`, `preprocess` and `precision` mean nothing to the hub."""

    name: str
    family: str
    domain: str
    licence: str
    homepage: str
    form: str
    files: Mapping[str, File]
    model: Mapping[str, Any] = field(default_factory=dict)
    preprocess: Mapping[str, Any] = field(default_factory=dict)
    precision: Mapping[str, Any] = field(default_factory=dict)
    scores: tuple[Mapping[str, Any], ...] = ()


# --- the index ---------------------------------------------------------------------------------------------------


def entries(domain: str | None = None) -> dict[str, Entry]:
    """All entries by name, or those of one domain.

    Raises:
        ConfigError: a file of `zoo/weights` is not well formed.
    """
    index = _index(WEIGHTS_DIR)
    return {name: item for name, item in index.items() if domain in (None, item.domain)}


def entry(name: str) -> Entry:
    """The entry called `name`.

    Raises:
        HubError: there is none; the message names the closest one.
    """
    index = entries()
    if name not in index:
        close = nearest(name, index)
        raise HubError(
            "there are no weights of this name",
            where="zoo.hub",
            received=repr(name),
            allowed="a name that `python -m zoo list` shows",
            fix=f"did you mean {close!r}?" if close else "run `python -m zoo list`",
        )
    return index[name]


@functools.cache
def _index(folder: Path) -> dict[str, Entry]:
    index: dict[str, Entry] = {}
    for path in sorted(folder.glob("*.yml")):
        for name, item in read_family(path).items():
            if name in index:
                raise ConfigError(
                    "the entry's name is taken by another family",
                    where=f"{path}: {name}",
                    received=index[name].family,
                )
            index[name] = item
    return index


def read_family(path: Path) -> dict[str, Entry]:
    """Reads and checks one `zoo/weights/*.yml`.

    Raises:
        ConfigError: with the file, the key, what was received and what is allowed.
    """
    try:
        document = yaml.load(
            path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        )
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ConfigError(
            "not well-formed YAML",
            where=f"{path}:{mark.line + 1}" if mark else path,
            received=getattr(error, "problem", None) or error,
        ) from None
    top = _mapping(
        document,
        str(path),
        {"family": str, "domain": str, "homepage": str, "licence": str, "entries": dict},
        {},
    )
    _one_of(top["domain"], DOMAINS, f"{path}: domain")
    found = {}
    for name, body in top["entries"].items():
        where = f"{path}: {name}"
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigError(
                "not an entry's name",
                where=where,
                received=repr(name),
                allowed="lower-case letters, digits and _",
            )
        body = _mapping(
            body,
            where,
            {"form": str, "files": dict},
            {"licence": str, "model": dict, "preprocess": dict, "precision": dict, "scores": list},
        )
        _one_of(body["form"], FORMS, f"{where}.form")
        if "weights" not in body["files"]:
            raise ConfigError(
                "the file `weights` is missing",
                where=f"{where}.files",
                received=", ".join(map(str, body["files"])),
            )
        scores = {"set": str, "metric": str, "value": (int, float), "source": str}
        found[name] = Entry(
            name=name,
            family=top["family"],
            domain=top["domain"],
            licence=body.get("licence", top["licence"]),
            homepage=top["homepage"],
            form=body["form"],
            files={key: _file(key, value, f"{where}.files.{key}") for key, value in body["files"].items()},
            model=body.get("model", {}),
            preprocess=body.get("preprocess", {}),
            precision=body.get("precision", {}),
            scores=tuple(
                _mapping(score, f"{where}.scores[{i}]", scores, {})
                for i, score in enumerate(body.get("scores", []))
            ),
        )
    return found


def _file(name: Any, body: Any, where: str) -> File:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            "not a file's name", where=where, received=repr(name), allowed="lower-case letters, digits and _"
        )
    sources = _mapping(body, where, {"sources": list}, {})["sources"]
    if not sources:
        raise ConfigError(
            "no sources", where=f"{where}.sources", received="[]", allowed="at least one source"
        )
    return File(name, tuple(_source(item, f"{where}.sources[{i}]") for i, item in enumerate(sources)))


def _source(body: Any, where: str) -> Source:
    kind = next((key for key in _SOURCE_KEYS if isinstance(body, dict) and key in body), None)
    if kind is None:
        raise ConfigError(
            "not a source",
            where=where,
            received=body,
            allowed=f"a mapping with one of {', '.join(_SOURCE_KEYS)}",
        )
    keys = _SOURCE_KEYS[kind]
    required = {key: str for key in (kind, "sha256", *keys) if key != "revision"}
    body = _mapping(body, where, required, {"size": int, **{key: str for key in keys if key == "revision"}})
    sha256 = body["sha256"]
    if sha256 == "unknown" and kind in ("hf", "url"):
        sha256 = None
    elif not _HEX.fullmatch(sha256):
        raise ConfigError(
            "not a SHA-256",
            where=f"{where}.sha256",
            received=repr(sha256),
            allowed="64 lower-case hex digits" + (", or `unknown`" if kind in ("hf", "url") else ""),
        )
    source = Source(
        kind,
        body[kind],
        body.get("file") or body.get("path", ""),
        body.get("revision", "main"),
        sha256,
        body.get("size"),
    )
    if kind == "path":
        source = Source(kind, body["path"], sha256=sha256, size=body.get("size"))
    if kind == "url":
        _check_scheme(source, where)
    if kind == "hf" and not _REPO.fullmatch(source.where):
        raise ConfigError(
            "not a repository", where=f"{where}.hf", received=repr(source.where), allowed="owner/name"
        )
    if kind == "package" and (not source.where.isidentifier() or ".." in source.file.split("/")):
        raise ConfigError(
            "not a file of a package",
            where=where,
            received=str(source),
            allowed="a top-level package and a path inside it",
        )
    return source


def _check_scheme(source: Source, where: str) -> None:
    parts = urllib.parse.urlsplit(source.where)
    loopback = parts.hostname in ("127.0.0.1", "::1", "localhost")
    if parts.scheme == "https" or (parts.scheme == "http" and (source.sha256 or loopback)):
        return
    raise ConfigError(
        "the address is not safe to fetch",
        where=where,
        received=source.where,
        allowed="https://…, or http://… whose SHA-256 is known",
        fix="use https, or name the hash (`#sha256=…` after an address given as weights)",
    )


def _mapping(
    value: Any, where: str, required: Mapping[str, Any], optional: Mapping[str, Any]
) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError("a mapping is needed here", where=where, received=repr(value))
    known = {**required, **optional}
    for key, item in value.items():
        if key not in known:
            close = nearest(str(key), known)
            raise ConfigError(
                f"unknown key {key!r}",
                where=where,
                allowed=", ".join(known),
                fix=f"did you mean {close!r}?" if close else None,
            )
        if not isinstance(item, known[key]) or isinstance(item, bool):
            types = known[key] if isinstance(known[key], tuple) else (known[key],)
            raise ConfigError(
                "wrong type",
                where=f"{where}.{key}",
                received=repr(item),
                allowed=" or ".join(t.__name__ for t in types),
            )
    missing = [key for key in required if key not in value]
    if missing:
        raise ConfigError(f"missing: {', '.join(missing)}", where=where, received=", ".join(map(str, value)))
    return value


def _one_of(value: str, allowed: Iterable[str], where: str) -> None:
    if value not in allowed:
        raise ConfigError(
            "not one of the known values", where=where, received=repr(value), allowed=", ".join(allowed)
        )


# --- what is on this machine -------------------------------------------------------------------------------------


def cache_dir() -> Path:
    """Where downloads and verification records live: `OAR_HOME`, or the platform's cache folder. Not created here."""
    if home := os.environ.get("OAR_HOME"):
        return Path(home).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "oar"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "oar"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oar"


def digest(path: Path, fresh: bool = False) -> str:
    """The file's SHA-256, from the record of an earlier call if size and time stamp are still the same.

    Args:
        fresh: read the file in any case.
    """
    path = path.resolve()
    record = cache_dir() / "verified" / f"{hashlib.sha256(str(path).encode()).hexdigest()[:32]}.json"
    stat = path.stat()
    state = {"path": str(path), "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    if not fresh:
        try:
            stored = json.loads(record.read_text(encoding="utf-8"))
            if stored == {**state, "sha256": stored["sha256"]}:
                return stored["sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            pass  # no record, or not one of ours: compute it
    sha256 = _transfer.sha256_of(path)
    try:
        _write(record, json.dumps({**state, "sha256": sha256}))
    except OSError:
        _log.debug("cannot keep the verification record %s", record)
    return sha256


def verify(path: Path, source: Source, fresh: bool = False) -> str:
    """Checks that `path` holds the bytes of `source` and returns their SHA-256.

    A source without a known hash is compared with the one written down at the first download, if there is one.

    Args:
        fresh: read the whole file even if it was verified before and has not changed since.

    Raises:
        HubError: another size or another hash.
    """
    size = path.stat().st_size
    if source.size is not None and size != source.size:
        raise HubError(
            f"{size:,} bytes instead of {source.size:,}",
            where=path,
            allowed=f"the file from {source}",
            fix="delete the file and pull it again",
        )
    expected = source.sha256 or _pinned(path)
    sha256 = digest(path, fresh)
    if expected is not None and sha256 != expected:
        raise HubError(
            f"SHA-256 {sha256[:12]}… instead of {expected[:12]}…",
            where=path,
            received=sha256,
            allowed=f"{expected}, the file from {source}",
            fix="delete the file and pull it again",
        )
    return sha256


def _pin(path: Path, sha256: str) -> None:
    _write(path.with_name(path.name + ".sha256"), f"{sha256}  {path.name}\n")


def _pinned(path: Path) -> str | None:
    try:
        text = path.with_name(path.name + ".sha256").read_text(encoding="utf-8")
    except OSError:
        return None
    return text[:64] if _HEX.fullmatch(text[:64]) else None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def look(name: str, file: str = "weights", fresh: bool = False) -> tuple[Path | None, list[str]]:
    """Looks for a file on this machine; sends nothing.

    Returns:
        The verified file or None, and the places tried before, each as `place: why not`.

    Raises:
        HubError: no such entry, or the entry has no such file.
    """
    item = entry(name)
    return _look(_file_of(item, file), _folder(item), fresh)


def locate(name: str, file: str = "weights") -> Path | None:
    """The verified file if it is on this machine (cache, installed package, path), else None. Sends nothing.

    Raises:
        HubError: no such entry, or the entry has no such file.
    """
    return look(name, file)[0]


def _folder(item: Entry) -> Path:
    return cache_dir() / "weights" / item.name


def _file_of(item: Entry, file: str) -> File:
    if file not in item.files:
        raise HubError(
            "the entry has no such file", where=item.name, received=repr(file), allowed=", ".join(item.files)
        )
    return item.files[file]


def _target(source: Source, file: File, folder: Path) -> Path:
    return folder / (file.name + Path(source.filename).suffix.lower())


def _look(file: File, folder: Path, fresh: bool = False) -> tuple[Path | None, list[str]]:
    tried: list[str] = []
    for target in dict.fromkeys(_target(source, file, folder) for source in file.sources):
        matching = [source for source in file.sources if _target(source, file, folder) == target]
        problem = _mismatch(target, matching, fresh)
        if problem is None:
            return target, tried
        tried.append(f"{target}: {problem}")
    for source in file.sources:
        if not source.is_local:
            continue
        path, problem = (
            _package_file(source) if source.kind == "package" else (Path(source.where).expanduser(), None)
        )
        if path is not None:
            problem = _mismatch(path, [source], fresh)
            if problem is None:
                return path, tried
        tried.append(f"{source}: {problem}")
    return None, tried


def _mismatch(path: Path, sources: Iterable[Source], fresh: bool) -> str | None:
    """Why `path` is none of the sources' files, or None if it is one of them."""
    problems = []
    for source in sources:
        try:
            verify(path, source, fresh)
            return None
        except FileNotFoundError:
            return "not there"
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        except HubError as error:
            problems.append(error.problem)
    return "; ".join(problems)


def _package_file(source: Source) -> tuple[Path | None, str | None]:
    """The file in an installed package, found without importing the package; or None and the reason."""
    try:
        spec = importlib.util.find_spec(source.where)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        return None, f"not installed (pip install {source.where})"
    places = [Path(place, *source.file.split("/")) for place in spec.submodule_search_locations]
    path = next((place for place in places if place.is_file()), None)
    return path, None if path else "the installed version has no such file"


# --- bringing files here -----------------------------------------------------------------------------------------


def fetch(name: str, file: str = "weights", offline: bool | None = None) -> Path:
    """A file of an entry, verified, from this machine if it is here and downloaded into the cache otherwise.

    Args:
        offline: never send a request. None asks `OAR_OFFLINE` and `HF_HUB_OFFLINE`.

    Raises:
        HubError: no such entry or file, or no source had it; the message lists every place tried, why it failed, and
            the ways to provide the file.
    """
    item = entry(name)
    wanted = _file_of(item, file)
    return _obtain(
        f"{name} ({file})", wanted, _folder(item), offline, f"run `python -m zoo pull {name}` with a network"
    )


def resolve(spec: str | Path, domain: str | None = None, offline: bool | None = None) -> Path:
    """The local file that a `weights=` value stands for.

    Args:
        spec: an entry's name; `https://…` or `hf://owner/repo/file@revision`, both with an optional `#sha256=…`; or a
            path. A string that is an entry's name is that entry: write `./name` for a file called like one.
        domain: only entries of this domain are meant.

    An address is downloaded once and then taken from the cache for good; without `#sha256=` it is pinned at its first
    download.

    Raises:
        HubError: no such file or entry, or it cannot be had.
        ConfigError: an address that is not safe to fetch, such as http without a hash.
    """
    if isinstance(spec, str):
        if "://" in spec:
            return _fetch_address(spec, offline)
        if spec in entries(domain):
            return fetch(spec, offline=offline)
    path = Path(spec).expanduser()
    if path.exists():
        return path
    elsewhere = entries().get(str(spec))
    if elsewhere is not None:
        raise HubError(
            f"these weights are for {elsewhere.domain}, not for {domain}", where="weights", received=spec
        )
    close = nearest(str(spec), entries(domain))
    raise HubError(
        "no such file, and no weights of this name",
        where="weights",
        received=repr(str(spec)),
        allowed="a path, a name of `python -m zoo list`, https://… or hf://owner/repo/file@revision",
        fix=f"did you mean {close!r}?" if close else None,
    )


def _fetch_address(spec: str, offline: bool | None) -> Path:
    address, _, fragment = spec.partition("#")
    sha256 = fragment.removeprefix("sha256=").lower() if fragment else None
    hf = re.fullmatch(r"hf://([\w.-]+/[\w.-]+)/([^@]+)(?:@(.+))?", address)
    if (sha256 is not None and not _HEX.fullmatch(sha256)) or not (
        hf or address.startswith(("https://", "http://"))
    ):
        raise HubError(
            "not an address that weights can be fetched from",
            where="weights",
            received=spec,
            allowed="https://…[#sha256=64 hex digits] or hf://owner/repo/file[@revision][#sha256=64 hex digits]",
        )
    if hf:
        source = Source("hf", hf[1], hf[2], hf[3] or "main", sha256)
    else:
        source = Source("url", address, sha256=sha256)
        _check_scheme(source, "weights")
    key = hashlib.sha256(spec.encode()).hexdigest()[:16]
    stem = Path(source.filename).stem or "file"
    return _obtain(
        spec, File(stem, (source,)), cache_dir() / "addresses" / key, offline, "download it by other means"
    )


def _offline_reason(offline: bool | None) -> str | None:
    if offline is not None:
        return "offline was asked for" if offline else None
    for variable in ("OAR_OFFLINE", "HF_HUB_OFFLINE"):
        if os.environ.get(variable, "").strip().lower() in ("1", "on", "yes", "true"):
            return f"not tried, {variable} is set"
    return None


def _obtain(label: str, file: File, folder: Path, offline: bool | None, first_fix: str) -> Path:
    found, tried = _look(file, folder)
    if found is not None:
        return found
    refused = _offline_reason(offline)
    for source in file.sources:
        if source.is_local:
            continue
        try:
            if refused:
                raise HubError(refused)
            return _bring(source, file, folder)
        except HubError as error:
            tried.append(f"{source}: {error.problem}")
        except OSError as error:
            tried.append(f"{source}: cannot write below {folder}: {error.strerror or error}")
    target = _target(file.sources[0], file, folder)
    hashes = (
        ", ".join(dict.fromkeys(source.sha256 for source in file.sources if source.sha256)) or "not known"
    )
    ways = (
        first_fix,
        f"put the file at {target} (SHA-256: {hashes})",
        "give its path instead of the name (-o …weights=PATH)",
        f"set OAR_HOME to a folder that has it (now {cache_dir()})",
    )
    raise HubError(
        "the weights cannot be had",
        where=label,
        received="\n    ".join(["these places were tried:", *tried]),
        fix="one of\n    " + "\n    ".join(ways),
    )


def _bring(source: Source, file: File, folder: Path) -> Path:
    """Downloads from one source, verifies, moves into place. Another process that does the same is waited for."""
    target = _target(source, file, folder)
    tag = hashlib.sha256(f"{source} {source.sha256}".encode()).hexdigest()[:12]
    part = folder / f"{target.name}.{tag}.part"
    with _transfer.locked(folder / ".lock"):
        if _mismatch(target, [source], fresh=False) is None:
            return target
        for _ in range(2):
            resumed = False
            if source.kind == "url":
                resumed = _transfer.download(source.where, part, source.size, target.parent.name)
            else:
                _transfer.download_hf(source.where, source.file, source.revision, part)
            try:
                sha256 = verify(part, source, fresh=True)
                break
            except HubError:
                part.unlink()
                # The kept bytes may be of an older content of the address: once more, from the start.
                if not resumed:
                    raise
        else:
            raise HubError("the content is not what it should be, twice")
        os.replace(part, target)
        if source.sha256 is None:
            _pin(target, sha256)
            _log.warning("%s: no hash is published; pinned as %s", target, sha256)
    return target
