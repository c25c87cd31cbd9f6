"""How each parameter of a model is divided: by rules of names, else by the kind of its layer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import jax
import numpy as np
from jax.sharding import PartitionSpec
from numpy.typing import ArrayLike

from framework.core.errors import ConfigError
from framework.core.types import PyTree
from framework.distributed.mesh import ParallelOptions
from framework.nn.common import Embedding, Linear
from framework.nn.layer import Layer
from framework.nn.lookups import Table
from framework.nn.moe import Experts

Axes = tuple[str | None, ...]

# Second products of a pair: they take the features that the first one has divided (Megatron-LM, arXiv 1909.08053).
_ROW = re.compile(
    r"(^|\.)(out_proj|o_proj|proj|down_proj|c_proj|wo|o|fc2|linear2|dense_4h_to_h|out|output\.dense)$"
)


def parameter_specs(
    model: Layer, options: ParallelOptions, sizes: Mapping[str, int], blocks: Sequence[str] = ()
) -> dict[str, PartitionSpec]:
    """The axes of the mesh over which each parameter of `model` is divided, by name; PartitionSpec() where it is whole.

    Linear [in, out] is divided by columns over `tensor` and by rows over `fsdp`, a second product of a pair the other
    way round; Embedding [rows, features] by features and rows; convolutions [out, in, …] by output and input channels;
    experts [experts, in, out] over `expert`, and each as a pair of Linear; all else over `fsdp`. An axis that does not
    divide a dimension is tried on the others, from the last one.

    Args:
        sizes: Devices of each axis of the mesh.
        blocks: Paths of those of a pipeline, whose parameters are divided over its devices between two steps, too.

    Raises:
        ConfigError: a rule is found in no name, or has more axes than a parameter that it is found in has dimensions.
    """
    rules = [(re.compile(pattern), axes) for pattern, axes in options.rules.items()]
    unused = set(options.rules)
    specs = {}
    for path, layer in model.named_sublayers(include_self=True):
        for name, parameter in layer._parameters.items():
            if isinstance(parameter, Table):  # dealt out by rows over all devices, see partitioner.py
                continue
            full, shape = f"{path}.{name}" if path else name, parameter.shape
            rule = next((one for one in rules if one[0].search(full)), None)
            if rule is not None:
                unused.discard(rule[0].pattern)
                if len(rule[1]) != len(shape):
                    raise ConfigError(
                        "a rule has an axis, or null, for every dimension of a parameter",
                        where=f"parallel.rules[{rule[0].pattern!r}]",
                        received=f"{len(rule[1])} axes for {full} {list(shape)}",
                        allowed=f"{len(shape)} axes",
                    )
                specs[full] = PartitionSpec(*_divisible(rule[1], shape, sizes))
            elif parameter.size < options.smallest:
                specs[full] = PartitionSpec()
            else:
                inside = any(path == block or path.startswith(f"{block}.") for block in blocks)
                specs[full] = PartitionSpec(*_derive(layer, path, name, shape, sizes, inside))
    if unused:
        raise ConfigError(
            "a rule is found in no name of a parameter",
            where="parallel.rules",
            received=", ".join(sorted(unused)),
            allowed=f"parts of names such as {', '.join(list(specs)[:5])}",
        )
    return specs


def _divisible(axes: Axes, shape: tuple[int, ...], sizes: Mapping[str, int]) -> Axes:
    return tuple(
        axis if axis is not None and size % sizes[axis] == 0 else None for axis, size in zip(axes, shape)
    )


def _derive(
    layer: Layer, path: str, name: str, shape: tuple[int, ...], sizes: Mapping[str, int], in_pipeline: bool
) -> Axes:
    """The axes of one parameter by the kind of its layer."""
    if isinstance(layer, Experts):  # [experts, in, out]
        inner = (1, 2) if name == "down_proj" else (2, 1)
        order: dict[str, tuple[int, ...]] = {"expert": (0,), "tensor": inner[:1], "fsdp": inner[::-1]}
    elif name in (
        "lora_A",
        "lora_B",
    ):  # [in, rank], [rank, out] of a linear layer; over `tensor` the rank is whole
        as_layer = (name == "lora_A") == bool(_ROW.search(path))
        features = 0 if name == "lora_A" else 1
        order = {"tensor": (features,) if as_layer else (), "fsdp": (features, 1 - features)}
    elif isinstance(layer, Linear) and len(shape) == 2 and not _ROW.search(path):
        order = {"tensor": (1,), "fsdp": (0, 1)}
    elif isinstance(layer, Linear) and len(shape) == 2:
        order = {"tensor": (0,), "fsdp": (1, 0)}
    elif isinstance(layer, Embedding):
        order = {"tensor": (1,), "fsdp": (0, 1)}
    elif layer.conv_kernels and len(shape) > 2:
        order = {"tensor": (0,), "fsdp": (1, 0)}
    else:  # of a kind that is not known here: gathered where it is used, and so right
        order = {"fsdp": tuple(reversed(range(len(shape))))}
    if in_pipeline:
        order["pipeline"] = tuple(range(len(shape)))
    result: list[str | None] = [None] * len(shape)
    for axis, dimensions in order.items():
        for dimension in dimensions:
            if sizes[axis] > 1 and result[dimension] is None and shape[dimension] % sizes[axis] == 0:
                result[dimension] = axis
                break
    return tuple(result)


def state_specs(
    tree: PyTree,
    divided: Mapping[str, PartitionSpec],
    parameters: Mapping[str, PartitionSpec],
    sizes: Mapping[str, int],
    params: str = "params",
) -> PyTree:
    """The axes of each leaf of a training state (arrays or their shapes): what is kept for a parameter lies as the
    parameter does, in all but its leading dimensions; the rest is whole on every device.

    Args:
        divided: The axes of each parameter by name, for what the optimizer keeps for it.
        parameters: Those of the parameters themselves, in the field `params`; stages 1 and 2 leave them whole.
        sizes: Devices of each axis of the mesh.
    """

    def choose(path: tuple[object, ...], leaf: ArrayLike) -> PartitionSpec:
        names = [str(getattr(key, "key", getattr(key, "name", ""))) for key in path]
        name = next((one for one in reversed(names) if one in divided), None)
        if name is None:
            return PartitionSpec()
        spec = (parameters if names[0] == params else divided)[name]
        leading = np.ndim(leaf) - len(spec)
        if leading < 0 or not spec:  # a count or a factor beside the parameter of this name
            return PartitionSpec()
        shape = np.shape(leaf)[leading:]
        fits = all(axis is None or size % sizes[axis] == 0 for axis, size in zip(spec, shape))
        return PartitionSpec(*([None] * leading), *spec) if fits else PartitionSpec()

    return jax.tree_util.tree_map_with_path(choose, tree)


def without_axis(spec: PartitionSpec, axis: str) -> PartitionSpec:
    """The same division without one axis."""
    return PartitionSpec(*(None if one == axis else one for one in spec))
