"""Engine: a program with its weights on one device, compiled once per shape.

Calls may come from several threads: compiling takes a lock per shape, running takes none. Shapes should come in the
buckets that a pipeline declares, so that `compile_count` is bounded by their number.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import export
from jax.experimental.compilation_cache import compilation_cache

from framework.core.device import Device, cpu_features, default_device
from framework.core.errors import DeviceError, HubError, ShapeError
from framework.core.home import home
from framework.export.program import size_fits
from framework.nn.functional.lowering import AVX512_COMPILE_OPTIONS, CPU_COMPILE_OPTIONS

log = logging.getLogger("oar")
_cache_lock = threading.Lock()
_cache_ready = False


def enable_compilation_cache(folder: str | Path | None = None) -> Path | None:
    """Keep compiled programs on disk, so that a second start does not compile again. On by default for engines.

    The folder is JAX_COMPILATION_CACHE_DIR, or `OAR_HOME`/compiled/<this kind of CPU>; OAR_COMPILATION_CACHE=off
    turns it off. It is trusted like code: where it is not there yet, it is made for its owner alone. A machine without
    a place for it runs without it, with a warning.
    """
    global _cache_ready
    with _cache_lock:
        if os.environ.get("OAR_COMPILATION_CACHE", "").lower() in ("off", "0", "false"):
            return None
        current = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
        if folder is None and (_cache_ready or current):
            _cache_ready = True
            return Path(current) if current else None
        try:
            folder = _made(folder)
        except (OSError, HubError) as error:
            log.warning("compiled programs are not kept: %s", error)
            _cache_ready = True
            return None
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        compilation_cache.reset_cache()  # jax would stay with the folder that it used first
        _cache_ready = True
        return folder


def _made(folder: str | Path | None) -> Path:
    if folder is None:
        kind = hashlib.sha256(" ".join(sorted(cpu_features())).encode()).hexdigest()[:12]
        folder = home() / "compiled" / kind
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def compile_options(device: Device) -> dict[str, Any]:
    """XLA options for programs on this device; see framework/nn/functional/lowering.py."""
    if device.platform != "cpu":
        return {}
    wide = AVX512_COMPILE_OPTIONS if "avx512f" in cpu_features() else {}
    return {**CPU_COMPILE_OPTIONS, **wide}


class Engine:
    """Run `program` on numpy inputs by name. Without `device` on the one that `set_device` chose.

    Attributes:
        compile_count: shapes compiled so far (a program found in the compilation cache counts too).
    """

    def __init__(
        self,
        program: export.Exported,
        weights: Mapping[str, np.ndarray | jax.Array],
        device: Device | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        enable_compilation_cache()
        self.device = device or default_device()
        kind = self.device.platform
        kinds = {"gpu": ("cuda", "rocm"), "cuda": ("cuda",), "rocm": ("rocm",)}.get(kind, (kind,))
        if not set(kinds) & set(program.platforms):
            raise DeviceError(
                "the program was not lowered for this device",
                received=kind,
                allowed=", ".join(program.platforms),
                fix="export it again with this platform",
            )
        self.program = program
        self._options = dict(compile_options(self.device) if options is None else options)
        self._weights = jax.device_put(dict(weights), self.device)
        (_, inputs), _ = jax.tree.unflatten(program.in_tree, program.in_avals)
        self.inputs: dict[str, Any] = inputs
        self.outputs: dict[str, Any] = jax.tree.unflatten(program.out_tree, program.out_avals)
        self._function = jax.jit(program.call)
        self._compiled: dict[tuple, Callable[..., Any]] = {}
        self._locks: dict[tuple, threading.Lock] = {}
        self._guard = threading.Lock()

    @property
    def compile_count(self) -> int:
        return len(self._compiled)

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Outputs by name as numpy arrays, which may be read-only; blocks until they are there.

        Raises:
            ShapeError: the inputs are not those of the program, by name, dtype or shape.
        """
        return {name: np.asarray(value) for name, value in self.start(inputs).items()}

    def start(self, inputs: Mapping[str, Any]) -> dict[str, jax.Array]:
        """As a call, but the outputs may still be under way: reading one waits for it."""
        arrays = self._checked(inputs)
        compiled = self.compile({name: array.shape for name, array in arrays.items()})
        return compiled(self._weights, jax.device_put(arrays, self.device))

    def compile(self, shapes: Mapping[str, tuple[int, ...]]) -> Callable[..., Any]:
        """The program for these input shapes, compiled now if it is not yet.

        Raises:
            ShapeError: the program does not take these shapes.
        """
        key = tuple(sorted((name, tuple(shape)) for name, shape in shapes.items()))
        found = self._compiled.get(key)
        if found is not None:
            return found
        with self._guard:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._compiled:
                specs = {
                    name: jax.ShapeDtypeStruct(shapes[name], self.inputs[name].dtype) for name in self.inputs
                }
                try:
                    with jax.default_device(self.device):
                        lowered = self._function.lower(self._weights, specs)
                except ValueError as error:  # an expression over sizes that size_fits leaves to jax
                    raise ShapeError(
                        "the program does not take these shapes",
                        received=", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items())
                        + f": {str(error).splitlines()[0]}",
                        allowed=self._signature(),
                    ) from error
                self._compiled[key] = self._compile(lowered)
        return self._compiled[key]

    def _compile(self, lowered: Any) -> Callable[..., Any]:
        if self._options:
            try:
                return lowered.compile(compiler_options=self._options)
            except Exception as error:  # an experimental option that this jaxlib does not know
                if "option" not in str(error).lower():
                    raise
                log.warning("this jaxlib takes not all compile options, going on without: %s", error)
                self._options = {}
        return lowered.compile()

    def _signature(self) -> str:
        return ", ".join(f"{name} {_shape(aval)} {aval.dtype}" for name, aval in self.inputs.items())

    def _checked(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        if set(inputs) != set(self.inputs):
            raise ShapeError(
                "the program takes other inputs",
                received=", ".join(sorted(inputs)),
                allowed=self._signature(),
            )
        arrays = {}
        sizes: dict[str, int] = {}
        for name, aval in self.inputs.items():
            array = np.asarray(inputs[name])
            fits = array.ndim == len(aval.shape) and all(
                size_fits(size, dim, sizes) for size, dim in zip(array.shape, aval.shape)
            )
            if not fits or array.dtype != aval.dtype:
                raise ShapeError(
                    "an input does not fit the program",
                    where=name,
                    received=f"{array.shape} {array.dtype}",
                    allowed=f"{_shape(aval)} {aval.dtype}",
                )
            arrays[name] = np.ascontiguousarray(array)
        return arrays


def _shape(aval: Any) -> str:
    return "[" + ", ".join(map(str, aval.shape)) + "]"
