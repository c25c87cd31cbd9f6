"""Compiled operations on disk, so that a second process neither traces nor lowers nor compiles them.

jax's own cache is asked for a program that was traced and lowered already, which takes ten milliseconds for each of
the hundreds of operations of a first step; reading an executable takes two. A program is known by what its trace would
read: the function and its settings, the shapes and types of the inputs, the settings of jax and of this process, and
the sources of this package. What cannot be described so (functions made elsewhere, arrays of other devices, programs
that call back or need another library's kernels) is left to jax.

Files are trusted like code: they stand in the folder of compiled programs, each begins with its HMAC under the user's
secret, and what was changed or brought from elsewhere is compiled again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import importlib
import itertools
import json
import logging
import marshal
import os
import secrets
import shutil
import types
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import cast

import jax
import numpy as np
from jax.core import Tracer
from jax.experimental import serialize_executable

from framework.core.compilation import enable_compilation_cache, make_private_folder
from framework.core.errors import HubError
from framework.core.process import cpu_count
from framework.core.process_state import state
from framework.core.rng import is_tracing
from framework.core.secret import read_secret, secret_file, tag_of
from framework.core.signed_cache import is_bound
from framework.core.types import JSON
from framework.nn.functional import lowering
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.residual import Residual

log = logging.getLogger("oar")
_TAG = 32
_VERSIONS = 3  # of the package's sources whose programs stay
_JAX = ((0, 10), (0, 11))  # from, below: what is read of jax below is private and changes between releases
_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.dtype)
Executable = jax.stages.Compiled


def describe(value: object) -> str | None:
    """A text that is the same in every process for a function or a setting; None where there is none."""
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__}:{value!r}"
    if isinstance(value, type):
        return f"class {value.__module__}.{value.__qualname__}" if _is_ours(value.__module__) else None
    if isinstance(value, tuple | list):
        return _joined(type(value).__name__, value)
    if isinstance(value, dict):
        return _joined("dict", list(itertools.chain(*value.items())))
    if isinstance(value, functools.partial):
        return _joined("partial", [value.func, value.args, value.keywords])
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(module, str) and isinstance(name, str) and _is_ours(module):
        if _is_attribute(value, module, name):
            return f"{module}.{name}"
        if isinstance(value, types.FunctionType):
            code = hashlib.sha256(marshal.dumps(value.__code__)).hexdigest()
            try:
                cells = [cell.cell_contents for cell in value.__closure__ or ()]
            except ValueError:  # a cell that is not filled yet
                return None
            return _joined(f"{module}.{name}:{code}", [*cells, value.__defaults__, value.__kwdefaults__])
    return None


def _joined(kind: str, values: Sequence[object]) -> str | None:
    texts = [describe(value) for value in values]
    return None if None in texts else f"{kind}({', '.join(map(str, texts))})"


def _is_ours(module: str) -> bool:
    """Whether the sources of a module are part of `_sources`, or fixed by a version."""
    return module.partition(".")[0] in ("builtins", "framework", "jax", "jaxlib", "ml_dtypes", "numpy")


def _is_attribute(value: object, module: str, name: str) -> bool:
    attribute: object = importlib.import_module(module)
    for step in name.split("."):
        attribute = getattr(attribute, step, None)
    return attribute is value or getattr(attribute, "__wrapped__", None) is value


def is_available() -> bool:
    """Whether this process stores programs."""
    return _folder() is not None


def path_of(identity: str, inputs: Sequence[object]) -> Path | None:
    """Where the executable of a function for these inputs is stored; None where it cannot be."""
    folder = _folder()
    kinds = None if folder is None else _kinds(inputs)
    if folder is None or kinds is None or is_tracing() or jax.config.jax_debug_nans:  # type: ignore[attr-defined]
        return None
    name = hashlib.sha256("\n".join((identity, kinds, _settings())).encode()).hexdigest()
    return folder / name[:40]


def write(path: Path, lowered: jax.stages.Lowered, executable: Executable) -> None:
    """Store an executable, where another process could use it."""
    if "custom_call" in lowered.as_text():  # jax loads their kernels while it lowers them
        return
    unloaded = executable._executable._unloaded_executable  # type: ignore[attr-defined]
    if unloaded.host_callbacks or unloaded.unordered_effects or unloaded.ordered_effects:
        return
    tree = executable.out_tree
    try:
        results = json.dumps(_structure(jax.tree_util.tree_unflatten(tree, range(tree.num_leaves))))
        payload = serialize_executable.serialize(executable)[0]
    except (TypeError, ValueError, AttributeError, NotImplementedError):
        return  # a result that is no plain tuple of arrays, or a program that jax cannot write
    data = results.encode() + b"\n" + payload
    work = path.with_name(f".{secrets.token_hex(8)}.tmp")
    with contextlib.suppress(OSError):  # a full disk: the program is compiled again
        try:
            work.write_bytes(_tag(path.name, data) + data)
            os.replace(work, path)
        finally:
            work.unlink(missing_ok=True)


def read(path: Path, inputs: Sequence[object]) -> Executable | None:
    """The executable that this user stored there for such inputs; None where there is none."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if not hmac.compare_digest(data[:_TAG], _tag(path.name, data[_TAG:])):
        log.warning("a kept program was changed or is damaged, it is made again: %s", path)
        return None
    results, _, payload = data[_TAG:].partition(b"\n")
    device = jax.local_devices()[0]
    try:
        return serialize_executable.deserialize_and_load(
            payload,
            jax.tree_util.tree_structure((tuple(inputs), {})),
            jax.tree_util.tree_structure(_plain(json.loads(results))),
            backend=device.client,
            execution_devices=[device],
        )
    except (RuntimeError, ValueError) as error:  # of another build of XLA
        log.debug("%s was not read: %s", path, error)
        return None


