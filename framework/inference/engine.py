"""Engines: a program with its weights on one device, compiled once per shape. XLA's is the first.

Calls may come from several threads: compiling takes a lock per shape, running takes none. Shapes should come in the
buckets that a pipeline declares, so that `compile_count` is bounded by their number. A compiled program takes some 20
MB: a process keeps those that were used last, and the disk keeps all of them for the next process (executables.py).
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from framework.core.compilation import compile_options
from framework.core.device import Device, default_device
from framework.core.errors import DeviceError, FormatError, OarError, ShapeError
from framework.core.lazy import LazyModule
from framework.core.process import check_process, cpu_count
from framework.core.types import PyTree
from framework.export.program_bytes import Program, StoredProgram, program_digest
from framework.export.sizes import size_fits
from framework.inference import executables
from framework.inference.memory import release_memory

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
else:
    jax = LazyModule("jax")
    jnp = LazyModule("jax.numpy")

log = logging.getLogger("oar")
KEPT = 64
"""Compiled programs of all engines of a process at a time: those that were used last. One that comes again is read from
the compilation cache, which takes a third of a second. A reader of mixed pages uses some 40: with fewer kept, programs
come and go with every page, and what they leave in pieces adds up."""
_CALLS = 128
"""After so many calls of an engine freed memory is handed back: calls of many shapes leave it in pieces."""

_recent: OrderedDict[tuple[int, tuple], weakref.ref[XLAEngine]] = (
    OrderedDict()
)  # the one used last at the end
_recent_lock = threading.Lock()


def _note_use(engine: XLAEngine, key: tuple) -> None:
    """Put a program behind all others, and let go of those that were used longest ago."""
    with _recent_lock:
        _recent[id(engine), key] = weakref.ref(engine)
        _recent.move_to_end((id(engine), key))
        if len(_recent) <= KEPT:
            return
        for gone in [entry for entry, owner in _recent.items() if owner() is None]:
            del _recent[gone]
        while len(_recent) > KEPT:
            (_, oldest), reference = _recent.popitem(last=False)
            owner = reference()
            if owner is not None:
                owner.forget(oldest)


class Engine(Protocol):
    """What runs a program: arrays by name in, arrays by name out. Safe to call from several threads."""

    @property
    def inputs(self) -> Mapping[str, TensorShape]:
        """Shape and dtype of each input; a size may be symbolic."""
        ...

    @property
    def outputs(self) -> Mapping[str, TensorShape]:
        """Shape and dtype of each output."""
        ...

    @property
    def compile_count(self) -> int:
        """Shapes compiled so far."""
        ...

    @property
    def takes_any_shape(self) -> bool:
        """Whether a new shape costs nothing, so that a batch need not be filled up to one that came before."""
        ...

    def __call__(self, inputs: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
        """Outputs by name; blocks until they are there. Raises: ShapeError, where the inputs do not fit."""
        ...

    def start(self, inputs: Mapping[str, ArrayLike]) -> Mapping[str, ArrayLike]:
        """As a call, but the outputs may still be under way: `np.asarray` of one waits for it."""
        ...

    def prepare(self, shapes: Iterable[Mapping[str, tuple[int, ...]]]) -> None:
        """Make ready for inputs of these shapes, side by side and in the background; returns at once."""
        ...


@dataclass(frozen=True)
class TensorShape:
    """Shape and dtype of an input or an output of a program; a size is a number or an expression such as "32*h"."""

    shape: tuple[int | str, ...]
    dtype: np.dtype

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.shape))}] {self.dtype}"


@functools.cache
def _workers() -> ThreadPoolExecutor:
    """The threads that prepare shapes, of all engines of the process."""
    return ThreadPoolExecutor(cpu_count(), thread_name_prefix="oar-prepare")


@functools.cache
def _announce() -> None:
    """Say once what takes time."""
    log.info("compiling programs for this machine: seconds for each size of input, once")


@contextlib.contextmanager
def _readable(program: Program) -> Iterator[None]:
    """Raises: FormatError with the file's name in the place of what jax and MLIR say of bytes that are no program."""
    try:
        yield
    except (UnicodeError, RuntimeError, LookupError, TypeError, AttributeError, AssertionError) as error:
        if isinstance(error, OarError) or not isinstance(program, StoredProgram):
            raise
        raise FormatError(
            "the program cannot be read",
            where=program.file,
            received=f"{type(error).__name__}: {str(error)[:200]}",
            allowed="a program as `oar export` wrote it",
            fix="copy the artifact again or export it anew",
        ) from error


