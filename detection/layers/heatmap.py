"""Heatmaps of keypoints: what a model learns to draw, its mirror image, and where a peak lies between the pixels.

Paper: DARK, https://arxiv.org/abs/1910.06278, section 3.2
Reference: PaddlePaddle/PaddleDetection ppdet/data/transform/keypoint_operators.py,
    ppdet/modeling/architectures/keypoint_hrnet.py (HRNetPostProcess)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp

from framework.config import Kind
from framework.core.errors import ConfigError
from zoo.contracts import BackboneConfig
from zoo.layers.variants import VariantConfig
from zoo.vision.hrnet import HRNetConfig

_SMALLEST = 1e-10  # whose logarithm stands for what is not positive


class PoseSize(NamedTuple):
    """`entries` of the published state, `params` that it learns."""

    backbone: HRNetConfig
    entries: int
    params: int


@dataclass(frozen=True)
class PoseConfig(VariantConfig[PoseSize]):
    """Of a model that gives heatmaps.

    Attributes:
        backbone: That of the variant where None.
        flip_pairs: The keypoints that change places in a mirrored image. Where they are given `detect` looks at the
            mirror image too, as in upstream's evaluation: for COCO [1, 2], [3, 4] … [15, 16].

    Raises:
        ConfigError: the variant is unknown, or `flip_pairs` are no pairs of the keypoints.
    """

    num_keypoints: int = 17
    backbone: Annotated[BackboneConfig, Kind("backbone")] | None = None
    flip_pairs: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        flip_permutation(self.num_keypoints, self.flip_pairs)


def draw_gaussians(
    centers: jax.Array, visible: jax.Array, size_hw: tuple[int, int], sigma: float, radius: int
) -> jax.Array:
    """Maps [N, H, W, J] in 0 to 1: for each keypoint the largest of its people's Gaussians.

    Args:
        centers: [N, M, J, 2] int32, x and y in pixels of the map; they may lie outside.
        shown: [N, M, J] bool: what is not shown is not drawn.
        sigma: The deviation in pixels.
        radius: A Gaussian ends so many pixels beside, above and below its centre.
    """

    def profile(at: jax.Array, size: int) -> jax.Array:
        distance = jnp.arange(size) - at[..., None]
        height = jnp.exp(-(distance.astype(jnp.float32) ** 2) / (2 * sigma**2))
        return jnp.where(jnp.abs(distance) <= radius, height, 0)

    height, width = size_hw
    across = jnp.where(visible[..., None], profile(centers[..., 0], width), 0)  # [N, M, J, W]
    down = profile(centers[..., 1], height)
    across, down = across.transpose(0, 1, 3, 2), down.transpose(0, 1, 3, 2)
    return (down[:, :, :, None] * across[:, :, None]).max(axis=1, initial=0)


def flip_permutation(num_keypoints: int, pairs: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """For each keypoint the one that takes its place in a mirrored image.

    Raises:
        ConfigError: a keypoint is in two pairs, or is none of `num_keypoints`.
    """
    paired = [keypoint for pair in pairs for keypoint in pair]
    if len(set(paired)) != len(paired) or not all(0 <= keypoint < num_keypoints for keypoint in paired):
        raise ConfigError(
            "pairs must name each keypoint at most once",
            where="flip_pairs",
            received=str(tuple(pairs)),
            allowed=f"each keypoint of 0 to {num_keypoints - 1} at most once",
        )
    order = list(range(num_keypoints))
    for left, right in pairs:
        order[left], order[right] = right, left
    return tuple(order)


def mirror_maps(maps: jax.Array, order: tuple[int, ...]) -> jax.Array:
    """Maps [N, H, W, J] of a mirrored image as maps of the image; `order` is that of `flip_permutation`."""
    return maps[:, :, ::-1][..., jnp.asarray(order)]


def refine_peaks(heatmaps: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The highest point of each map, between the pixels: that of the Gaussian which the map's logarithm fits there.

    Args:
        heatmaps: [N, H, W, J] float32.

    Returns:
        (xy [N, J, 2] in pixels of the map, pixel i being at i; heights [N, J]). Where no value is positive xy is 0;
        within two pixels of the border a point is not refined.
    """
    n, height, width, keypoints = heatmaps.shape
    flat = heatmaps.reshape(n, height * width, keypoints)
    heights, index = flat.max(axis=1), flat.argmax(axis=1).astype(jnp.int32)
    index = jnp.where(heights > 0, index, 0)
    columns, rows = (jnp.asarray(side, jnp.int32) for side in (width, height))
    x, y = index % columns, index // columns

    logs = _blur_to_logs(heatmaps).reshape(n, height * width, keypoints)

    def at(dx: int, dy: int) -> jax.Array:
        near = jnp.clip(y + dy, 0, rows - 1) * columns + jnp.clip(x + dx, 0, columns - 1)
        return jnp.take_along_axis(logs, near[:, None], axis=1)[:, 0]

    slope_x, slope_y = (at(1, 0) - at(-1, 0)) / 2, (at(0, 1) - at(0, -1)) / 2
    xx = (at(2, 0) - 2 * at(0, 0) + at(-2, 0)) / 4
    yy = (at(0, 2) - 2 * at(0, 0) + at(0, -2)) / 4
    xy = (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / 4
    determinant = xx * yy - xy**2
    inner = (x > 1) & (x < columns - 2) & (y > 1) & (y < rows - 2) & (determinant != 0)
    divisor = jnp.where(inner, determinant, 1)
    step = jnp.stack([xy * slope_y - yy * slope_x, xy * slope_x - xx * slope_y], axis=-1) / divisor[..., None]
    peak = jnp.stack([x, y], axis=-1).astype(jnp.float32)
    return peak + jnp.where(inner[..., None], step, 0), heights


def _blur_to_logs(heatmaps: jax.Array) -> jax.Array:
    """Logarithms of maps smoothed by 1 2 1 both ways, and as high as before."""
    padded = jnp.pad(heatmaps, ((0, 0), (1, 1), (1, 1), (0, 0)))
    padded = (padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]) / 4
    smooth = (padded[:, :, :-2] + 2 * padded[:, :, 1:-1] + padded[:, :, 2:]) / 4
    highest, after = (x.max(axis=(1, 2), keepdims=True) for x in (heatmaps, smooth))
    return jnp.log(jnp.maximum(smooth * (highest / jnp.where(after > 0, after, 1)), _SMALLEST))
