"""The weights hub: brings the files that a model needs to this machine, and finds them there.

`weights/*.yml` of the zoo and of each domain's package says where each file can be had (`index.py` describes the
form). `fetch` looks into the cache, then
at local sources (installed packages, paths), and only then sends a request. Files are verified by SHA-256, then moved
into place in one step; a cut download goes on where it stopped; two processes never write the same file. A file's hash
is remembered together with its size and time stamp, so that it is not computed at each start.

A source without a known hash (`sha256: unknown`, or an address given without `#sha256=`) is pinned at its first
download: the hash is written beside the file, and every later use and every new download must agree with it.

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
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from framework.config.domains import domain_packages
from framework.core.bounded import SETTINGS, check_mapping, read_json, read_text
from framework.core.disk import free_bytes, write_file
from framework.core.errors import ConfigError, FormatError, HubError, did_you_mean
from framework.core.home import home
from framework.hub import transfer
from framework.hub.archive import extract_member
from framework.hub.index import HEX, Entry, File, Source, check_scheme, read_family

_log = logging.getLogger("oar.hub")


# --- the index ---------------------------------------------------------------------------------------------------


def index_folders() -> tuple[Path, ...]:
    """The folders `weights` of the zoo and of the packages of all domains."""
    folders = []
    for package in dict.fromkeys(("zoo", *domain_packages().values())):
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations if spec else None) or ():
            folders.append(Path(place) / "weights")
    return tuple(folders)


def entries(domain: str | None = None) -> dict[str, Entry]:
    """All entries by name, or those that one domain can use: its own and the zoo's.

    Raises:
        ConfigError: a file of the index is not well formed.
    """
    return {
        name: item
        for name, item in _index(index_folders()).items()
        if domain is None or item.domain in (domain, "zoo")
    }


def plain_name(name: str) -> str:
    """A name without what spellings differ in: the case of letters, `_`, `-` and `.`."""
    return re.sub(r"[_.\-]", "", name.lower())


def find_name(name: str, domain: str | None = None) -> str | None:
    """The name of the entry that `name` spells, maybe as Paddle does: "PP-LCNet_x0_25" for "pp_lcnet_x0_25"."""
    index = entries(domain)
    if name in index:
        return name
    return {plain_name(entry_name): entry_name for entry_name in index}.get(plain_name(name))


def entry(name: str) -> Entry:
    """The entry called `name`.

    Raises:
        HubError: there is none; the message names the closest one.
    """
    index = _index(index_folders())
    if name not in index:
        raise HubError(
            "there are no weights of this name",
            where="framework.hub",
            received=repr(name),
            allowed="a name that `oar models list` shows",
            fix=did_you_mean(name, index) or "run `oar models list`",
        )
    return index[name]


@functools.cache
def _index(folders: tuple[Path, ...]) -> dict[str, Entry]:
    index: dict[str, Entry] = {}
    for path in sorted(
        (path for folder in folders for path in folder.glob("*.yml")), key=lambda path: path.name
    ):
        for name, item in read_family(path).items():
            if name in index:
                raise ConfigError(
                    "the entry's name is taken by another family",
                    where=f"{path}: {name}",
                    received=index[name].family,
                )
            index[name] = item
    return index


@dataclass(frozen=True)
class Miss:
    """A place where a file was looked for in vain. `found`: something is there, but it is not the file."""

    place: str
    reason: str
    found: bool = False

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


# --- what is on this machine -------------------------------------------------------------------------------------


def digest(path: Path, fresh: bool = False) -> str:
    """The file's SHA-256, from the record of an earlier call if size and time stamp are still the same.

    Args:
        fresh: read the file in any case.
    """
    if not fresh:
        try:
            record = check_mapping(read_json(_record(path)), path, "record")
            if record == {**_state(path), "sha256": record["sha256"]}:
                return record["sha256"]
        except (OSError, FormatError, KeyError):
            pass  # no record, or not one of ours: read the file
    state = _state(path)
    sha256 = transfer.sha256_of(path)
    _remember(path, state, sha256)
    return sha256


def _record(path: Path) -> Path:
    key = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32]
    return home() / "verified" / f"{key}.json"


def _state(path: Path) -> dict[str, object]:
    stat = path.stat()
    return {"path": str(path.resolve()), "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}


def _remember(path: Path, state: dict[str, object], sha256: str) -> None:
    try:
        _write(_record(path), json.dumps({**state, "sha256": sha256}))
    except OSError as error:  # a cache that cannot be written costs time, nothing else
        _log.debug("no verification record for %s: %s", path, error)


def _write(path: Path, text: str) -> None:
    write_file(path, text.encode("utf-8"))


def verify(path: Path, source: Source, fresh: bool = False) -> str:
    """Checks that `path` holds the bytes of `source` and returns their SHA-256.

    A source without a known hash is compared with the hash pinned beside the file, if there is one.

    Args:
        fresh: read the whole file even if it was verified before and has not changed since.

    Raises:
        HubError: another size or another hash.
        OSError: the file is not there or cannot be read.
    """
    if not source.is_member:
        _check_size(path, source)
    sha256 = digest(path, fresh)
    _check_hash(path, _published(source) or _pinned(path), sha256, source)
    return sha256


def _published(source: Source) -> str | None:
    """The hash that is known of the file before it is here; of an archive's member none is."""
    return None if source.is_member else source.sha256


