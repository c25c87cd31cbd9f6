"""Programs and ONNX graphs of the default models that come with the package, so that a first start makes none.

They lie in framework/bundled and are written by `python -m tools.packaging.programs`. One is taken only where
everything that it was made of is the same today: the model's config, the shapes of its weights and inputs, and the
text of every source file that was loaded when it was made. Otherwise, or where jax reads a program no more, the model
is lowered as any other. Weights are never shipped: they come from the hub.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

import numpy as np

from framework.core.compilation import jax_version
from framework.core.errors import FormatError
from framework.core.lazy import LazyModule
from framework.core.types import JSON
from framework.export.program_bytes import Program, StoredProgram
from framework.export.specs import PLATFORMS, TensorSpec
from framework.workflow.domain.domain import ROOT, all_domains

if TYPE_CHECKING:
    from jax import export
else:
    export = LazyModule("jax.export")

MANIFEST = "manifest.json"
# Modules, and packages with all below them, that decide about what a program of any domain computes.
_DECIDING = (
    "framework.nn",
    "framework.core.dtypes",
    "framework.export.program",
    "framework.export.formats.onnx",
    "framework.vision.normalize",
    "framework.workflow.domain.weights",
    "framework.workflow.export.export",
    "framework.workflow.export.onnx",
    "zoo.contracts",
    "zoo.layers",
    "zoo.vision",
)


class _Manifest(TypedDict, total=False):
    """What manifest.json says: the jax that made the programs, and digests of them and of their sources by name."""

    jax: str
    programs: dict[str, str]
    graphs: dict[str, str]
    sources: dict[str, str]


@dataclass
class Collected:
    """What comes with the package, by key: programs, and ONNX graphs without their weights."""

    programs: dict[str, Program] = field(default_factory=dict)
    graphs: dict[str, bytes] = field(default_factory=dict)


_collected: ContextVar[Collected | None] = ContextVar("what was made", default=None)


def program_key(
    model: JSON,
    task: JSON,
    specs: Mapping[str, TensorSpec],
    weights: Mapping[str, np.ndarray],
    precision: str,
    constraints: Sequence[str],
) -> str:
    """Names a program by what it is made of, besides the source code.

    Args:
        model, task: Their configs as plain data.
        weights: Arrays by name, whose shapes and dtypes count.
        precision: Of a program; of an ONNX graph "onnx" and the version of its operators.
    """
    about = {
        "model": model,
        "task": task,
        "inputs": [[name, list(spec.shape), spec.dtype] for name, spec in specs.items()],
        "weights": sorted((name, list(w.shape), str(w.dtype)) for name, w in weights.items()),
        "precision": precision,
        "constraints": list(constraints),
    }
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:32]


def find_program(key: str) -> Program | None:
    """The shipped program of this key; None where there is none, or none that holds today."""
    data = _read_shipped("programs", key, ".jaxexp.gz")
    if data is None:
        return None
    program = StoredProgram(data, PLATFORMS, _read)
    if _manifest().get("jax") != jax_version():
        try:
            _ = program.exported
        except FormatError:  # jax promises six months
            return None
    return program


def find_graph(key: str) -> bytes | None:
    """The shipped ONNX graph of this key, without its weights; None where there is none, or none that holds today."""
    return _read_shipped("graphs", key, ".onnx.gz")


def has_graphs() -> bool:
    """Whether any graph came with the package, of today's sources or not."""
    return bool(_read_manifest().get("graphs"))


def _read_shipped(kind: Literal["programs", "graphs"], key: str, suffix: str) -> bytes | None:
    if _collected.get() is not None:
        return None
    digest = _manifest().get(kind, {}).get(key)
    if digest is None:
        return None
    try:
        data = gzip.decompress((_folder() / f"{key}{suffix}").read_bytes())
    except (OSError, EOFError):
        return None
    return data if hashlib.sha256(data).hexdigest() == digest else None


def note_program(key: str, program: Program) -> None:
    """Tell `collect_programs`, where it waits, that a program was lowered."""
    collected = _collected.get()
    if collected is not None:
        collected.programs[key] = program


def note_graph(key: str, make: Callable[[], bytes]) -> None:
    """Give `collect_programs`, where it waits, the ONNX graph that `make` gives."""
    collected = _collected.get()
    if collected is not None:
        collected.graphs[key] = make()


@contextmanager
def collect_programs() -> Iterator[Collected]:
    """What is made meanwhile, by key; nothing is taken from what is shipped."""
    collected = Collected()
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)


def write_programs(collected: Collected) -> None:
    """Replace what is shipped by this. Call it in the process that made it, and nothing else before."""
    folder = _folder()
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    programs = {key: bytes(program.serialize()) for key, program in collected.programs.items()}
    digests: dict[str, dict[str, str]] = {}
    for kind, suffix, files in (
        ("programs", ".jaxexp.gz", programs),
        ("graphs", ".onnx.gz", collected.graphs),
    ):
        for key, data in files.items():
            (folder / f"{key}{suffix}").write_bytes(gzip.compress(data, 9, mtime=0))
        digests[kind] = {key: hashlib.sha256(data).hexdigest() for key, data in files.items()}
    deciding = (*_DECIDING, *(name for domain in all_domains() for name in domain.program_modules))
    names = sorted(name for name in sys.modules if name.startswith(deciding))
    files = [Path(file) for name in names if (file := sys.modules[name].__file__) is not None]
    sources = {path.relative_to(ROOT).as_posix(): _digest(path) for path in files}
    manifest = {"jax": jax_version(), **digests, "sources": sources}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def stale_sources() -> list[str]:
    """The source files that changed since the shipped programs were written: with any of them none is used."""
    sources = _read_manifest().get("sources", {})
    return [name for name, digest in sources.items() if _digest(ROOT / name) != digest]


@functools.cache
def _manifest() -> _Manifest:
    """What is shipped, where it holds for the sources of today."""
    return {} if stale_sources() else _read_manifest()


def _read_manifest() -> _Manifest:
    try:
        return json.loads((_folder() / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def _folder() -> Path:
    return ROOT / "framework" / "bundled"


def _digest(path: Path) -> str:
    """Of a text file, whatever its line ends; "" where it is gone."""
    try:
        return hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
    except FileNotFoundError:
        return ""


def _read(data: bytes) -> export.Exported:
    try:
        return export.deserialize(bytearray(data))
    except Exception as error:  # jax raises many types here
        raise FormatError("this jax cannot read a shipped program", received=str(error)) from error
