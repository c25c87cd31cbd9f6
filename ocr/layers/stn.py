"""Rectification of bent and slanted text: a small network finds points on both edges of the text, and the image is read
on the thin plate spline through them.

Paper: ASTER (Shi et al. 2018), section 3.1; spatial transformers, https://arxiv.org/abs/1506.02025; thin plate splines,
    Bookstein 1989
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/transforms/{stn,tps_spatial_transformer}.py (STN_ON)
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.layers.conv_bn import ConvBN, ConvBNOptions

POINTS = 20  # half of them on the upper edge of the text, from left to right, half on the lower one
INPUT_HW = (32, 64)  # what the network looks at
_WIDTHS = (32, 64, 128, 256, 256, 256)
_HIDDEN = 512
_FEATURE_SCALE = 0.1
_FIRST_MARGIN = 0.01  # where the points start, from the image's edges
MARGIN = 0.05  # where they come to lie in the rectified image


def edge_points(margin: float, count: int = POINTS) -> np.ndarray:
    """[count, 2] float64 xy in 0 to 1: evenly along two lines, `margin` below the upper and above the lower edge."""
    x = np.linspace(margin, 1 - margin, count // 2)
    rows = [np.stack([x, np.full_like(x, y)], axis=1) for y in (margin, 1 - margin)]
    return np.concatenate(rows)


def _distances(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """r² log r of each pair, and 0 for r = 0: [P, O] of [P, 2] and [O, 2]."""
    squares = np.square(points[:, None] - others[None]).sum(-1)
    return 0.5 * squares * np.log(np.where(squares > 0, squares, 1.0))


@functools.cache
def spline_weights(size_hw: tuple[int, int]) -> np.ndarray:
    """[height * width, POINTS] float32: how much each control point moves each pixel of the rectified image.

    The matrix times the points' places in the source gives the places of all pixels there: the thin plate spline that
    takes `edge_points(MARGIN)` to them. Source: Bookstein 1989, equations 2 to 4.
    """
    points, (height, width) = edge_points(MARGIN), size_hw
    affine = np.concatenate([np.ones((POINTS, 1)), points], axis=1)
    system = np.block([[_distances(points, points), affine], [affine.T, np.zeros((3, 3))]])
    y, x = np.meshgrid(np.linspace(0, 1, height), np.linspace(0, 1, width), indexing="ij")
    pixels = np.stack([x, y], axis=-1).reshape(-1, 2)
    basis = np.concatenate([_distances(pixels, points), np.ones((len(pixels), 1)), pixels], axis=1)
    return (basis @ np.linalg.inv(system)[:, :POINTS]).astype(np.float32)


class PointNetwork(nn.Layer):
    """[N, *INPUT_HW, 3] -> POINTS places [N, POINTS, 2] float32 xy, 0 to 1 inside of the image."""

    def __init__(self, deploy: bool) -> None:
        super().__init__()
        blocks: list[nn.Layer] = []
        for in_channels, width in zip((3, *_WIDTHS), _WIDTHS):
            blocks += [nn.MaxPool2D(2, 2)] if blocks else []
            spread = I.Normal(std=math.sqrt(2 / (9 * width)))
            options = ConvBNOptions(bias=True, initializer=spread, names=("0", "1"), deploy=deploy)
            blocks.append(ConvBN(in_channels, width, 3, act=F.relu, options=options))
        self.stn_convnet = nn.Sequential(*blocks)
        height, width = (side >> (len(_WIDTHS) - 1) for side in INPUT_HW)
        hidden = nn.Linear(height * width * _WIDTHS[-1], _HIDDEN, weight_attr=I.Normal(std=0.001))
        self.stn_fc1 = nn.Sequential(hidden, nn.BatchNorm1D(_HIDDEN))
        start = I.Assign(edge_points(_FIRST_MARGIN).reshape(-1).astype(np.float32))
        self.stn_fc2 = nn.Linear(_HIDDEN, 2 * POINTS, weight_attr=I.Constant(0.0), bias_attr=start)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.stn_convnet(x)  # [N, 1, 2, C]
        x = jnp.moveaxis(x, 3, 1).reshape(x.shape[0], -1)
        x = self.stn_fc2(_FEATURE_SCALE * F.relu(self.stn_fc1(x)))
        return x.reshape(x.shape[0], POINTS, 2).astype(jnp.float32)


class STN(nn.Layer):
    """Images of any size [N, H, W, 3] -> rectified ones [N, *size_hw, 3]."""

    def __init__(self, size_hw: tuple[int, int], deploy: bool = False) -> None:
        super().__init__()
        self.size_hw = size_hw
        self.stn_head = PointNetwork(deploy)

    def forward(self, x: jax.Array) -> jax.Array:
        points = self.stn_head(F.interpolate(x, INPUT_HW, mode="bilinear", align_corners=True))
        # Places of pixels: not in the lower precision that an accelerator multiplies matrices in by default.
        grid = jnp.einsum(
            "pk,nkc->npc", spline_weights(self.size_hw), points, precision=jax.lax.Precision.HIGHEST
        )
        grid = 2 * jnp.clip(grid, 0, 1) - 1
        return F.grid_sample(x, grid.reshape(x.shape[0], *self.size_hw, 2))
