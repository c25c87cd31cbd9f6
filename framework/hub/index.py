"""The hub's index: what the files `weights/*.yml` say, read and checked. It sends nothing and touches no weights.

Each file describes one family:

    family: ResNet
    domain: zoo                        # zoo, or a domain; the zoo's serve all domains
    homepage: https://…
    licence: Apache-2.0                # SPDX; an entry may override it
    names: {…}                         # upstream's names of weights in ours, by layer: see names.py
    entries:
      resnet50_imagenet:               # lower-case letters, digits and _: it is a folder's name too
        form: deploy                   # deploy (re-parameterised, for inference) | trainable
        files:
          weights:                     # every entry has it; others (dict, program, …) as the model needs
            sources:                   # in order of preference
              - {package: models, path: models/x.onnx, size: 123, sha256: …}        # a file of an installed package
              - {hf: owner/repo, file: x.onnx, revision: …, size: 123, sha256: …}     # through huggingface-hub
              - {url: https://…, size: 123, sha256: …}
              - {url: https://….tar, member: x/model.pdparams, sha256: …}             # a file of a tar archive
              - {path: /mnt/models/x.onnx, sha256: …}                                 # `~` works
        model: {…}                     # opaque to the hub: the domain that builds the model reads it, and the next two
        preprocess: {…}
        precision: {…}
        languages: be ru uk            # BCP 47 codes of what a model reads: its dictionary has all letters
        lacks: {os: ӕ}                 # and what its dictionary lacks of languages that no model reads
        scores: [{set: …, metric: …, value: …, source: …}]                            # as published

A hash belongs to a source, not to a file: the same weights are published in several containers with different bytes.
Size and hash of a source with `member` are the archive's; of the file inside the hash is taken when it is unpacked.
`size` (bytes) and `revision` may be left out. Where upstream publishes no hash and none was measured, the source says
`sha256: unknown` (only hf and url may): such a file is pinned at its first download. Where upstream publishes an MD5
sum instead, as Paddle does, the source has it as `md5`, and the download must have it.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from framework.config.domains import domain_packages
from framework.core.errors import ConfigError, did_you_mean
from framework.core.types import JSON
from framework.hub.names import check_names, read_document


def known_domains() -> tuple[str, ...]:
    """What `domain` of a file may be: rows of the zoo serve all domains."""
    return ("zoo", *domain_packages())


FORMS = ("deploy", "trainable")
HEX = re.compile(r"[0-9a-f]{64}")
MD5 = re.compile(r"[0-9a-f]{32}")

_NAME = re.compile(r"[a-z0-9][a-z0-9_]*")
_REPO = re.compile(r"[\w.-]+/[\w.-]+")
_MEMBER = re.compile(r"(?!\.\.?(/|$))[^/\\]+(/(?!\.\.?(/|$))[^/\\]+)*")
# What a source has besides `sha256` and `size`. The first key names the kind; `path` stands last, since package sources
# have one as well.
_SOURCE_KEYS = {
    "package": ({"package": str, "path": str}, {}),
    "hf": ({"hf": str, "file": str}, {"revision": str}),
    "url": ({"url": str}, {"member": str, "md5": str}),
    "path": ({"path": str}, {}),
}


@dataclass(frozen=True)
class Source:
    """One place where a file can be had. `sha256` None means that its hash is not known beforehand."""

    kind: str  # package | hf | url | path
    where: str  # the package, owner/repository, address or path
    file: str = ""  # the file in the package, repository or archive, with forward slashes
    revision: str = "main"  # hf only
    sha256: str | None = None  # of an archive's member, and so is the size: those of the archive
    size: int | None = None  # bytes
    md5: str | None = None  # where upstream publishes no better hash

    @property
    def is_local(self) -> bool:
        return self.kind in ("package", "path")

    @property
    def is_member(self) -> bool:
        """Whether the file is one of an archive at the address."""
        return self.kind == "url" and bool(self.file)

    @property
    def filename(self) -> str:
        """The last part of the address, reduced to characters that every file system takes."""
        where = urllib.parse.urlsplit(self.where).path if self.kind == "url" else self.where
        location = self.file or where
        last = urllib.parse.unquote(location).replace("\\", "/").rpartition("/")[2]
        return re.sub(r"[^A-Za-z0-9._-]", "_", last).strip(".") or "file"

    def __str__(self) -> str:
        if self.kind == "package":
            return f"package {self.where}: {self.file}"
        if self.kind == "hf":
            return f"hf://{self.where}/{self.file}@{self.revision}"
        return f"{self.where}: {self.file}" if self.is_member else self.where


@dataclass(frozen=True)
class File:
    """One file of an entry and its sources, best first."""

    name: str
    sources: tuple[Source, ...]


_Types = type | tuple[type, ...]


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
    precision: Mapping[str, JSON] = field(default_factory=dict)
    languages: tuple[str, ...] = ()
    lacks: Mapping[str, str] = field(default_factory=dict)
    scores: tuple[Mapping[str, Any], ...] = ()


def read_family(path: Path) -> dict[str, Entry]:
    """Reads and checks one `zoo/weights/*.yml`.

    Raises:
        ConfigError: with the file, the key, what was received and what is allowed.
    """
    top = _mapping(
        read_document(path),
        str(path),
        {"family": str, "domain": str, "homepage": str, "licence": str, "entries": dict},
        {"names": dict},
    )
    check_names(top.get("names", {}), f"{path}: names")
    _one_of(top["domain"], known_domains(), f"{path}: domain")
    return {name: _entry(name, body, top, f"{path}: {name}") for name, body in top["entries"].items()}


def _entry(name: str, about: object, family: Mapping[str, Any], where: str) -> Entry:
    _check_name(name, where)
    body = _mapping(
        about,
        where,
        {"form": str, "files": dict},
        {
            **{"licence": str, "model": dict, "preprocess": dict, "precision": dict},
            **{"languages": str, "lacks": dict, "scores": list},
        },
    )
    _one_of(body["form"], FORMS, f"{where}.form")
    if "weights" not in body["files"]:
        raise ConfigError(
            "the file `weights` is missing",
            where=f"{where}.files",
            received=", ".join(map(str, body["files"])),
        )
    scores = {"set": str, "metric": str, "value": (int, float), "source": str}
    return Entry(
        name=name,
        family=family["family"],
        domain=family["domain"],
        licence=body.get("licence", family["licence"]),
        homepage=family["homepage"],
        form=body["form"],
        files={key: _file(key, value, f"{where}.files.{key}") for key, value in body["files"].items()},
        model=body.get("model", {}),
        preprocess=body.get("preprocess", {}),
        precision=body.get("precision", {}),
        languages=tuple(body.get("languages", "").split()),
        lacks=body.get("lacks", {}),
        scores=tuple(
            _mapping(score, f"{where}.scores[{i}]", scores, {})
            for i, score in enumerate(body.get("scores", []))
        ),
    )


def _file(name: str, body: object, where: str) -> File:
    _check_name(name, where)
    sources = _mapping(body, where, {"sources": list}, {})["sources"]
    if not sources:
        raise ConfigError(
            "no sources", where=f"{where}.sources", received="[]", allowed="at least one source"
        )
    return File(name, tuple(_source(item, f"{where}.sources[{i}]") for i, item in enumerate(sources)))


def _source(about: object, where: str) -> Source:
    kind = next((key for key in _SOURCE_KEYS if isinstance(about, dict) and key in about), None)
    if kind is None:
        raise ConfigError(
            "not a source",
            where=where,
            received=about,
            allowed=f"a mapping with one of {', '.join(_SOURCE_KEYS)}",
        )
    required, optional = _SOURCE_KEYS[kind]
    body = _mapping(about, where, {**required, "sha256": str}, {**optional, "size": int})
    may_be_unknown = kind in ("hf", "url")
    unknown = may_be_unknown and body["sha256"] == "unknown"
    if not unknown and not HEX.fullmatch(body["sha256"]):
        raise ConfigError(
            "not a SHA-256",
            where=f"{where}.sha256",
            received=repr(body["sha256"]),
            allowed="64 lower-case hex digits" + (", or `unknown`" if may_be_unknown else ""),
        )
    if not MD5.fullmatch(body.get("md5", "0" * 32)):
        raise ConfigError(
            "not an MD5 sum",
            where=f"{where}.md5",
            received=repr(body["md5"]),
            allowed="32 lower-case hex digits",
        )
    source = Source(
        kind=kind,
        where=body[kind],
        file=body["path"] if kind == "package" else body.get("file", body.get("member", "")),
        revision=body.get("revision", "main"),
        sha256=None if unknown else body["sha256"],
        size=body.get("size"),
        md5=body.get("md5"),
    )
    if kind == "url":
        check_scheme(source, where)
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
    if "member" in body and not _MEMBER.fullmatch(source.file):
        raise ConfigError(
            "not a file of an archive",
            where=f"{where}.member",
            received=repr(source.file),
            allowed="a path inside the archive, such as folder/model.pdparams",
        )
    return source


def _check_name(name: object, where: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            "not a name for an entry or a file",
            where=where,
            received=repr(name),
            allowed="lower-case letters, digits and _",
        )


def check_scheme(source: Source, where: str) -> None:
    """Refuses addresses whose content could be changed on the way: http without a hash, unless it is this machine.

    Raises:
        ConfigError: such an address, or none at all.
    """
    try:
        parts = urllib.parse.urlsplit(source.where)
        loopback = parts.hostname in ("127.0.0.1", "::1", "localhost")
        if parts.hostname and (
            parts.scheme == "https" or (parts.scheme == "http" and (source.sha256 or loopback))
        ):
            return
    except ValueError:
        pass  # `https://[` and the like
    raise ConfigError(
        "the address is not safe to fetch",
        where=where,
        received=source.where,
        allowed="https://…, or http://… whose SHA-256 is known",
        fix="use https, or name the hash (`#sha256=…` after an address given as weights)",
    )


def _mapping(
    value: object, where: str, required: Mapping[str, _Types], optional: Mapping[str, _Types]
) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError("a mapping is needed here", where=where, received=repr(value))
    known = {**required, **optional}
    for key, item in value.items():
        if key not in known:
            raise ConfigError(
                f"unknown key {key!r}",
                where=where,
                allowed=", ".join(known),
                fix=did_you_mean(str(key), known),
            )
        allowed = known[key]
        if not isinstance(item, allowed) or isinstance(item, bool):
            types = allowed if isinstance(allowed, tuple) else (allowed,)
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
