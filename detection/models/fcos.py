"""FCOS: every cell of a pyramid's maps tells a class, the distances to the four sides of a box, and how central it is.

Paper: Tian et al. 2019, https://arxiv.org/abs/1904.01355; the pyramid: Lin et al. 2017, https://arxiv.org/abs/1612.03144
Reference: PaddlePaddle/PaddleDetection configs/fcos, ppdet/modeling/{heads/fcos_head,losses/fcos_loss,necks/fpn}.py,
    ppdet/data/transform/batch_operators.py (Gt2FCOSTarget)
Differs: a batch without objects divides by 1; an image's best 1000 pairs of box and class are compared in the
    suppression, not 1000 of each class. Deformable convolutions in the head (`fcos_dcn_*`) are not there.
Weights: those of PaddleDetection by name. `state_dict()` has its names, those of the backbone being PaddleClas's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from detection.assigners.assignment import Assignment
from detection.boxes import boxes_to_distances, centers, distances_to_boxes
from detection.contracts import Detections, Detector, DetectorContract, Targets
from detection.layers.backbone import set_param_groups
from detection.layers.grid import Grid, flatten_maps, make_grid
from detection.layers.nms import DenseDetectorConfig, multiclass_nms
from detection.losses import binary_cross_entropy_with_logits
from framework import nn
from framework.config import register
from framework.engine.task import Losses
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.contracts import BackboneConfig
from zoo.vision.resnet import ResNetConfig

STRIDES = (8, 16, 32, 64, 128)
WIDTH, CONVS, GROUPS = 256, 4, 32
PRIOR = 0.01  # where probabilities start
RADIUS = 1.5  # in strides: how far from an object's centre cells learn it
REACH = (64.0, 128.0, 256.0, 512.0)  # of the farthest side, in pixels: where one map ends and the next begins
_FROZEN = ("stem", "blocks.0.", "blocks.1.", "blocks.2.")  # `freeze_at: 0`
_NARROW = I.Normal(0.0, 0.01)


class Size(NamedTuple):
    """`entries` are those of the published state, and `params` its numbers without running statistics."""

    backbone: BackboneConfig
    entries: int
    params: int


# configs/fcos/_base_/fcos_r50_fpn.yml
VARIANTS: dict[str, Size] = {"r50_fpn": Size(ResNetConfig("resnet50"), 324, 32_297_370)}


@dataclass(frozen=True)
class FCOSConfig(DenseDetectorConfig[Size], table=VARIANTS):
    """See DenseDetectorConfig.

    Attributes:
        quality: What the third output learns, by which scores are multiplied: how near a cell is to the middle of its
            object, or the IoU of its box, as in upstream's `fcos_r50_fpn_iou_*`.
    """

    variant: str = "r50_fpn"
    quality: Literal["centerness", "iou"] = "centerness"


class Level(NamedTuple):
    """Raw outputs on one map, float32."""

    classes: jax.Array
    """[N, H, W, num_classes] logits"""
    distances: jax.Array
    """[N, H, W, 4] to the left, top, right and bottom side, in strides, from 0"""
    quality: jax.Array
    """[N, H, W, 1] logits"""


class FlatOutputs(NamedTuple):
    """The outputs of all maps side by side."""

    grid: Grid
    classes: jax.Array
    """[N, L, num_classes] logits"""
    distances: jax.Array
    """[N, L, 4] in strides"""
    quality: jax.Array
    """[N, L] logits"""

    def scores(self) -> jax.Array:
        """[N, L, num_classes]"""
        return jax.nn.sigmoid(self.classes) * jax.nn.sigmoid(self.quality)[..., None]

    def boxes(self) -> jax.Array:
        """[N, L, 4] xyxy in pixels"""
        return distances_to_boxes(self.grid.points, self.distances * self.grid.strides)


class FPN(nn.Layer):
    """Three maps of a backbone, each with what the coarser ones know, and two coarser maps of the last.

    Each is [N, H, W, WIDTH], at STRIDES.
    """

    def __init__(self, in_channels: Sequence[int]) -> None:
        super().__init__()
        fan = WIDTH * 3 * 3
        self.laterals = ("fpn_inner_res3_sum_lateral", "fpn_inner_res4_sum_lateral", "fpn_inner_res5_sum")
        self.outputs = ("fpn_res3_sum", "fpn_res4_sum", "fpn_res5_sum")
        for lateral, output, channels in zip(self.laterals, self.outputs, in_channels, strict=True):
            start = I.XavierUniform(fan_out=channels)
            self.add_sublayer(lateral, nn.Conv2D(channels, WIDTH, 1, weight_attr=start))
            start = I.XavierUniform(fan_out=fan)
            self.add_sublayer(output, nn.Conv2D(WIDTH, WIDTH, 3, padding=1, weight_attr=start))
        self.fpn_6, self.fpn_7 = (
            nn.Conv2D(WIDTH, WIDTH, 3, 2, 1, weight_attr=I.XavierUniform(fan_out=fan)) for _ in range(2)
        )

    def forward(self, maps: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
        merged = [getattr(self, name)(x) for name, x in zip(self.laterals, maps, strict=True)]
        for level in (1, 0):
            merged[level] += F.interpolate(merged[level + 1], scale_factor=2, mode="nearest")
        found = [getattr(self, name)(x) for name, x in zip(self.outputs, merged, strict=True)]
        found.append(self.fpn_6(found[-1]))
        found.append(self.fpn_7(F.relu(found[-1])))
        return tuple(found)


class ConvGroupNorm(nn.Layer):
    """A 3x3 convolution, a normalisation of groups of channels, and ReLU."""

    def __init__(self) -> None:
        super().__init__()
        bias = nn.ParamAttr(initializer=I.Constant(0.0), learning_rate=2.0)
        undecayed = nn.ParamAttr(regularizer=0.0)
        self.conv = nn.Conv2D(WIDTH, WIDTH, 3, padding=1, weight_attr=_NARROW, bias_attr=bias)
        self.norm = nn.GroupNorm(GROUPS, WIDTH, weight_attr=undecayed, bias_attr=undecayed)

    def forward(self, x: jax.Array) -> jax.Array:
        return F.relu(self.norm(self.conv(x)))


class Towers(nn.Layer):
    """Two features of a map, for classes and for boxes."""

    def __init__(self) -> None:
        super().__init__()
        for number in range(CONVS):
            for kind in ("cls", "reg"):
                self.add_sublayer(f"fcos_head_{kind}_tower_conv_{number}", ConvGroupNorm())

    def forward(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        classes = boxes = x
        for number in range(CONVS):
            classes = getattr(self, f"fcos_head_cls_tower_conv_{number}")(classes)
            boxes = getattr(self, f"fcos_head_reg_tower_conv_{number}")(boxes)
        return classes, boxes


class Scale(nn.Layer):
    """A factor of the distances of one map."""

    def __init__(self) -> None:
        super().__init__()
        self.scale_reg = self.create_parameter((1,), I.Constant(1.0))

    def forward(self, x: jax.Array) -> jax.Array:
        return x * self.scale_reg


def output_conv(out_channels: int, bias: float = 0.0) -> nn.Conv2D:
    """The last 3x3 convolution of a branch."""
    start = nn.ParamAttr(initializer=I.Constant(bias))
    return nn.Conv2D(WIDTH, out_channels, 3, padding=1, weight_attr=_NARROW, bias_attr=start)


class FCOSHead(nn.Layer):
    """The same convolutions on every map, whose distances differ by a learned factor."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.fcos_feat = Towers()
        self.fcos_head_cls = output_conv(num_classes, -math.log((1 - PRIOR) / PRIOR))
        self.fcos_head_reg = output_conv(4)
        self.fcos_head_centerness = output_conv(1)
        for stride in STRIDES:
            self.add_sublayer(f"p{stride.bit_length() - 1}_feat", Scale())

    def forward(self, maps: Sequence[jax.Array]) -> tuple[Level, ...]:
        levels = []
        for stride, x in zip(STRIDES, maps, strict=True):
            classes, boxes = self.fcos_feat(x)
            distances = getattr(self, f"p{stride.bit_length() - 1}_feat")(self.fcos_head_reg(boxes))
            outputs = (self.fcos_head_cls(classes), F.relu(distances), self.fcos_head_centerness(boxes))
            levels.append(Level(*(out.astype(jnp.float32) for out in outputs)))
        return tuple(levels)