class XLAEngine:
    """Run `program` on numpy inputs by name. Without `device` on the one that `set_device` chose.

    Attributes:
        compile_count: shapes compiled so far (a program that was kept on disk counts too).
    """

    takes_any_shape = False

    def __init__(
        self,
        program: Program,
        weights: Mapping[str, np.ndarray | jax.Array],
        device: Device | None = None,
        options: Mapping[str, str | bool] | None = None,
    ) -> None:
        check_process()
        self._store = executables.open_store()
        self.device = device or default_device()
        kind = self.device.platform
        kinds = {"gpu": ("cuda", "rocm"), "cuda": ("cuda",), "rocm": ("rocm",)}.get(kind, (kind,))
        if not set(kinds) & set(program.platforms):
            raise DeviceError(
                "the program was not lowered for this device",
                where=program.file if isinstance(program, StoredProgram) else None,
                received=kind,
                allowed=", ".join(program.platforms),
                fix="export it again with this platform",
            )
        self.program = program
        self._options = dict(compile_options(self.device) if options is None else options)
        self._weights = jax.device_put(dict(weights), self.device)
        self._digest = program_digest(program)
        with _readable(program):
            self.inputs, self.outputs = self._signature()
        self._calls = 0
        self._compiled: dict[tuple, Callable[..., PyTree]] = {}
        self._signatures: set[tuple] = set()
        self._locks: dict[tuple, threading.Lock] = {}
        self._guard = threading.Lock()

    @property
    def compile_count(self) -> int:
        return len(self._signatures)

    def __call__(self, inputs: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
        """Outputs by name as numpy arrays, which may be read-only; blocks until they are there.

        Raises:
            ShapeError: the inputs are not those of the program, by name, dtype or shape.
        """
        return {name: np.asarray(value) for name, value in self.start(inputs).items()}

    def start(self, inputs: Mapping[str, ArrayLike]) -> dict[str, jax.Array]:
        """As a call, but the outputs may still be under way: reading one waits for it."""
        check_process()
        arrays = self._checked(inputs)
        shapes = {name: array.shape for name, array in arrays.items()}
        compiled = self.compile(shapes)
        with self._guard:
            self._calls += 1
            due = self._calls % _CALLS == 0
        if due:
            release_memory()
        placed = jax.device_put(arrays, self.device)
        try:
            return compiled(self._weights, placed)
        except executables.BrokenExecutable as error:
            return self._replace(shapes, error)(self._weights, placed)

    def compile(self, shapes: Mapping[str, tuple[int, ...]]) -> Callable[..., PyTree]:
        """The program for these input shapes, compiled now if it is not yet.

        Raises:
            ShapeError: the program does not take these shapes.
        """
        key = _shape_key(shapes)
        with self._guard:
            executable = self._compiled.get(key)
            lock = self._locks.setdefault(key, threading.Lock())
        if executable is None:
            with lock:
                executable = self._compiled.get(key)
                if executable is None:
                    executable = self._load_or_compile(shapes)
                    with self._guard:
                        self._signatures.add(key)
                        self._compiled[key] = executable
        _note_use(self, key)
        return executable

    def prepare(self, shapes: Iterable[Mapping[str, tuple[int, ...]]]) -> None:
        """Compile for these shapes, or load what was kept, in threads; a call waits for its own shape alone.

        Errors are those of the call that needs the shape.
        """
        for one in shapes:
            if _shape_key(one) not in self._compiled:
                _workers().submit(self._prepare, dict(one))

    def _prepare(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        with contextlib.suppress(Exception):
            self.compile(shapes)

    def forget(self, key: tuple) -> None:
        """Let go of the program for these shapes; calls that run it go on."""
        with self._guard:
            self._compiled.pop(key, None)
            self._locks.pop(key, None)

    def _signature(self) -> tuple[dict[str, TensorShape], dict[str, TensorShape]]:
        """Inputs and outputs: as they were kept with the executables, else from the program, which is then read."""
        key = executables.signature_key(self._digest)
        stored = None if self._store is None else self._store.load(key)
        if stored is None:
            (_, inputs), _ = jax.tree.unflatten(self.program.in_tree, self.program.in_avals)
            outputs = jax.tree.unflatten(self.program.out_tree, self.program.out_avals)
            described = [
                {
                    name: ([n if isinstance(n, int) else str(n) for n in aval.shape], aval.dtype.name)
                    for name, aval in avals.items()
                }
                for avals in (inputs, outputs)
            ]
            stored = json.dumps(described).encode()
            if self._store is not None:
                self._store.save(key, stored)
        inputs, outputs = [
            {name: TensorShape(tuple(shape), jnp.dtype(dtype)) for name, (shape, dtype) in part.items()}
            for part in json.loads(stored)
        ]
        return inputs, outputs

    def _executable_key(self, shapes: Mapping[str, tuple[int, ...]]) -> str:
        return executables.executable_key(self._digest, self._weights, shapes, self._options, self.device)

    def _load_or_compile(self, shapes: Mapping[str, tuple[int, ...]]) -> Callable[..., PyTree]:
        """The executable that was kept for these shapes, else the program compiled now and kept."""
        if self._store is None:
            compiled = self._compile(self._lower(shapes))
            release_memory()
            return compiled
        key = self._executable_key(shapes)
        data = self._store.load(key)
        if data is not None:
            try:
                return executables.Executable(data, self.device, self.outputs)
            except executables.BrokenExecutable as error:
                log.warning("a kept program cannot be loaded and is made again: %s", error)
        _announce()
        compiled, dumped = executables.compile_and_dump(lambda: self._compile(self._lower(shapes)))
        if dumped is not None:
            self._store.save(key, dumped)
        release_memory()
        return compiled

    def _replace(self, shapes: Mapping[str, tuple[int, ...]], error: Exception) -> Callable[..., PyTree]:
        """The program for these shapes without what was kept for them, which does not run."""
        log.warning("a kept program does not run and is made again: %s", error)
        if self._store is not None:
            self._store.forget(self._executable_key(shapes))
        self.forget(_shape_key(shapes))
        return self.compile(shapes)

    def _lower(self, shapes: Mapping[str, tuple[int, ...]]) -> jax.stages.Lowered:
        specs = {name: jax.ShapeDtypeStruct(shapes[name], self.inputs[name].dtype) for name in self.inputs}

        def call(
            weights: PyTree, inputs: PyTree
        ) -> PyTree:  # jax keeps what it traced as long as the function lives
            return self.program.call(weights, inputs)

        try:
            with jax.default_device(self.device), _readable(self.program):
                # An executable that was kept is called with every argument, in the order of their names.
                return jax.jit(call, keep_unused=True).lower(self._weights, specs)
        except ValueError as error:  # an expression over sizes that size_fits leaves to jax
            raise ShapeError(
                "the program does not take these shapes",
                received=", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items())
                + f": {str(error).splitlines()[0]}",
                allowed=describe(self.inputs),
            ) from error

    def _compile(self, lowered: jax.stages.Lowered) -> Callable[..., PyTree]:
        if self._options:
            try:
                return lowered.compile(compiler_options=self._options)
            except Exception as error:  # an experimental option that this jaxlib does not know
                if "option" not in str(error).lower():
                    raise
                log.warning("this jaxlib takes not all compile options, going on without: %s", error)
                self._options = {}
        return lowered.compile()

    def _checked(self, inputs: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
        return check_inputs(inputs, self.inputs)


def _shape_key(shapes: Mapping[str, tuple[int, ...]]) -> tuple:
    return tuple(sorted((name, tuple(shape)) for name, shape in shapes.items()))


def check_inputs(
    inputs: Mapping[str, ArrayLike], declared: Mapping[str, TensorShape]
) -> dict[str, np.ndarray]:
    """The inputs as contiguous arrays. Raises: ShapeError, where names, dtypes or shapes are not the declared ones."""
    if set(inputs) != set(declared):
        raise ShapeError(
            "the program takes other inputs", received=", ".join(sorted(inputs)), allowed=describe(declared)
        )
    arrays = {}
    sizes: dict[str, int] = {}
    for name, shape in declared.items():
        array = np.asarray(inputs[name], order="C")  # ascontiguousarray makes a number an array of one
        fits = array.ndim == len(shape.shape) and all(
            size_fits(size, dim, sizes) for size, dim in zip(array.shape, shape.shape)
        )
        if not fits or array.dtype != shape.dtype:
            raise ShapeError(
                "an input does not fit the program",
                where=name,
                received=f"{array.shape} {array.dtype}",
                allowed=str(shape),
            )
        arrays[name] = array
    return arrays


def describe(tensors: Mapping[str, TensorShape]) -> str:
    """Names, shapes and dtypes for messages."""
    return ", ".join(f"{name} {tensor}" for name, tensor in tensors.items())
