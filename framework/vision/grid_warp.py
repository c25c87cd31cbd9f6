"""A change of an image that no matrix says: a grid of points of the source, spread evenly over the result.

As with `Warp`, coordinates are continuous: pixel i covers [i, i+1). A Warp leads from the source to the result; a grid
leads back, from the result to the source, because images are read that way. Points of results are brought back by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from framework.core.errors import ShapeError
from framework.vision.image import check_pixels
from framework.vision.warp import Size

_OPENCV_SIDE = 32_766  # cv2.remap addresses source pixels with 16 bits


@dataclass(frozen=True, eq=False)
class GridWarp:
    """Where in an image of `source_hw` the pixels of one of `size_hw` lie.

    `grid [rows, columns, 2]` float32 holds (x, y) in the source. Its corners belong to the centres of the result's
    corner pixels, the others lie evenly between them; in between it is bilinear. It is kept read-only.

    Raises:
        ShapeError: the grid is not finite, has fewer than 2 x 2 points, or a side is smaller than 1 or larger than
            OpenCV can address.
    """

    grid: np.ndarray
    size_hw: Size
    source_hw: Size

    def __post_init__(self) -> None:
        grid = np.array(self.grid, np.float32)
        if grid.ndim != 3 or grid.shape[2] != 2 or min(grid.shape) < 2 or not np.isfinite(grid).all():
            raise ShapeError(
                "the grid must be an array of points",
                where="GridWarp.grid",
                received=f"an array of shape {list(grid.shape)}"
                + ("" if np.isfinite(grid).all() else " with values that are not finite"),
                allowed="[rows, columns, 2], from 2 x 2 points, finite",
            )
        for name in ("size_hw", "source_hw"):
            if not all(1 <= side <= _OPENCV_SIDE for side in getattr(self, name)):
                raise ShapeError(
                    "an image has no such size here",
                    where=f"GridWarp.{name}",
                    received=getattr(self, name),
                    allowed=f"sides from 1 to {_OPENCV_SIDE}",
                )
        grid.flags.writeable = False
        object.__setattr__(self, "grid", grid)

    @classmethod
    def from_unit_grid(cls, grid: np.ndarray, source_hw: Size, size_hw: Size | None = None) -> GridWarp:
        """Of points [rows, columns, 2] where -1 and 1 are the centres of the source's first and last pixels, as those
        of `grid_sample` with `align_corners`. The result is as large as the source, or of `size_hw`."""
        last = np.array([source_hw[1] - 1, source_hw[0] - 1], np.float64)
        return cls((np.asarray(grid, np.float64) + 1) / 2 * last + 0.5, size_hw or source_hw, source_hw)

    def image(self, image: np.ndarray) -> np.ndarray:
        """The result, by linear interpolation; 0 outside of the source.

        Raises:
            ShapeError: the image is not of `source_hw`.
        """
        if image.dtype != np.float32:
            check_pixels(image, "GridWarp")
        if image.shape[:2] != tuple(self.source_hw):
            raise ShapeError(
                "the grid is for images of another size",
                where="GridWarp",
                received=image.shape[:2],
                allowed=self.source_hw,
            )
        height, width = self.size_hw
        rows, columns = (_hat_weights(np.arange(side) + 0.5, side, count) for side, count in self._axes())
        # Both axes are linear, so the dense map is two products of matrices; OpenCV has centres on whole numbers.
        dense = [rows @ self.grid[..., axis] @ columns.T - np.float32(0.5) for axis in (0, 1)]
        source = np.ascontiguousarray(image)
        out = cv2.remap(source, dense[0], dense[1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT)
        return out.reshape(height, width, *image.shape[2:])

    def source_points(self, xy: np.ndarray) -> np.ndarray:
        """Where in the source the points `xy [..., 2]` of the result lie: float64, of the same shape.

        Points outside of the result are extrapolated from the cell next to them.
        """
        points = np.asarray(xy, np.float64)
        flat = points.reshape(-1, 2)
        (height, rows), (width, columns) = self._axes()
        across, down = _cells(flat[:, 0], width, columns), _cells(flat[:, 1], height, rows)
        found = np.zeros_like(flat)
        for row, row_weight in down:
            for column, column_weight in across:
                found += (row_weight * column_weight)[:, None] * self.grid[row, column]
        return found.reshape(points.shape)

    def _axes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """(pixels, points) of both axes."""
        return (self.size_hw[0], self.grid.shape[0]), (self.size_hw[1], self.grid.shape[1])


def _cells(
    places: np.ndarray, side: int, count: int
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The two grid points around each place along an axis, with their weights."""
    at = (places - 0.5) * ((count - 1) / max(side - 1, 1))
    first = np.clip(np.floor(at), 0, count - 2).astype(np.int64)
    share = at - first
    return (first, 1 - share), (first + 1, share)


def _hat_weights(places: np.ndarray, side: int, count: int) -> np.ndarray:
    """[places, count] float32: how much of each grid point is in each place along an axis."""
    weights = np.zeros((len(places), count), np.float32)
    rows = np.arange(len(places))
    for points, shares in _cells(places, side, count):
        weights[rows, points] += shares
    return weights
