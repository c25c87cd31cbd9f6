"""to_static, InputSpec, save and load."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.dtypes import narrow, precision
from framework.core.errors import InputError, ShapeError, TraceError
from framework.core.rng import next_key
from framework.export import Artifact, TensorSpec, load_artifact, lower_layer
from framework.nn import functional_core
from framework.nn.functional.lowering import platform
from framework.nn.layer import Layer

_HERE = Path(__file__).resolve().parents[1]  # framework/


@dataclass(frozen=True)
class InputSpec:
    """Shape and dtype of one input. None or -1 is a size that may change, a string names it: [None, "32*h", 3]."""

    shape: Sequence[int | str | None]
    dtype: str = "float32"
    name: str | None = None

    @staticmethod
    def from_tensor(tensor: Any, name: str | None = None) -> InputSpec:
        return InputSpec(tuple(np.shape(tensor)), str(tensor.dtype), name)

    from_numpy = from_tensor

    def tensor_spec(self, number: int) -> TensorSpec:
        """With every free size given a name of its own; a free first size is the batch, shared by all inputs."""
        free = lambda axis: "n" if axis == 0 else f"d{number}_{axis}"  # noqa: E731
        shape = tuple(free(axis) if n is None or n == -1 else n for axis, n in enumerate(self.shape))
        return TensorSpec(shape, self.dtype)

    def check(self, array: Any, where: str) -> None:
        shape = np.shape(array)
        fits = len(shape) == len(self.shape) and all(
            not isinstance(want, int) or want == -1 or got == want for got, want in zip(shape, self.shape)
        )
        if not fits or np.dtype(array.dtype) != np.dtype(self.dtype):
            raise ShapeError(
                "an argument does not fit its InputSpec",
                where=where,
                received=f"{tuple(shape)} {array.dtype}",
                allowed=f"{tuple(self.shape)} {self.dtype}",
            )


def _user_line(error: BaseException) -> str:
    """file:line and text of the last frame outside of jax and the framework."""
    jax_folder = Path(jax.__file__).resolve().parent
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename).resolve()
        if _HERE not in path.parents and jax_folder not in path.parents and path.exists():
            return f"{frame.filename}:{frame.lineno}: {frame.line}"
    return "an unknown line"


def _explained(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (jax.errors.ConcretizationTypeError, jax.errors.NonConcreteBooleanIndexError) as error:
        raise TraceError(
            "Python asked for a value that is only known when the program runs",
            where=_user_line(error),
            received=str(error).splitlines()[0],
            allowed="branches on shapes, on plain attributes and on `self.training`",
            fix="framework.jit.cond(pred, true_fn, false_fn, …) or framework.jit.while_loop(…); jnp.where for elements",
        ) from error


def to_static(
    target: Layer | Callable[..., Any] | None = None, input_spec: Sequence[InputSpec] | None = None
) -> Any:
    """Compile a Layer or a pure function; also a decorator. The result is called like the original.

    A layer's buffers are updated by each call. It compiles once per shape, dtype and mode (train or eval).
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
    for number, (spec, arg) in enumerate(zip(specs, args)):
        spec.check(arg, spec.name or f"argument {number}")


def _arrays(args: Any) -> Any:
    """numpy leaves as jax arrays, with 64-bit integers narrowed under a range check."""
    return jax.tree.map(lambda a: jnp.asarray(narrow(a)) if isinstance(a, np.ndarray) else a, args)


def _static_function(fn: Callable[..., Any], specs: Sequence[InputSpec] | None) -> Callable[..., Any]:
    compiled = jax.jit(fn)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        _check(specs, args)
        args, kwargs = _arrays((args, kwargs))
        return _explained(lambda: compiled(*args, **kwargs))

    return call


@functools.partial(jax.jit, static_argnums=(0, 1))
def _apply(graphdef: Any, setting: Any, params: Any, buffers: Any, key: Any, args: Any, kwargs: Any) -> Any:
    """`setting` (precision, platform) only keys the compilation: operations read it from their scopes."""
    return functional_core.apply(graphdef, params, buffers, key, *args, **kwargs)


class _StaticLayer:
    """A layer whose calls are compiled; everything else is the layer's own."""

    def __init__(self, layer: Layer, specs: Sequence[InputSpec] | None) -> None:
        self._layer, self._specs = layer, specs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        _check(self._specs, args)
        graphdef, params, buffers = functional_core.split(self._layer)
        key = next_key() if self._layer.training else None
        setting = (precision(), platform())
        args, kwargs = _arrays((args, kwargs))
        out, buffers = _explained(lambda: _apply(graphdef, setting, params, buffers, key, args, kwargs))
        functional_core.update(self._layer, None, buffers)
        return out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._layer, name)


def save(layer: Any, path: str | Path, input_spec: Sequence[InputSpec] | None = None) -> Path:
    """Write the layer in eval mode as an artifact folder at `path`; returns the folder.

    Raises:
        InputError: no input_spec, neither here nor at to_static.
    """
    if isinstance(layer, _StaticLayer):
        input_spec, layer = input_spec or layer._specs, layer._layer
    if not input_spec:
        raise InputError(
            "jit.save needs the shapes of the inputs",
            allowed="input_spec=[InputSpec([None, 32, 32, 3])]",
            fix="pass input_spec to jit.save or to to_static",
        )
    specs = {s.name or f"x{n}": s.tensor_spec(n) for n, s in enumerate(input_spec)}
    was_training = layer.training
    try:
        program, weights = _explained(lambda: lower_layer(layer, specs, after=_named))
    finally:
        layer.train(was_training)
    config = {"kind": "jit", "model": type(layer).__name__, "inputs": list(specs)}
    return Artifact(config, {"float32": program}, weights).save(path)


def _named(out: Any) -> dict[str, Any]:
    """Outputs by name: a dict as it is, a sequence or one array as output0, output1, …"""
    if isinstance(out, dict):
        return out
    return {f"output{n}": leaf for n, leaf in enumerate(jax.tree.leaves(out))}


class LoadedProgram:
    """What `load` returns: called with arrays in the order of the inputs, it returns the outputs.

    One output is returned as it is, several as a dict by name. It needs no model code.
    """

    def __init__(self, folder: str | Path) -> None:
        from framework.inference.engine import Engine

        artifact = load_artifact(folder)
        self.input_names = list(artifact.config["inputs"])
        self._engine = Engine(artifact.programs["float32"], artifact.weights)

    def __call__(self, *args: Any) -> Any:
        if len(args) != len(self.input_names):
            raise ShapeError(
                "wrong number of arguments", received=len(args), allowed=", ".join(self.input_names)
            )
        out = self._engine({name: narrow(np.asarray(a)) for name, a in zip(self.input_names, args)})
        return next(iter(out.values())) if len(out) == 1 else out


def load(path: str | Path) -> LoadedProgram:
    """Load what `save` wrote."""
    return LoadedProgram(path)
