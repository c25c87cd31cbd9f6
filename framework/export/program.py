"""Lower a pure function to a portable program: StableHLO for several platforms, with symbolic sizes.

The weights are arguments, so a program is some tens of kilobytes and one file of weights serves programs of several
precisions. Both forms of an operation that is written differently on a CPU (framework/nn/functional/lowering.py) are
in the program; each platform compiles its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import jax
import numpy as np
from jax import export

from framework.core.dtypes import Precision, precision_scope
from framework.core.errors import ShapeError
from framework.core.trace import explain_trace_errors
from framework.core.types import PyTree
from framework.export.specs import PLATFORMS, TensorSpec
from framework.nn import functional_core
from framework.nn.functional.lowering import platform_scope
from framework.nn.layer import Layer


def symbolic_arguments(
    inputs: Mapping[str, TensorSpec], constraints: Sequence[str] = ()
) -> dict[str, jax.ShapeDtypeStruct]:
    """The inputs of a program as jax traces them; equal names of sizes are one symbol.

    Raises:
        ShapeError: a constraint that jax does not read.
    """
    try:
        scope = export.SymbolicScope(tuple(constraints))
    except ValueError as error:
        raise ShapeError(
            "not a constraint on symbolic sizes",
            received=f"{list(constraints)}: {str(error).splitlines()[0]}",
            allowed='"w >= 16", "mod(h, 32) == 0"',
        ) from None
    return {
        name: jax.ShapeDtypeStruct(
            export.symbolic_shape(",".join(map(str, spec.shape)), scope=scope),
            jax.dtypes.canonicalize_dtype(spec.dtype),  # int64 is narrowed where 64 bits are off
        )
        for name, spec in inputs.items()
    }


ArrayDict = dict[str, jax.Array]
ArrayFunction = Callable[[ArrayDict, ArrayDict], ArrayDict]  # (weights, inputs) -> outputs, by name


def lower_program(
    fn: ArrayFunction,
    weights: Mapping[str, jax.Array | np.ndarray],
    inputs: Mapping[str, TensorSpec],
    platforms: tuple[str, ...] = PLATFORMS,
    precision: Precision = "float32",
    constraints: Sequence[str] = (),
) -> export.Exported:
    """`fn(weights, inputs) -> outputs`, flat dicts by name, as one program for all `platforms`.

    `constraints` such as "w >= 16" say what holds for the symbolic sizes; the caller has to keep to them.

    Raises:
        TraceError: the function branches on a value, or on a size that is symbolic; it names the line.
    """
    arguments = symbolic_arguments(inputs, constraints)
    shapes = {name: jax.ShapeDtypeStruct(np.shape(w), w.dtype) for name, w in weights.items()}

    # A function of its own: jit would reuse the trace of `fn` that another precision or platform left.
    def fresh(weights: ArrayDict, inputs: ArrayDict) -> ArrayDict:
        return fn(weights, inputs)

    with (
        platform_scope("any" if len(platforms) > 1 else "cpu" if "cpu" in platforms else "other"),
        precision_scope(precision),
        explain_trace_errors(),
        file_names_alone(),
    ):
        return export.export(jax.jit(fresh), platforms=platforms)(shapes, arguments)


@contextlib.contextmanager
def file_names_alone() -> Iterator[None]:
    """Programs that are lowered here name files of Python without the folders of this machine, which would tell who
    exported them and where."""
    key = "jax_hlo_source_file_canonicalization_regex"
    before = getattr(jax.config, key)
    jax.config.update(key, r".*[/\\]")
    try:
        yield
    finally:
        jax.config.update(key, before)


def split_eval(layer: Layer) -> tuple[functional_core.GraphDef, ArrayDict, ArrayDict]:
    """(graphdef, params, buffers) of a layer in eval mode; the layer itself stays in the mode it was in."""
    modes = [(sublayer, sublayer.training) for sublayer in layer.sublayers(include_self=True)]
    try:
        return functional_core.split(layer.eval())
    finally:
        for sublayer, training in modes:
            sublayer.training = training


def layer_function(
    layer: Layer, inputs: Mapping[str, TensorSpec]
) -> tuple[ArrayFunction, dict[str, np.ndarray]]:
    """(fn, weights) of a layer whose call takes `inputs` in order and gives outputs by name: what an exporter of
    another format takes. The weights have the names and layouts of a checkpoint."""
    graphdef, params, buffers = split_eval(layer)
    order = tuple(inputs)

    def fn(weights: ArrayDict, inputs: ArrayDict) -> ArrayDict:
        arrays = {name: weights[name] for name in params}, {name: weights[name] for name in buffers}
        return functional_core.apply(graphdef, *arrays, None, *(inputs[name] for name in order))[0]

    return fn, {name: np.asarray(value) for name, value in {**params, **buffers}.items()}


def lower_layer(
    layer: Layer,
    inputs: Mapping[str, TensorSpec],
    before: Callable[[ArrayDict], tuple] | None = None,
    after: Callable[[PyTree], ArrayDict] | None = None,
    platforms: tuple[str, ...] = PLATFORMS,
    precision: Precision = "float32",
    method: str = "__call__",
    constraints: Sequence[str] = (),
) -> tuple[export.Exported, dict[str, np.ndarray]]:
    """Export a layer in eval mode, by its call or another `method`; returns (program, weights).

    The layer itself stays in the mode it was in.

    `before(inputs)` gives the positional arguments of the layer (default: the inputs in order) and `after(out)` the
    named outputs (default: {"output": out}); both become part of the program.

    Kernels of convolutions (`Layer.conv_kernels`) are HWIO in `weights` and not OIHW: that is what a convolution reads,
    and weights, being arguments, would be transposed in every call (CPU time of PP-YOLOE+ s: 112 to 105 ms, of
    PicoDet-s: 10.9 to 8.6).
    """
    graphdef, params, buffers = split_eval(layer)
    kernels = kernel_names(layer)
    order = tuple(inputs)  # jit hands a dict over in the order of its sorted names

    def fn(weights: ArrayDict, inputs: ArrayDict) -> ArrayDict:
        args = before(inputs) if before else tuple(inputs[name] for name in order)
        out, _ = functional_core.apply(
            graphdef,
            {n: from_kernel_layout(weights[n]) if n in kernels else weights[n] for n in params},
            {n: weights[n] for n in buffers},
            None,
            *args,
            method=method,
        )
        return after(out) if after else {"output": out}

    weights = program_weights(layer)
    return lower_program(fn, weights, inputs, platforms, precision, constraints), weights


def program_weights(layer: Layer) -> dict[str, np.ndarray]:
    """The weights of a layer as its program takes them; see `lower_layer`."""
    _, params, buffers = split_eval(layer)
    weights = {name: np.asarray(value) for name, value in {**params, **buffers}.items()}
    kernels = kernel_names(layer)
    return weights | {name: to_kernel_layout(weights[name]) for name in kernels}


def to_kernel_layout(weight: np.ndarray) -> np.ndarray:
    """A kernel [out, in, *kernel] as convolutions read it, [*kernel, in, out]."""
    return np.ascontiguousarray(weight.transpose(*range(2, weight.ndim), 1, 0))


def from_kernel_layout(weight: jax.Array) -> jax.Array:
    """What `to_kernel_layout` was given."""
    axes = weight.ndim - 2
    return weight.transpose(axes + 1, axes, *range(axes))


def kernel_names(layer: Layer) -> set[str]:
    """The kernels of its convolutions, among the names of its parameters."""
    named = layer.named_sublayers(include_self=True)
    return {f"{name}.{own}".lstrip(".") for name, sublayer in named for own in sublayer.conv_kernels}
