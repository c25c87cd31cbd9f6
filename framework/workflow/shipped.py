"""Programs of the default models that come with the package, so that a first start lowers nothing.

They lie in configs/programs and are written by `python tools/packaging/programs.py`. One is taken only where everything
that it was made of is the same today: the model's config, the shapes of its weights and inputs, and the text of every
source file that was loaded when it was lowered. Otherwise, or where jax reads it no more, the model is lowered as any
other. Weights are never shipped: they come from the hub.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import jax
from jax import export

from framework.core.errors import FormatError
from framework.export.program import PLATFORMS, TensorSpec
from framework.export.program_bytes import Program, StoredProgram
from framework.workflow.domain import ROOT

MANIFEST = "manifest.json"
# Modules, and packages with all below them, that decide about what a program computes.
_DECIDING = (
    *("framework.nn", "framework.export.program", "framework.core.dtypes", "framework.vision.normalize"),
    *("framework.workflow.export", "framework.workflow.weights", "zoo.contracts", "zoo.layers", "zoo.vision"),
    *("ocr.models", "ocr.layers", "ocr.tasks", "ocr.system"),
)
_found: ContextVar[dict[str, Program] | None] = ContextVar("programs that were lowered", default=None)


def program_key(
    model: Any,
    task: Any,
    specs: Mapping[str, TensorSpec],
    weights: Mapping[str, Any],
    precision: str,
    constraints: Sequence[str],
) -> str:
    """Names a program by what it is made of, besides the source code.

    Args:
        model, task: Their configs as plain data.
        weights: Arrays by name, whose shapes and dtypes count.
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
    if _found.get() is not None:
        return None
    kept = _manifest()
    if key not in kept.get("programs", ()):
        return None
    path = _folder() / f"{key}.jaxexp.gz"
    try:
        data = gzip.decompress(path.read_bytes())
    except (OSError, EOFError):
        return None
    if hashlib.sha256(data).hexdigest() != kept["programs"][key]:
        return None
    program = StoredProgram(data, PLATFORMS, _read)
    if kept["jax"] != jax.__version__:
        try:
            _ = program.exported
        except FormatError:  # jax promises six months
            return None
    return program


def note_program(key: str, program: Program) -> None:
    """Tell `collect_programs`, where it waits, that a program was lowered."""
    found = _found.get()
    if found is not None:
        found[key] = program


@contextmanager
def collect_programs() -> Iterator[dict[str, Program]]:
    """The programs that are lowered meanwhile, by key; none is taken from what is shipped."""
    found: dict[str, Program] = {}
    token = _found.set(found)
    try:
        yield found
    finally:
        _found.reset(token)


def write_programs(programs: Mapping[str, Program]) -> None:
    """Replace the shipped programs by these. Call it in the process that lowered them, and nothing else before."""
    folder = _folder()
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    digests = {}
    for key, program in programs.items():
        data = bytes(program.serialize())
        (folder / f"{key}.jaxexp.gz").write_bytes(gzip.compress(data, 9, mtime=0))
        digests[key] = hashlib.sha256(data).hexdigest()
    names = sorted(name for name in sys.modules if name.startswith(_DECIDING))
    files = [Path(file) for name in names if (file := sys.modules[name].__file__) is not None]
    sources = {path.relative_to(ROOT).as_posix(): _digest(path) for path in files}
    manifest = {"jax": jax.__version__, "programs": digests, "sources": sources}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def stale_sources() -> list[str]:
    """The source files that changed since the shipped programs were written: with any of them none is used."""
    sources = _read_manifest().get("sources", {})
    return [name for name, digest in sources.items() if _digest(ROOT / name) != digest]


@functools.cache
def _manifest() -> dict[str, Any]:
    """What is shipped, where it holds for the sources of today."""
    return {} if stale_sources() else _read_manifest()


def _read_manifest() -> dict[str, Any]:
    try:
        return json.loads((_folder() / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def _folder() -> Path:
    """Beside the configurations of a clone or a wheel."""
    return (ROOT if (ROOT / "configs").is_dir() else ROOT / "framework") / "configs" / "programs"


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