def _structure(value: object) -> object:
    """Tuples, lists, Nones and residuals of numbers as JSON has them: a tuple is {"tuple": […]}."""
    if type(value) is tuple:
        return {"tuple": [_structure(item) for item in value]}
    if isinstance(value, Residual):
        return {"residual": [_structure(item) for item in value.arrays]}
    if isinstance(value, list):
        return [_structure(item) for item in value]
    if value is None or isinstance(value, int):
        return value
    raise TypeError(f"a result of {type(value).__name__} is not stored")


def _plain(value: JSON) -> object:
    """What `_structure` was made of."""
    if isinstance(value, dict):
        ((kind, items),) = value.items()
        plain = [_plain(item) for item in cast("list[JSON]", items)]
        return tuple(plain) if kind == "tuple" else Residual(cast("list[jax.Array]", plain), None)
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _tag(name: str, data: bytes) -> bytes:
    return tag_of(_secret(), name, data)


@functools.cache
def _secret() -> bytes:
    return read_secret(secret_file())


def _kinds(inputs: Sequence[object]) -> str | None:
    """Structure, shapes, types and devices of the inputs; None where they lie elsewhere than on the first device."""
    leaves, tree = jax.tree_util.tree_flatten(tuple(inputs))
    kinds, here = [str(tree)], {jax.local_devices()[0]}
    for leaf in leaves:
        committed = False
        sharding = getattr(leaf, "sharding", None)
        if sharding is not None:
            if isinstance(leaf, Tracer) or sharding.device_set != here:
                return None
            committed = not isinstance(leaf, jax.Array) or leaf.committed
        if isinstance(leaf, jax.Array):
            kinds.append(f"{leaf.dtype}{leaf.shape}{leaf.aval.weak_type}{committed}")
        elif isinstance(leaf, jax.ShapeDtypeStruct):
            kinds.append(f"{leaf.dtype}{leaf.shape}{bool(leaf.weak_type)}{committed}")
        elif isinstance(leaf, np.ndarray | np.generic):
            kinds.append(f"{leaf.dtype}{leaf.shape}False{committed}")
        elif isinstance(leaf, bool | int | float | complex):
            kinds.append(type(leaf).__name__)
        else:
            return None
    return " ".join(kinds)


def _settings() -> str:
    """What a trace reads besides its function and inputs."""
    from jax._src import config

    of_jax = [text for text in map(repr, config.trace_context()) if " at 0x" not in text]
    return repr((of_jax, lowering.current_scopes(), mode.default_dtype, sorted(state.flags.items())))


@functools.cache
def _folder() -> Path | None:
    """Where programs of these sources are stored; None where that is turned off or cannot be done."""
    if not _JAX[0] <= jax.__version_info__[:2] < _JAX[1] or jax.process_count() > 1:
        return None
    device = jax.local_devices()[0]
    if device.platform != "cpu":  # measured there alone
        return None
    try:
        cache = enable_compilation_cache()
        if cache is None or not is_bound(str(cache)):
            return None
        top = cache / "operations"
        make_private_folder(top, cache)
        folder = top / _sources()
        if not folder.is_dir():
            folder.mkdir(mode=0o700, exist_ok=True)
            _remove_older(top)
        os.utime(folder)
        _secret()
    except (OSError, HubError) as error:
        log.debug("compiled operations are not stored: %s", error)
        return None
    return folder


def _remove_older(top: Path) -> None:
    folders = sorted((one for one in top.iterdir() if one.is_dir()), key=lambda one: one.stat().st_mtime)
    for one in folders[:-_VERSIONS]:
        shutil.rmtree(one, ignore_errors=True)


def _sources() -> str:
    """A name for the sources of this package and what else decides how they are compiled."""
    root = Path(__file__).parents[2]
    stats = [(str(path), path.stat()) for path in sorted(root.rglob("*.py"))]
    files = [(path, about.st_size, about.st_mtime_ns) for path, about in stats]
    versions = [metadata.version(name) for name in ("jax", "jaxlib", "ml_dtypes", "numpy")]
    text = repr((files, versions, cpu_count(), os.environ.get("XLA_FLAGS")))
    return hashlib.sha256(text.encode()).hexdigest()[:24]
