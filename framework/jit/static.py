"""to_static, InputSpec, save and load; control flow on values that are only known when the program runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, TypeVarTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from framework.core.dtypes import narrow
from framework.core.errors import InputError, ShapeError
from framework.core.rng import next_key
from framework.core.trace import explain_trace_errors
from framework.core.types import PyTree
from framework.export import Artifact, TensorSpec, load_artifact, lower_layer, size_fits
from framework.inference.engine import XLAEngine
from framework.nn import functional_core
from framework.nn.functional.lowering import Scopes, current_scopes
from framework.nn.layer import Layer

P = ParamSpec("P")
T = TypeVar("T")  # in control flow a pytree of arrays
Ts = TypeVarTuple("Ts")


@dataclass(frozen=True)
class InputSpec:
    """Shape and dtype of one input. None or -1 is a size that may change, a string names it: [None, "32*h", 3]."""

    shape: Sequence[int | str | None]
    dtype: str = "float32"
    name: str | None = None

    @staticmethod
    def from_tensor(tensor: jax.Array | np.ndarray, name: str | None = None) -> InputSpec:
        return InputSpec(tuple(np.shape(tensor)), str(tensor.dtype), name)

    from_numpy = from_tensor

    def tensor_spec(self, number: int) -> TensorSpec:
        """With every free size given a name of its own; a free first size is the batch, shared by all inputs."""
        shape = tuple(
            ("n" if axis == 0 else f"d{number}_{axis}") if n is None or n == -1 else n
            for axis, n in enumerate(self.shape)
        )
        return TensorSpec(shape, self.dtype)

    def check(self, array: ArrayLike, where: str, sizes: dict[str, int] | None = None) -> None:
        """Raises: ShapeError. `sizes` collects what named sizes stand for, to be shared by the specs of one call."""
        shape, sizes = np.shape(array), {} if sizes is None else sizes
        dtype = array.dtype if isinstance(array, (jax.Array, np.ndarray)) else np.asarray(array).dtype
        fits = len(shape) == len(self.shape) and all(
            want is None or want == -1 or size_fits(got, want, sizes) for got, want in zip(shape, self.shape)
        )
        if not fits or np.dtype(dtype) != np.dtype(self.dtype):
            raise ShapeError(
                "an argument does not fit its InputSpec",
                where=where,
                received=f"{tuple(shape)} {dtype}",
                allowed=f"{tuple(self.shape)} {self.dtype}",
            )


def to_static(
    target: Layer | Callable[..., PyTree] | None = None, input_spec: Sequence[InputSpec] | None = None
) -> PyTree:
    """Compile a Layer or a pure function; also a decorator. The result is called like the original.

    A layer's buffers are updated by each call. It compiles once per shape, dtype and mode (train or eval). A method
    is not compiled by itself: the layer that it belongs to is.
    """
    if target is None:
        return functools.partial(to_static, input_spec=input_spec)
    return (
        _StaticLayer(target, input_spec)
        if isinstance(target, Layer)
        else _static_function(target, input_spec)
    )


def _check(specs: Sequence[InputSpec] | None, args: tuple) -> None:
    if specs is None:
        return
    if len(args) != len(specs):
        raise ShapeError(
            "wrong number of arguments", received=len(args), allowed=f"{len(specs)}, as in input_spec"
        )
    sizes: dict[str, int] = {}
    for number, (spec, arg) in enumerate(zip(specs, args)):
        spec.check(arg, spec.name or f"argument {number}", sizes)


def _arrays(args: T) -> T:
    """numpy leaves as jax arrays, with 64-bit integers narrowed under a range check."""
    return jax.tree.map(lambda a: jnp.asarray(narrow(a)) if isinstance(a, np.ndarray) else a, args)


def _static_function(fn: Callable[P, T], specs: Sequence[InputSpec] | None) -> Callable[P, T]:
    @functools.partial(jax.jit, static_argnums=0)
    def run(scopes: Scopes, args: tuple, kwargs: dict[str, PyTree]) -> PyTree:
        return fn(*args, **kwargs)

    @functools.wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if args and isinstance(args[0], Layer):
            raise InputError(
                "to_static compiles layers and functions of arrays, not methods",
                where=getattr(fn, "__qualname__", fn),
                received=f"an argument that is a {type(args[0]).__name__}",
                fix="take the decorator off the method and call to_static(layer)",
            )
        _check(specs, args)
        with explain_trace_errors():
            return run(current_scopes(), *_arrays((args, kwargs)))

    return call


@functools.partial(jax.jit, static_argnums=(0, 1))
def _apply(
    graphdef: functional_core.GraphDef,
    scopes: Scopes,
    params: functional_core.State,
    buffers: functional_core.State,
    key: jax.Array | None,
    args: tuple,
    kwargs: dict[str, PyTree],
) -> tuple[PyTree, functional_core.State]:
    return functional_core.apply(graphdef, params, buffers, key, *args, **kwargs)


class _StaticLayer:
    """A layer whose calls are compiled; everything else is the layer's own."""

    def __init__(self, layer: Layer, specs: Sequence[InputSpec] | None) -> None:
        self._layer, self._specs = layer, specs

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        _check(self._specs, args)
        graphdef, params, buffers = functional_core.split(self._layer)
        key = next_key() if self._layer.training else None
        with explain_trace_errors():
            out, buffers = _apply(graphdef, current_scopes(), params, buffers, key, *_arrays((args, kwargs)))
        functional_core.update(self._layer, None, buffers)
        return out

    def train(self, mode: bool = True) -> _StaticLayer:
        self._layer.train(mode)
        return self

    def eval(self) -> _StaticLayer:
        return self.train(False)

    def __getattr__(self, name: str) -> Any:
        if name == "_layer":  # a copy asks before it is there
            raise AttributeError(name)
        return getattr(self._layer, name)


