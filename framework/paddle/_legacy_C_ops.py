"""paddle._legacy_C_ops: operations whose settings are options as pairs of name and value, `argsort(x, "axis", 0)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from framework.paddle import _C_ops
from framework.paddle._kernel.kernels import find_operator
from framework.paddle._kernel.methods import replace_value
from framework.paddle._kernel.modules import resolver
from framework.paddle._kernel.operators import run_operator
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distributed.collective import all_reduce, get_group
from framework.paddle.vision import ops as vision


def _settings(pairs: tuple[object, ...]) -> dict[str, Any]:
    return {str(name): value for name, value in zip(pairs[::2], pairs[1::2], strict=True)}


def argsort(x: Tensor, *settings: object) -> tuple[Tensor, Tensor]:
    """(the values in order, their indices); settings `axis` and `descending`."""
    options = _settings(settings)
    return _C_ops.argsort(x, options.get("axis", -1), options.get("descending", False))


def c_allreduce_sum(x: Tensor, *settings: object) -> Tensor:
    """The sum over the group of number `ring_id`."""
    total = x.clone()
    all_reduce(total, group=get_group(_settings(settings).get("ring_id", 0)))
    return total


def multiclass_nms3(
    bboxes: Tensor, scores: Tensor, rois_num: Tensor | None, *settings: object
) -> tuple[Tensor, Tensor, Tensor]:
    """As `paddle._C_ops.multiclass_nms3`."""
    return _C_ops.multiclass_nms3(bboxes, scores, rois_num, **_settings(settings))


def matrix_nms(
    bboxes: Tensor, scores: Tensor, *settings: object
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """As `paddle._C_ops.matrix_nms`."""
    return _C_ops.matrix_nms(bboxes, scores, **_settings(settings))


def box_coder(
    prior_box: Tensor, prior_box_var: Tensor | None, target_box: Tensor, *settings: object
) -> Tensor:
    """As `paddle._C_ops.box_coder`."""
    options = {"code_type": "encode_center_size", "box_normalized": True, "axis": 0, "variance": ()}
    return _C_ops.box_coder(prior_box, prior_box_var, target_box, **{**options, **_settings(settings)})


def distribute_fpn_proposals(
    fpn_rois: Tensor, rois_num: Tensor | None, levels: int, counts: int, *settings: object
) -> tuple[list[Tensor | None], Tensor | None, list[Tensor | None] | None]:
    """(rois of each level, where each row went, their numbers in each image)."""
    rois, numbers, restore = _C_ops.distribute_fpn_proposals(fpn_rois, rois_num, **_settings(settings))
    return rois, restore, numbers


def generate_proposals_v2(
    scores: Tensor,
    bbox_deltas: Tensor,
    im_shape: Tensor,
    anchors: Tensor,
    variances: Tensor,
    *settings: object,
) -> object:
    """(rois, their scores, their numbers in each image)."""
    options = _settings(settings)
    tops = {"pre_nms_top_n": options.pop("pre_nms_topN"), "post_nms_top_n": options.pop("post_nms_topN")}
    return vision.generate_proposals(
        scores, bbox_deltas, im_shape, anchors, variances, **tops, **options, return_rois_num=True
    )


_SLOTS = {  # operator -> its inputs and outputs; Paddle takes Tensors for the outputs behind the inputs, too
    "fake_quantize_dequantize_abs_max": ("X", "Out OutScale"),
    "fake_channel_wise_quantize_dequantize_abs_max": ("X", "Out OutScale"),
    "quantize_linear": ("X Scale ZeroPoint", "Y"),
    "dequantize_linear": ("X Scale ZeroPoint", "Y"),
}


def _by_slots(name: str) -> Callable[..., Tensor | tuple[Tensor, ...]]:
    inputs, outputs = (names.split() for names in _SLOTS[name])

    def run(*args: object) -> Tensor | tuple[Tensor, ...]:
        """The outputs; what is passed for them gets the values, too."""
        first = next((index for index, value in enumerate(args) if isinstance(value, str)), len(args))
        slots = {slot: [one] for slot, one in zip(inputs, args) if isinstance(one, Tensor)}
        results = run_operator(name, slots, _settings(args[first:]), dict.fromkeys(outputs, 1))
        values = [results[slot][0] for slot in outputs]
        for target, value in zip(args[len(inputs) : first], values):
            if isinstance(target, Tensor):
                replace_value(target, value.detach())
        return values[0] if len(values) == 1 else tuple(values)

    run.__name__ = name
    return run


def check_finite_and_unscale(
    x: Sequence[Tensor], scale: Tensor, out: Sequence[Tensor], found_infinite: Tensor
) -> tuple[Sequence[Tensor], Tensor]:
    """As `paddle._C_ops.check_finite_and_unscale_`, with the results in `out` and `found_infinite`."""
    copies = [one if one is target else one.clone() for one, target in zip(x, out, strict=True)]
    results, is_infinite = _C_ops.check_finite_and_unscale_(copies, scale)
    for target, result in zip(out, results, strict=True):
        replace_value(target, result)
    replace_value(found_infinite, is_infinite.reshape(found_infinite.shape).astype(found_infinite.dtype))
    return out, found_infinite


def __getattr__(name: str) -> Any:
    """Operators of saved programs: inputs in their order, then pairs of a setting's name and its value."""
    if name in _SLOTS:
        return _by_slots(name)
    kernel = None if name.startswith("__") else find_operator(name)
    return _elsewhere(name) if kernel is None else kernel


_elsewhere = resolver(__name__)
