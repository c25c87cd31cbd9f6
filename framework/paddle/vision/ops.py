"""paddle.vision.ops: detection operations with maps [N, C, H, W], over the core's.

Where the length of a result depends on values (nms, matrix_nms, distribute_fpn_proposals, generate_proposals), the
values are looked at: not under to_static.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.errors import InputError
from framework.nn.functional import boxes as core_boxes
from framework.nn.functional import deform, proposals, roi, yolo
from framework.paddle import nn
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.settings import reads_values
from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle.nn import initializer as I
from framework.paddle.nn.param_attr import AttrLike
from framework.paddle.vision.models.parts import ConvNormActivation as ConvNormActivation
from framework.vision import image
from framework.vision.transforms.functional import check_choice

Size = int | Sequence[int]


def _last(x: jax.Array) -> jax.Array:
    return jnp.moveaxis(x, 1, -1)


def _first(x: jax.Array) -> jax.Array:
    return jnp.moveaxis(x, -1, 1)


def _narrow(x: jax.Array) -> jax.Array:
    """Numbers of boxes and sizes, as the core counts them."""
    return x.astype(jnp.int32)


@operation
def roi_align(
    x: Array,
    boxes: Array,
    boxes_num: Array,
    output_size: Size,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = True,
    name: str | None = None,
) -> Array:
    """[R, C, h, w]: each bin is the mean of points between pixels. x [N, C, H, W], boxes [R, 4], boxes_num [N]."""
    out = roi.roi_align(
        _last(x), boxes, _narrow(boxes_num), output_size, spatial_scale, sampling_ratio, aligned
    )
    return _first(out)


@operation
def roi_pool(
    x: Array,
    boxes: Array,
    boxes_num: Array,
    output_size: Size,
    spatial_scale: float = 1.0,
    name: str | None = None,
) -> Array:
    """[R, C, h, w]: each bin is the greatest of its pixels."""
    return _first(roi.roi_pool(_last(x), boxes, _narrow(boxes_num), output_size, spatial_scale))


@operation
def psroi_pool(
    x: Array,
    boxes: Array,
    boxes_num: Array,
    output_size: Size,
    spatial_scale: float = 1.0,
    name: str | None = None,
) -> Array:
    """[R, C, h, w]: each bin is the mean of its pixels in channels of its own; x [N, C * h * w, H, W]."""
    return _first(roi.psroi_pool(_last(x), boxes, _narrow(boxes_num), output_size, spatial_scale))


@operation
def deform_conv2d(
    x: Array,
    offset: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    deformable_groups: int = 1,
    groups: int = 1,
    mask: Array | None = None,
    name: str | None = None,
) -> Array:
    """A convolution that reads each tap `offset` [N, 2 * groups * kh * kw, H', W'] (down, right) beside its place; with
    `mask` [N, groups * kh * kw, H', W'] taps are weighed."""
    steps = (stride, padding, dilation, deformable_groups, groups)
    weights = None if mask is None else _last(mask)
    return _first(deform.deform_conv2d(_last(x), _last(offset), weight, bias, *steps, weights))


@operation
def box_coder(
    prior_box: Array,
    prior_box_var: Array | None,
    target_box: Array,
    code_type: str = "encode_center_size",
    box_normalized: bool = True,
    axis: int = 0,
    name: str | None = None,
) -> Array:
    """Boxes relative to priors, or back: encoded [N, M, 4]. prior_box [M, 4]; prior_box_var [M, 4] or four numbers."""
    return proposals.box_coder(prior_box, prior_box_var, target_box, code_type, box_normalized, axis)


@operation(differentiable=False)
def prior_box(
    input: Array,
    image: Array,
    min_sizes: float | Sequence[float],
    max_sizes: float | Sequence[float] | None = None,
    aspect_ratios: float | Sequence[float] = (1.0,),
    variance: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    flip: bool = False,
    clip: bool = False,
    steps: Sequence[float] = (0.0, 0.0),
    offset: float = 0.5,
    min_max_aspect_ratios_order: bool = False,
    name: str | None = None,
) -> tuple[Array, Array]:
    """The priors of SSD at each place of a map, and their variances, both [H, W, P, 4]."""
    return proposals.prior_box(
        _last(input),
        _last(image),
        min_sizes,
        max_sizes,
        aspect_ratios,
        variance,
        flip,
        clip,
        steps,
        offset,
        min_max_aspect_ratios_order,
    )


@operation
def yolo_box(
    x: Array,
    img_size: Array,
    anchors: Sequence[int],
    class_num: int,
    conf_thresh: float,
    downsample_ratio: int,
    clip_bbox: bool = True,
    name: str | None = None,
    scale_x_y: float = 1.0,
    iou_aware: bool = False,
    iou_aware_factor: float = 0.5,
) -> tuple[Array, Array]:
    """(boxes [N, A * H * W, 4], scores [N, A * H * W, classes]) of a map x [N, A * (5 + classes), H, W]."""
    return yolo.yolo_box(
        _last(x),
        _narrow(img_size),
        anchors,
        class_num,
        conf_thresh,
        downsample_ratio,
        clip_bbox,
        scale_x_y,
        iou_aware,
        iou_aware_factor,
    )


@operation
def yolo_loss(
    x: Array,
    gt_box: Array,
    gt_label: Array,
    anchors: Sequence[int],
    anchor_mask: Sequence[int],
    class_num: int,
    ignore_thresh: float,
    downsample_ratio: int,
    gt_score: Array | None = None,
    use_label_smooth: bool = True,
    name: str | None = None,
    scale_x_y: float = 1.0,
) -> Array:
    """[N]: the loss of YOLOv3 at one scale. gt_box [N, B, 4] as shares, gt_label and gt_score [N, B]."""
    settings = (anchors, anchor_mask, class_num, ignore_thresh, downsample_ratio)
    return yolo.yolo_loss(
        _last(x), gt_box, _narrow(gt_label), *settings, gt_score, use_label_smooth, scale_x_y
    )


def _array(x: Tensor) -> jax.Array:
    """What the core takes outside of a compiled program: 32-bit integers."""
    values = x.numpy()
    return jnp.asarray(values.astype(np.int32) if values.dtype == np.int64 else values)


def _array_or_none(x: Tensor | None) -> jax.Array | None:
    return None if x is None else _array(x)


def _given(x: jax.Array | None, dtype: str | None = None) -> Tensor | None:
    return None if x is None else wrap(as_array(np.asarray(x), dtype))


@reads_values
@checked
def nms(
    boxes: Tensor,
    iou_threshold: float = 0.3,
    scores: Tensor | None = None,
    category_idxs: Tensor | None = None,
    categories: Sequence[int] | None = None,
    top_k: int | None = None,
) -> Tensor:
    """Indices [M] int64 of the boxes that stay, best first; within categories where they are given."""
    kept = core_boxes.nms(
        _array(boxes), iou_threshold, _array_or_none(scores), _array_or_none(category_idxs), categories, top_k
    )
    return wrap(as_array(np.asarray(kept), "int64"))


@reads_values
def matrix_nms(
    bboxes: Tensor,
    scores: Tensor,
    score_threshold: float,
    post_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    use_gaussian: bool = False,
    gaussian_sigma: float = 2.0,
    background_label: int = 0,
    normalized: bool = True,
    return_index: bool = False,
    return_rois_num: bool = True,
    name: str | None = None,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """(rows [R, 6] of class, score and box, numbers of rows [N], indices [R, 1]); what is not asked for is None."""
    rows, counts, index = core_boxes.matrix_nms(
        _array(bboxes),
        _array(scores),
        score_threshold,
        post_threshold,
        nms_top_k,
        keep_top_k,
        use_gaussian,
        gaussian_sigma,
        background_label,
        normalized,
    )
    counts, index = (counts if return_rois_num else None), (index if return_index else None)
    return _given(rows), _given(counts, "int32"), _given(index, "int32")


@reads_values
@checked
def distribute_fpn_proposals(
    fpn_rois: Tensor,
    min_level: int,
    max_level: int,
    refer_level: int,
    refer_scale: float,
    pixel_offset: bool = False,
    rois_num: Tensor | None = None,
    name: str | None = None,
) -> tuple[list[Tensor | None], Tensor | None, list[Tensor | None] | None]:
    """(proposals of each level of a pyramid, index [R, 1] back to their order, numbers of each level [N] or None)."""
    levels, restore, counts = proposals.distribute_fpn_proposals(
        _array(fpn_rois),
        min_level,
        max_level,
        refer_level,
        refer_scale,
        pixel_offset,
        _array_or_none(rois_num),
    )
    numbers = None if rois_num is None else [_given(count, "int32") for count in counts]
    return [_given(level) for level in levels], _given(restore.reshape(-1, 1), "int32"), numbers


@reads_values
@checked
def generate_proposals(
    scores: Tensor,
    bbox_deltas: Tensor,
    img_size: Tensor,
    anchors: Tensor,
    variances: Tensor,
    pre_nms_top_n: int = 6000,
    post_nms_top_n: int = 1000,
    nms_thresh: float = 0.5,
    min_size: float = 0.1,
    eta: float = 1.0,
    pixel_offset: bool = False,
    return_rois_num: bool = False,
    name: str | None = None,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """(boxes [R, 4], scores [R, 1], numbers of boxes [N] or None) of scores [N, A, H, W] and deltas [N, 4 A, H, W]."""
    count = scores.size // scores.shape[0]
    # Paddle reads as many anchors and variances as there are scores, whatever shape they stand in.
    rows = [jnp.asarray(np.asarray(_array(x)).reshape(-1, 4)[:count]) for x in (anchors, variances)]
    rois, probabilities, numbers = proposals.generate_proposals(
        _last(_array(scores)),
        _last(_array(bbox_deltas)),
        _array(img_size),
        rows[0],
        rows[1],
        pre_nms_top_n,
        post_nms_top_n,
        nms_thresh,
        min_size,
        eta,
        pixel_offset,
    )
    return _given(rois), _given(probabilities), _given(numbers if return_rois_num else None, "int32")


def read_file(filename: str, name: str | None = None) -> Tensor:
    """The bytes of a file, uint8 [size]. Raises: InputError, where there is none or it is empty."""
    return wrap(as_array(np.frombuffer(image.read_bytes(filename, "image")[0], np.uint8)))


@checked
def decode_jpeg(x: Tensor, mode: str = "unchanged", name: str | None = None) -> Tensor:
    """The image [C, H, W] uint8 in the bytes of a JPEG.

    Args:
        mode: "unchanged" keeps the file's channels (1 or 3, 4 of a CMYK), "gray" and "rgb" turn it into 1 and 3.

    Raises:
        InputError: the bytes are no JPEG, or damaged.
    """
    check_choice(mode, ("unchanged", "gray", "rgb"), "decode_jpeg.mode")
    data = np.asarray(x.numpy(), np.uint8).tobytes()
    found = image.open_header(data, "decode_jpeg")
    if found.format != "JPEG":
        raise InputError(
            "these are not the bytes of a JPEG",
            where="decode_jpeg",
            received=found.format,
            allowed="JPEG",
            fix="paddle.vision.image_load reads all formats",
        )
    try:
        found.load()
        pixels = np.array(found if mode == "unchanged" else found.convert("L" if mode == "gray" else "RGB"))
    except Exception as error:  # damaged data makes the decoder raise anything
        raise image.damage_error(data, "decode_jpeg", error) from error
    return wrap(
        as_array(pixels[None] if pixels.ndim == 2 else np.ascontiguousarray(np.moveaxis(pixels, -1, 0)))
    )


class _Pool(nn.Layer):
    """A pooling of regions with its size and scale."""

    def __init__(self, output_size: Size, spatial_scale: float = 1.0) -> None:
        super().__init__()
        self._output_size, self._spatial_scale = output_size, spatial_scale


class RoIAlign(_Pool):
    """`roi_align` as a layer."""

    def forward(self, x: Tensor, boxes: Tensor, boxes_num: Tensor, aligned: bool = True) -> Tensor:
        return roi_align(x, boxes, boxes_num, self._output_size, self._spatial_scale, aligned=aligned)


class RoIPool(_Pool):
    """`roi_pool` as a layer."""

    def forward(self, x: Tensor, boxes: Tensor, boxes_num: Tensor) -> Tensor:
        return roi_pool(x, boxes, boxes_num, self._output_size, self._spatial_scale)

    def extra_repr(self) -> str:
        return f"output_size={self._output_size}, spatial_scale={self._spatial_scale}"


class PSRoIPool(_Pool):
    """`psroi_pool` as a layer."""

    def forward(self, x: Tensor, boxes: Tensor, boxes_num: Tensor) -> Tensor:
        return psroi_pool(x, boxes, boxes_num, self._output_size, self._spatial_scale)


def _two(value: Size) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)


class DeformConv2D(nn.Layer):
    """`deform_conv2d` with its weight [out, in / groups, kh, kw] and bias."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        dilation: Size = 1,
        deformable_groups: int = 1,
        groups: int = 1,
        weight_attr: AttrLike = None,
        bias_attr: AttrLike = None,
    ) -> None:
        super().__init__()
        kernel = _two(kernel_size)
        self._steps = (stride, padding, dilation, deformable_groups, groups)
        taps = in_channels * kernel[0] * kernel[1]  # of all groups, as in Paddle
        start: Callable[..., Any] = I.Normal(0.0, (2.0 / taps) ** 0.5)
        shape = [out_channels, in_channels // groups, *kernel]
        self.weight = self.create_parameter(shape, weight_attr, default_initializer=start)
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x: Tensor, offset: Tensor, mask: Tensor | None = None) -> Tensor:
        return deform_conv2d(x, offset, self.weight, self.bias, *self._steps, mask)