def save(layer: object, path: str | Path, input_spec: Sequence[InputSpec] | None = None) -> Path:
    """Write the layer in eval mode as an artifact folder at `path`; returns the folder.

    Raises:
        InputError: no layer, no input_spec (neither here nor at to_static), or two inputs of one name.
        TraceError: the layer branches on a value; the message names the line.
        FormatError: the folder holds something that is no artifact.
    """
    if isinstance(layer, _StaticLayer):
        input_spec, layer = input_spec or layer._specs, layer._layer
    if not isinstance(layer, Layer):
        raise InputError(
            "jit.save takes a layer",
            received=type(layer).__name__,
            allowed="a Layer, or what to_static made of one",
            fix="put the function into the forward of a Layer",
        )
    if not input_spec:
        raise InputError(
            "jit.save needs the shapes of the inputs",
            allowed="input_spec=[InputSpec([None, 32, 32, 3])]",
            fix="pass input_spec to jit.save or to to_static",
        )
    specs = {s.name or f"x{n}": s.tensor_spec(n) for n, s in enumerate(input_spec)}
    if len(specs) < len(input_spec):
        raise InputError(
            "two inputs have the same name",
            received=[s.name for s in input_spec],
            allowed="one name for each",
        )
    program, weights = lower_layer(layer, specs, after=_name_outputs)
    config = {"kind": "jit", "model": type(layer).__name__, "inputs": list(specs)}
    return Artifact(config, {"float32": program}, weights).save(path)


def _name_outputs(out: object) -> dict[str, jax.Array]:
    """Outputs by name: a dict as it is, a sequence or one array as output0, output1, …"""
    if isinstance(out, dict):
        return out
    return {f"output{n}": leaf for n, leaf in enumerate(jax.tree.leaves(out))}


class LoadedProgram:
    """What `load` returns: called with arrays in the order of the inputs, it returns the outputs.

    One output is returned as it is, several as a dict by name. It needs no model code.
    """

    def __init__(self, folder: str | Path) -> None:
        artifact = load_artifact(folder)
        if "float32" not in artifact.programs:
            raise InputError(
                "this artifact holds no program of its own",
                where=folder,
                received=f"stages: {', '.join(artifact.stages) or 'none'}",
                allowed="what jit.save wrote, or the folder of one stage",
            )
        self._engine = XLAEngine(artifact.programs["float32"], artifact.weights)
        self.input_names = artifact.input_names(self._engine.inputs)

    def __call__(self, *args: ArrayLike) -> PyTree:
        if len(args) != len(self.input_names):
            raise ShapeError(
                "wrong number of arguments", received=len(args), allowed=", ".join(self.input_names)
            )
        out = self._engine({name: narrow(np.asarray(a)) for name, a in zip(self.input_names, args)})
        return next(iter(out.values())) if len(out) == 1 else out


def load(path: str | Path) -> LoadedProgram:
    """Load what `save` wrote."""
    return LoadedProgram(path)


# -- control flow --------------------------------------------------------------------------------------------------


def cond(pred: ArrayLike, true_fn: Callable[[*Ts], T], false_fn: Callable[[*Ts], T], *operands: *Ts) -> T:
    """`true_fn(*operands)` where `pred` (a scalar) is true, else `false_fn(*operands)`.

    Both must return the same structure, shapes and dtypes.
    """
    return lax.cond(jnp.asarray(pred, bool).reshape(()), true_fn, false_fn, *operands)


def while_loop(
    cond_fn: Callable[..., PyTree], body: Callable[..., PyTree], loop_vars: list[PyTree] | tuple
) -> list[PyTree]:
    """Run `loop_vars = body(*loop_vars)` as long as `cond_fn(*loop_vars)` is true; shapes stay the same.

    As `paddle.static.nn.while_loop`. Reverse-mode gradients need a loop of fixed length: use jax.lax.scan there.
    """

    def step(values: tuple) -> tuple:
        out = body(*values)
        return tuple(out) if isinstance(out, (list, tuple)) else (out,)

    def more(values: tuple) -> PyTree:
        return jnp.asarray(cond_fn(*values), bool).reshape(())

    return list(lax.while_loop(more, step, tuple(jnp.asarray(v) for v in loop_vars)))
