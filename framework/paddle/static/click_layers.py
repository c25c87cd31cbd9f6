"""paddle.static.nn: layers of models of words and clicks, whose operators run by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.errors import ModeError
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.layer import new_parameter
from framework.paddle.static.program import Variable, default_main_program, in_dynamic_mode
from framework.paddle.utils import unique_name

if TYPE_CHECKING:
    from framework.paddle.nn.param_attr import AttrLike


def _append(
    op_type: str,
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, tuple[Sequence[int], object]],
    attrs: Mapping[str, object],
) -> list[Variable]:
    """Append an operator; returns its outputs, of which shapes and types are given by slot.

    Raises:
        ModeError: in dynamic mode.
    """
    if in_dynamic_mode():
        raise ModeError(
            "the layer is for static mode",
            where=f"paddle.static.nn.{op_type}",
            fix="call paddle.enable_static() before it",
        )
    block = default_main_program().current_block()
    variables = {
        slot: block.create_var(unique_name.generate(f"{op_type}.tmp"), shape, dtype)  # type: ignore[arg-type]
        for slot, (shape, dtype) in outputs.items()
    }
    block.append_op(op_type, inputs, variables, attrs)
    return cast("list[Variable]", list(variables.values()))


_SAMPLERS = ("uniform", "log_uniform", "custom_dist")


@checked
def nce(
    input: Tensor,
    label: Tensor,
    num_total_classes: int,
    sample_weight: Tensor | None = None,
    param_attr: AttrLike = None,
    bias_attr: AttrLike = None,
    num_neg_samples: int | None = None,
    name: str | None = None,
    sampler: str = "uniform",
    custom_dist: Sequence[float] | None = None,
    seed: int = 0,
    is_sparse: bool = False,
) -> Tensor:
    """The loss [N, 1] of telling the true classes of `input` [N, D] from sampled ones (noise-contrastive estimation).

    Args:
        label: True classes [N, T].
        sample_weight: [N, 1].
        num_neg_samples: How many classes are drawn for each row; 10 by default.
        custom_dist: With the sampler "custom_dist" the share of each class.
        seed: Of the classes that are drawn, the same in each run; 0: from the stream of `paddle.seed`.
        is_sparse: Changes nothing.

    Raises:
        ValueError: an input that is no matrix, an unknown sampler, or no `custom_dist` for its sampler.
    """
    if input.ndim != 2:
        raise ValueError(f"The rank of `input` must be 2, but received {input.ndim}.")
    if sampler not in _SAMPLERS:
        raise ValueError(f"nce: sampler is one of {', '.join(_SAMPLERS)}, received {sampler!r}")
    operands: dict[str, Tensor] = {"Input": input, "Label": label}
    layer, classes = name or unique_name.generate("nce"), int(num_total_classes)
    weight = new_parameter(layer, [classes, input.shape[1]], param_attr, input.dtype, False, None)
    bias = new_parameter(layer, [classes, 1], bias_attr, input.dtype, True, None)
    operands |= {} if weight is None else {"Weight": weight}
    operands |= {} if bias is None else {"Bias": bias}
    operands |= {} if sample_weight is None else {"SampleWeight": sample_weight}
    if sampler == "custom_dist":
        if custom_dist is None:
            raise ValueError("nce: the sampler custom_dist needs custom_dist, the share of each class")
        operands["CustomDistProbs"] = Tensor(np.asarray(custom_dist, np.float32))
    drawn = 10 if num_neg_samples is None else int(num_neg_samples)
    attrs = {"num_total_classes": classes, "num_neg_samples": drawn, "seed": seed}
    rows, samples = input.shape[0], label.shape[1] + drawn
    outputs = {
        "Cost": ([rows, 1], input.dtype),
        "SampleLogits": ([rows, samples], input.dtype),
        "SampleLabels": ([rows, samples], label.dtype),
    }
    cost, *_ = _append("nce", operands, outputs, {**attrs, "sampler": _SAMPLERS.index(sampler)})
    return cost / (drawn + 1)


def continuous_value_model(input: Tensor, cvm: Tensor, use_cvm: bool = True) -> Tensor:
    """Rows [N, 2 + D] that begin with counts of shows and clicks, with log(shows + 1) and log(clicks + 1) -
    log(shows + 1) in their place, or [N, D] without them. The gradient of the counts is `cvm` [N, 2]."""
    shape = list(input.shape) if use_cvm else [input.shape[0], input.shape[1] - 2]
    (out,) = _append("cvm", {"X": input, "CVM": cvm}, {"Y": (shape, input.dtype)}, {"use_cvm": use_cvm})
    return out