def assign_cells(grid: Grid, boxes: jax.Array, valid: jax.Array) -> Assignment:
    """Of one image: a cell learns the smallest object that it is in, near the centre, if that is as large as its map
    is for; `quality` is the cell's centerness.

    Args:
        boxes: [M, 4] xyxy.
        valid: [M] bool.

    Source: sections 3.2 and 3.3 of the paper; sampling near the centre as in the authors' code
    """
    counts = jnp.asarray(grid.counts)
    least, most = (
        jnp.repeat(jnp.asarray(ends), counts, total_repeat_length=len(grid.points))
        for ends in ((-1.0, *REACH), (*REACH, jnp.inf))
    )
    sides = jax.vmap(lambda box: boxes_to_distances(grid.points, box))(boxes)  # [M, L, 4]
    reach = RADIUS * grid.strides  # [L, 1]
    middle = centers(boxes)[:, None]  # [M, 1, 2]
    low = jnp.maximum(boxes[:, None, :2], middle - reach)
    high = jnp.minimum(boxes[:, None, 2:], middle + reach)
    near = ((grid.points > low) & (grid.points < high)).all(axis=-1)  # [M, L]
    farthest = sides.max(axis=-1)
    fits = near & (farthest > least) & (farthest < most) & valid[:, None]
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    index = jnp.where(fits, area[:, None], jnp.inf).argmin(axis=0).astype(jnp.int32)
    positive = fits.any(axis=0)
    own = jnp.take_along_axis(sides, index[None, :, None], axis=0)[0]  # [L, 4]
    return Assignment(
        positive, index, jnp.where(positive, centerness(jnp.where(positive[:, None], own, 1.0)), 0)
    )