def _check_size(path: Path, source: Source) -> None:
    size = path.stat().st_size
    if source.size not in (None, size):
        raise HubError(
            f"{size:,} bytes instead of {source.size:,}",
            where=path,
            allowed=f"the file from {source}",
            fix="delete the file and pull it again",
        )


def _check_hash(path: Path, expected: str | None, sha256: str, source: Source) -> None:
    if expected not in (None, sha256):
        raise HubError(
            f"SHA-256 {sha256[:12]}… instead of {expected[:12]}…"
            + ("" if expected == source.sha256 else ", pinned earlier"),
            where=path,
            received=sha256,
            allowed=f"{expected}, the file from {source}",
            fix="delete the file and pull it again"
            if expected == source.sha256
            else f"delete {_pin_of(path)} to accept the new file",
        )


def _check_md5(path: Path, source: Source) -> None:
    if source.md5 is not None and (md5 := transfer.md5_of(path)) != source.md5:
        raise HubError(
            f"MD5 {md5} instead of {source.md5}", where=path, received=md5, allowed=f"the file from {source}"
        )


def _pin_of(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _pinned(path: Path) -> str | None:
    try:
        sha256 = read_text(_pin_of(path), SETTINGS)[:64]
    except FormatError:
        return None
    return sha256 if HEX.fullmatch(sha256) else None


@dataclass(frozen=True)
class FileFacts:
    """What is known of the content of a file before it is used.

    Attributes:
        state: "published": the index has its SHA-256 and somebody had the file, so its size is known; "published, never
            fetched": the index has the SHA-256 that upstream publishes, and nobody had the file; "pinned": that of the
            first download counts; "never fetched": no hash is published, and none was pinned on this machine.
        size: Bytes, as published or of the file that is here; None of files that were never fetched alone.
    """

    state: str
    sha256: str | None = None
    size: int | None = None


def file_facts(name: str, file: str = "weights") -> FileFacts:
    """What is known of a file's content; nothing is read or sent. Raises: HubError, where there is no such file."""
    item = entry(name)
    sources = _file_of(item, file).sources
    targets = list(dict.fromkeys(_target(source, item.files[file], _folder(item)) for source in sources))
    size = next((source.size for source in sources if source.size and not source.is_member), None)
    if size is None:
        size = next((path.stat().st_size for path in targets if path.is_file()), None)
    pin = next((sha256 for path in targets if (sha256 := _pinned(path))), None)
    if pin is not None:
        return FileFacts("pinned", pin, size)
    if all(map(_published, sources)):
        return FileFacts("published, never fetched" if size is None else "published", sources[0].sha256, size)
    return FileFacts("never fetched", None, size)


def locate(name: str, file: str = "weights") -> Path | None:
    """The verified file if it is on this machine (cache, installed package, path), else None. Sends nothing.

    Raises:
        HubError: no such entry, or the entry has no such file.
    """
    return look(name, file)[0]


def is_here(name: str, file: str = "weights") -> bool:
    """Whether a file lies in the cache, whatever is in it."""
    item = entry(name)
    sources = _file_of(item, file).sources
    return any(_target(source, item.files[file], _folder(item)).is_file() for source in sources)


def look(name: str, file: str = "weights", fresh: bool = False) -> tuple[Path | None, list[Miss]]:
    """As `locate`, and the places tried before in vain.

    Args:
        fresh: read the files even if they were verified before and have not changed since.

    Raises:
        HubError: no such entry, or the entry has no such file.
    """
    item = entry(name)
    return _look(_file_of(item, file), _folder(item), fresh)


def _folder(item: Entry) -> Path:
    return home() / "weights" / item.name


def _file_of(item: Entry, file: str) -> File:
    if file not in item.files:
        raise HubError(
            "the entry has no such file", where=item.name, received=repr(file), allowed=", ".join(item.files)
        )
    return item.files[file]


def _target(source: Source, file: File, folder: Path) -> Path:
    return folder / (file.name + Path(source.filename).suffix.lower())


def _look(file: File, folder: Path, fresh: bool = False) -> tuple[Path | None, list[Miss]]:
    misses: list[Miss] = []
    for target in dict.fromkeys(_target(source, file, folder) for source in file.sources):
        same_name = [source for source in file.sources if _target(source, file, folder) == target]
        miss = _try(target, same_name, str(target), fresh)
        if miss is None:
            return target, misses
        misses.append(miss)
    for source in file.sources:
        if not source.is_local:
            continue
        path = _package_file(source) if source.kind == "package" else Path(os.path.expanduser(source.where))
        if path is None:
            misses.append(
                Miss(str(source), f"not installed, or of another version (pip install {source.where})")
            )
            continue
        miss = _try(path, [source], str(source), fresh)
        if miss is None:
            return path, misses
        misses.append(miss)
    return None, misses


def _try(path: Path, sources: Iterable[Source], place: str, fresh: bool = False) -> Miss | None:
    """Why `path` is the file of none of the sources, or None if it is that of one."""
    problems = []
    for source in sources:
        try:
            verify(path, source, fresh)
            return None
        except (FileNotFoundError, NotADirectoryError):
            return Miss(place, "not there")
        except OSError as error:
            return Miss(place, f"cannot be read: {error.strerror}", found=True)
        except HubError as error:
            problems.append(error.problem)
    return Miss(place, "; ".join(problems), found=True)


def _package_file(source: Source) -> Path | None:
    """The file in an installed package, found without importing the package."""
    try:
        spec = importlib.util.find_spec(source.where)
    except (ImportError, ValueError):
        return None
    folders = (spec.submodule_search_locations if spec else None) or []
    paths = (Path(folder, *source.file.split("/")) for folder in folders)
    return next((path for path in paths if path.is_file()), None)


# --- bringing files here -----------------------------------------------------------------------------------------


def fetch(name: str, file: str = "weights", offline: bool | None = None) -> Path:
    """A file of an entry, verified: from this machine if it is here, otherwise downloaded into the cache.

    Args:
        offline: never send a request. None asks `OAR_OFFLINE` and `HF_HUB_OFFLINE`.

    Raises:
        HubError: no such entry or file, or no source had it; then the message lists every place tried, why it failed,
            and the ways to provide the file.
    """
    item = entry(name)
    remedy = (
        f"run `oar models pull {name}{'' if file == 'weights' else ' --all-files'}` where there is a network"
    )
    return _obtain(f"{name} ({file})", _file_of(item, file), _folder(item), offline, remedy)


def resolve(spec: str | Path, domain: str | None = None, offline: bool | None = None) -> Path:
    """The local file that a `weights=` value stands for.

    An address is downloaded once and then taken from the cache for good.

    Args:
        spec: an entry's name, whatever its letters' case and its `_`, `-` and `.`; `https://…` or
            `hf://owner/repo/file@revision`, both with an optional `#sha256=…`; or a path. A string that is exactly an
            entry's name is that entry: write `./name` for a file called like one.
        domain: only entries of this domain are meant.

    Raises:
        HubError: no such file or entry, or it cannot be had.
        ConfigError: an address that is not safe to fetch, such as http without a hash.
    """
    if isinstance(spec, str) and re.match(r"[a-z]{2,}://", spec):
        return _fetch_address(spec, offline)
    known = entries(domain)
    if isinstance(spec, str) and spec in known:
        return fetch(spec, offline=offline)
    path = Path(os.path.expanduser(spec))
    if str(spec) and path.exists():
        return path
    if name := find_name(str(spec), domain):
        return fetch(name, offline=offline)
    other = entries().get(find_name(str(spec)) or "")
    raise HubError(
        f"these weights are for {other.domain}" if other else "no such file, and no weights of this name",
        where="weights",
        received=repr(str(spec)),
        allowed="a path, a name that `oar models list` shows, https://… or hf://owner/repo/file@revision",
        fix=did_you_mean(str(spec), known),
    )


def _fetch_address(spec: str, offline: bool | None) -> Path:
    address, _, fragment = spec.partition("#")
    sha256 = fragment.removeprefix("sha256=").lower() or None
    hf = re.fullmatch(r"hf://([\w.-]+/[\w.-]+)/([^@]+)(?:@(.+))?", address)
    if (sha256 and not HEX.fullmatch(sha256)) or not (hf or address.startswith(("https://", "http://"))):
        raise HubError(
            "not an address that weights can be fetched from",
            where="weights",
            received=spec,
            allowed="https://… or hf://owner/repo/file@revision, and after it #sha256= and 64 hex digits if you like",
        )
    if hf:
        source = Source("hf", hf[1], hf[2], hf[3] or "main", sha256)
    else:
        source = Source("url", address, sha256=sha256)
        check_scheme(source, "weights")
    folder = home() / "addresses" / hashlib.sha256(spec.encode()).hexdigest()[:16]
    return _obtain(
        spec, File(Path(source.filename).stem, (source,)), folder, offline, "try again with a network"
    )


def offline_reason(offline: bool | None = None) -> str | None:
    """Why no request may be sent, or None where one may. `offline`: as of `fetch`."""
    if offline is not None:
        return "not tried, offline was asked for" if offline else None
    for variable in ("OAR_OFFLINE", "HF_HUB_OFFLINE"):
        if os.environ.get(variable, "").strip().lower() in ("1", "on", "yes", "true"):
            return f"not tried, {variable} is set"
    return None


def _obtain(label: str, file: File, folder: Path, offline: bool | None, remedy: str) -> Path:
    found, misses = _look(file, folder)
    if found is not None:
        return found
    refused = offline_reason(offline)
    for source in file.sources:
        if source.is_local:
            continue
        try:
            if refused:
                raise HubError(refused)
            return _bring(source, file, folder, label)
        except HubError as error:
            misses.append(Miss(str(source), error.problem))
        except OSError as error:
            needed = "" if source.size is None else f"{source.size:,} bytes to write, "
            left = f"{free_bytes(folder) or 0:,} bytes left"
            misses.append(
                Miss(str(source), f"cannot write below {folder}: {error.strerror or error} ({needed}{left})")
            )
    known = (_published(source) for source in file.sources)
    hashes = " or ".join(dict.fromkeys(sha256 for sha256 in known if sha256)) or "not known"
    remedies = (
        remedy,
        f"put the file at {_target(file.sources[0], file, folder)} (SHA-256 {hashes})",
        "give its path instead of the name: -o …weights=PATH",
        f"set OAR_HOME to a folder that has it (now {home()})",
    )
    raise HubError(
        "the weights cannot be had",
        where=label,
        received="\n    ".join(["these places were tried:", *map(str, misses)]),
        fix="\n    ".join(["one of", *remedies]),
    )


def _bring(source: Source, file: File, folder: Path, label: str) -> Path:
    """Downloads from one source, verifies, moves into place. Another process that does the same is waited for."""
    target = _target(source, file, folder)
    tag = hashlib.sha256(f"{source} {source.sha256}".encode()).hexdigest()[:12]
    with transfer.place_for(target) as directory:
        part = made = directory / f"{target.name}.{tag}.part"
        if _try(target, [source], str(target)) is None:
            return target
        while True:
            resumed = False
            if source.kind == "url":
                resumed = transfer.download(
                    source.where,
                    part,
                    source.size,
                    label,
                    lambda url: check_scheme(replace(source, where=url), str(source)),
                    is_verified=bool(source.sha256 or _published(source) or _pinned(target)),
                )
            else:
                transfer.download_hf(source.where, source.file, source.revision, part)
            try:
                _check_size(part, source)
                _check_md5(part, source)
                sha256 = transfer.sha256_of(part)
                if source.is_member:
                    _check_hash(target, source.sha256, sha256, source)
                    made = part.with_name(f"{part.name}.member")
                    extract_member(part, source.file, made)
                    sha256 = transfer.sha256_of(made)
                _check_hash(target, _published(source) or _pinned(target), sha256, source)
                break
            except HubError:
                part.unlink()
                made.unlink(missing_ok=True)
                # The kept bytes may be of an older content of the address: once more, from the start.
                if not resumed:
                    raise
        if (
            _published(source) is None and _pinned(target) is None
        ):  # first: a file without its pin is taken as it is
            _write(_pin_of(target), f"{sha256}  {target.name}\n")
            _log.warning("no SHA-256 is published for %s; pinned as %s", target, sha256)
        os.replace(made, target)
        part.unlink(missing_ok=True)  # an archive
        _remember(target, _state(target), sha256)
    return target