def centerness(distances: jax.Array) -> jax.Array:
    """[...] in 0 to 1, 1 in the middle of a box, of distances [..., 4] to its sides."""
    across, down = distances[..., 0::2], distances[..., 1::2]
    shares = (pair.min(axis=-1) / pair.max(axis=-1) for pair in (across, down))
    return jnp.sqrt(next(shares) * next(shares))


def overlaps(distances: jax.Array, targets: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(IoU, GIoU) [...] of two boxes around one point, from distances [..., 4] to their sides.

    Upstream adds 1 to intersection and union: where boxes are small, in strides, that is much.
    """

    def area(sides: jax.Array) -> jax.Array:
        return (sides[..., 0] + sides[..., 2]) * (sides[..., 1] + sides[..., 3])

    both = area(jnp.minimum(distances, targets))
    union = area(distances) + area(targets) - both
    around = area(jnp.maximum(distances, targets)) + 1e-7
    iou = (both + 1) / (union + 1)
    return iou, iou - (around - union) / around


@register("model", config=FCOSConfig)
class FCOS(Detector[FCOSConfig]):
    """Heights and widths are multiples of 32; upstream pads images to multiples of 128."""

    example_shape = (1, 800, 1344, 3)
    contract = DetectorContract(
        small={"backbone": ResNetConfig("resnet18")},
        image=(2, 160, 160, 3),
        flat=(
            r"fcos_head\.p[567]_feat\.scale_reg",
            "no object of a small image is as large as these maps learn",
        ),
    )

    def __init__(self, config: FCOSConfig) -> None:
        super().__init__(config, config.parts.backbone, config.deploy)
        self.neck = FPN(self.in_channels)
        self.fcos_head = FCOSHead(config.num_classes)
        set_param_groups(self, 1.0, _FROZEN, freeze_norms=True)

    def forward(self, images: jax.Array) -> tuple[Level, ...]:
        return self.fcos_head(self.neck(self.extract(images)))

    def flatten(self, images: jax.Array) -> FlatOutputs:
        levels = self(images)
        classes, distances, quality = (flatten_maps(maps) for maps in zip(*levels, strict=True))
        return FlatOutputs(
            make_grid([level.classes for level in levels], STRIDES), classes, distances, quality[..., 0]
        )

    def detect(self, images: jax.Array) -> Detections:
        found = self.flatten(images)
        return multiclass_nms(found.boxes(), found.scores(), self.config.nms)

    def loss(self, images: jax.Array, targets: Targets) -> Losses:
        found = self.flatten(images)
        assigned = jax.vmap(lambda boxes, valid: assign_cells(found.grid, boxes, valid))(
            targets.boxes, targets.valid
        )
        positive = assigned.positive
        count = jnp.maximum(positive.sum(dtype=jnp.float32), 1)
        chosen = jnp.take_along_axis(targets.labels, assigned.index, axis=-1)
        known = jnp.where(positive, chosen, -1)  # -1: no class
        classes = jax.nn.one_hot(known, self.config.num_classes, dtype=jnp.float32)
        # Cells without an object take boxes that cost nothing
        wanted = boxes_to_distances(found.grid.points, assigned.boxes(targets.boxes)) / found.grid.strides
        iou, giou = overlaps(
            *(jnp.where(positive[..., None], sides, 1.0) for sides in (found.distances, wanted))
        )
        weights, quality = assigned.quality, assigned.quality
        if self.config.quality == "iou":
            weights, quality = positive.astype(jnp.float32), jax.lax.stop_gradient(iou)
        entropy = binary_cross_entropy_with_logits(found.quality, quality)
        total = weights.sum() if self.config.quality == "centerness" else count
        parts = {
            "loss_cls": F.sigmoid_focal_loss(found.classes, classes) / count,
            "loss_box": (weights * (1 - giou)).sum() / jnp.where(total > 0, total, 1),
            "loss_quality": jnp.where(positive, entropy, 0).sum() / count,
        }
        return Losses(sum(parts.values(), jnp.zeros(())), parts)
