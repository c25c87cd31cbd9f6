"""Geometric changes of an image as one 3x3 matrix that also moves points, boxes and masks, and can be taken back.

The coordinate convention of the whole project: x to the right, y down, continuous. Pixel i covers [i, i+1), so its
centre is at i + 0.5; an image spans [0, width] x [0, height]; boxes are xyxy with exclusive right and bottom.
OpenCV puts centres on whole numbers: the half-pixel shift is made here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np

from framework.core.errors import ShapeError
from framework.vision.image import Interpolation, check_pixels, pad, resize

Size = tuple[int, int]
Border = int | float | Sequence[float] | None

_OPENCV_SIDE = 32_766  # cv2.warpAffine and warpPerspective address source pixels with 16 bits
_FLAGS = {
    "nearest": cv2.INTER_NEAREST,
    "linear": cv2.INTER_LINEAR,
    "cubic": cv2.INTER_CUBIC,
    "area": cv2.INTER_LINEAR,
    "lanczos": cv2.INTER_LANCZOS4,
}


@dataclass(frozen=True, eq=False)
class Warp:
    """A map from the points of an image of `source_hw` to those of an image of `size_hw`.

    `matrix` [3, 3] float64 acts on column vectors (x, y, 1) in the continuous convention; it is kept read-only.

    Raises:
        ShapeError: the matrix is not a finite, invertible 3x3, or a side is smaller than 1.
    """

    matrix: np.ndarray
    size_hw: Size
    source_hw: Size

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, np.float64)
        invertible = (
            matrix.shape == (3, 3) and np.isfinite(matrix).all() and abs(np.linalg.det(matrix)) > 1e-18
        )
        if not invertible:
            raise ShapeError(
                "the matrix of a warp must be finite and invertible",
                where="Warp.matrix",
                received=matrix.tolist(),
                allowed="finite, invertible, 3x3",
            )
        if matrix[2, 2] != 0:
            matrix /= matrix[2, 2]
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)
        for name in ("size_hw", "source_hw"):
            height, width = getattr(self, name)
            if height < 1 or width < 1:
                raise ShapeError(
                    "an image has no such size",
                    where=f"Warp.{name}",
                    received=(height, width),
                    allowed="sides >= 1",
                )
            object.__setattr__(self, name, (int(height), int(width)))

    # ---- constructors: `source_hw` is the size of the image that will be warped ----

    @classmethod
    def identity(cls, source_hw: Size) -> Warp:
        return cls(np.eye(3), source_hw, source_hw)

    @classmethod
    def resize(cls, source_hw: Size, size_hw: Size) -> Warp:
        return cls(np.diag([size_hw[1] / source_hw[1], size_hw[0] / source_hw[0], 1.0]), size_hw, source_hw)

    @classmethod
    def crop(cls, source_hw: Size, box: Sequence[int]) -> Warp:
        """Cuts out `box` (x0, y0, x1, y1), whole pixels; what lies outside the image becomes border."""
        x0, y0, x1, y1 = (int(value) for value in box)
        return cls(_shift(-x0, -y0), (y1 - y0, x1 - x0), source_hw)

    @classmethod
    def pad(cls, source_hw: Size, left: int, top: int, right: int, bottom: int) -> Warp:
        return cls.crop(source_hw, (-left, -top, source_hw[1] + right, source_hw[0] + bottom))

    @classmethod
    def flip(cls, source_hw: Size, *, horizontal: bool = False, vertical: bool = False) -> Warp:
        """Mirrors left and right (`horizontal`), top and bottom (`vertical`), or both."""
        height, width = source_hw
        matrix = np.eye(3)
        if horizontal:
            matrix[0] = (-1, 0, width)
        if vertical:
            matrix[1] = (0, -1, height)
        return cls(matrix, source_hw, source_hw)

    @classmethod
    def rotate90(cls, source_hw: Size, turns: int) -> Warp:
        """Clockwise quarter turns (negative: counter-clockwise)."""
        height, width = source_hw
        matrix, size_hw = (
            (np.eye(3), source_hw),
            (np.array([[0, -1, height], [1, 0, 0], [0, 0, 1]]), (width, height)),
            (np.array([[-1, 0, width], [0, -1, height], [0, 0, 1]]), source_hw),
            (np.array([[0, 1, 0], [-1, 0, width], [0, 0, 1]]), (width, height)),
        )[turns % 4]
        return cls(matrix, size_hw, source_hw)

    @classmethod
    def rotate(cls, source_hw: Size, degrees: float, *, expand: bool = False) -> Warp:
        """Clockwise about the centre, on a canvas of the same size, or with `expand` of one that holds everything."""
        height, width = source_hw
        cos, sin = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
        turn = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
        size_hw = source_hw
        if expand:
            # The slack keeps 90 degrees, whose cosine is 6e-17 and not 0, from adding an empty row.
            size_hw = (
                int(np.ceil(height * abs(cos) + width * abs(sin) - 1e-6)),
                int(np.ceil(width * abs(cos) + height * abs(sin) - 1e-6)),
            )
        centred = turn @ _shift(-width / 2, -height / 2)
        return cls(_shift(size_hw[1] / 2, size_hw[0] / 2) @ centred, size_hw, source_hw)

    @classmethod
    def perspective(cls, source_hw: Size, quad: np.ndarray, size_hw: Size) -> Warp:
        """Stretches `quad` [4, 2], clockwise from its top-left corner, over the whole of `size_hw`."""
        height, width = size_hw
        quad = np.asarray(quad, np.float64)
        if quad.shape != (4, 2):
            raise ShapeError(
                "a quadrilateral must have four points",
                where="Warp.perspective",
                received=list(quad.shape),
                allowed="[4, 2]",
            )
        corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float64)
        rows = []
        for (x, y), (u, v) in zip(quad, corners, strict=True):
            rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
            rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
        try:
            entries = np.linalg.solve(np.array(rows), corners.reshape(8))
        except np.linalg.LinAlgError as error:
            raise ShapeError(
                "three corners of the quadrilateral lie on one line",
                where="Warp.perspective",
                received=quad.tolist(),
                allowed="a convex quadrilateral",
            ) from error
        return cls(np.append(entries, 1.0).reshape(3, 3), size_hw, source_hw)

    @classmethod
    def letterbox(
        cls, source_hw: Size, size_hw: Size, *, align: Literal["center", "top_left"] = "center"
    ) -> Warp:
        """Fits the whole image into `size_hw`, keeping its aspect up to whole pixels; the rest becomes border."""
        scale = min(size_hw[0] / source_hw[0], size_hw[1] / source_hw[1])
        fitted_hw = tuple(
            min(room, max(1, round(side * scale))) for side, room in zip(source_hw, size_hw, strict=True)
        )
        left = top = 0
        if align == "center":
            top, left = (size_hw[0] - fitted_hw[0]) // 2, (size_hw[1] - fitted_hw[1]) // 2
        shrink = np.diag([fitted_hw[1] / source_hw[1], fitted_hw[0] / source_hw[0], 1.0])
        return cls(_shift(left, top) @ shrink, size_hw, source_hw)

    @property
    def _is_affine(self) -> bool:
        return bool(np.abs(self.matrix[2, :2]) @ self.source_hw[::-1] < 1e-9)

    # ---- algebra ----

    def then(self, other: Warp) -> Warp:
        """The warp that does `self` first and `other` on its result.

        Raises:
            ShapeError: `other` was made for an image of another size.
        """
        if other.source_hw != self.size_hw:
            raise ShapeError(
                "these warps do not follow one another",
                where="Warp.then",
                received=f"a second warp for images of {other.source_hw}",
                allowed=f"one for images of {self.size_hw}, the result of the first",
            )
        return Warp(other.matrix @ self.matrix, other.size_hw, self.source_hw)

    def inverse(self) -> Warp:
        """The way back: from an image of `size_hw` to one of `source_hw`."""
        return Warp(np.linalg.inv(self.matrix), self.source_hw, self.size_hw)

    # ---- what can be warped ----

    def points(self, xy: np.ndarray) -> np.ndarray:
        """`xy [..., 2]` in the target image, float32 if it was, else float64; not clipped, also outside the image."""
        xy = np.asarray(xy)
        moved = xy.astype(np.float64) @ self.matrix[:, :2].T + self.matrix[:, 2]
        with np.errstate(divide="ignore", invalid="ignore"):  # points on a horizon are at infinity
            moved = moved[..., :2] / moved[..., 2:]
        return moved.astype(np.float32) if xy.dtype == np.float32 else moved

    def boxes(self, boxes: np.ndarray) -> np.ndarray:
        """The upright bounds of the warped `boxes [K, 4]` xyxy, dtype as in `points`; not clipped."""
        boxes = np.asarray(boxes)
        corners = self.points(boxes.reshape(-1, 4)[:, [[0, 1], [2, 1], [2, 3], [0, 3]]])
        return np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)

    def image(
        self,
        image: np.ndarray,
        interpolation: Interpolation = "linear",
        border: Border = 0,
    ) -> np.ndarray:
        """The warped `image [H, W(, C)]`.

        `border` is a number, one a channel, or None for the nearest edge pixels.

        Where the warp is a scaling, a flip or a quarter turn that lands on whole pixels, the result is exactly that of
        `image.resize`, cropping and padding; of crops from much larger images, that of cropping first. Elsewhere
        OpenCV places samples to 1/32 pixel, and "area" is "linear".

        Raises:
            ShapeError: the image is not of `source_hw`, or of a dtype or a size that OpenCV does not take, or
                the border has another number of channels.
        """
        check_pixels(image, "Warp.image")
        if image.shape[:2] != self.source_hw:
            raise ShapeError(
                "the image is not the one that this warp was made for",
                where="Warp.image",
                received=image.shape[:2],
                allowed=self.source_hw,
            )
        if isinstance(border, Sequence) and image.ndim == 3 and len(border) != image.shape[2]:
            raise ShapeError(
                "the border does not fit the image",
                where="Warp.image",
                received=f"{len(border)} values for {image.shape[2]} channels",
                allowed="one value, one a channel, or None",
            )
        if image.dtype == np.bool_:
            return self.image(image.view(np.uint8), interpolation, border).view(np.bool_)
        placed = self._image_on_grid(image, interpolation, border)
        return self._image_anywhere(image, interpolation, border) if placed is None else placed

    def mask(self, mask: np.ndarray, border: int = 0) -> np.ndarray:
        """The warped `mask [H, W]` of bool or integers, by the nearest pixel, dtype kept; `border` outside."""
        # OpenCV knows int32 alone of the wide integers.
        source = mask.astype(np.int32) if mask.dtype.kind in "iu" and mask.dtype.itemsize > 2 else mask
        return self.image(source, "nearest", border).astype(mask.dtype, copy=False)

    def _image_on_grid(
        self, image: np.ndarray, interpolation: Interpolation, border: Border
    ) -> np.ndarray | None:
        """The exact result for warps that are a crop, a resize and a pad, up to a symmetry of the square; else None."""
        m = self.matrix
        height, width = self.source_hw
        if not self._is_affine:
            return None
        if abs(m[0, 0]) < 1e-12 and abs(m[1, 1]) < 1e-12:
            swap = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]])
            turned = Warp(m @ swap, self.size_hw, (width, height))
            return turned._image_on_grid(image.swapaxes(0, 1), interpolation, border)
        if abs(m[0, 1]) > 1e-12 or abs(m[1, 0]) > 1e-12:
            return None
        if m[0, 0] < 0 or m[1, 1] < 0:
            across, down = bool(m[0, 0] < 0), bool(m[1, 1] < 0)
            back = Warp.flip(self.size_hw, horizontal=across, vertical=down).matrix
            straight = Warp(back @ m, self.size_hw, self.source_hw)
            out = straight._image_on_grid(image, interpolation, border)
            return None if out is None else _mirror(out, across, down)
        axes = [(m[0, 0], m[0, 2], width, self.size_hw[1]), (m[1, 1], m[1, 2], height, self.size_hw[0])]
        # Resizing everything and then cutting is right up to the cut edges, but wasteful where much is cut away.
        seen, whole = [_find_visible(*axis) for axis in axes], [_find_whole(*axis[:3]) for axis in axes]
        wasteful = m[0, 0] * width * m[1, 1] * height > 4 * self.size_hw[0] * self.size_hw[1]
        unscaled = abs(m[0, 0] - 1) < 1e-12 and abs(m[1, 1] - 1) < 1e-12
        cut_x, cut_y = seen if None in whole or wasteful or (unscaled and None not in seen) else whole
        if cut_x is None or cut_y is None:
            return None
        (from_x, to_x), (x0, x1) = cut_x
        (from_y, to_y), (y0, y1) = cut_y
        out = resize(image[from_y:to_y, from_x:to_x], (y1 - y0, x1 - x0), interpolation)
        room_h, room_w = self.size_hw
        out = out[max(0, -y0) : max(0, room_h - y0), max(0, -x0) : max(0, room_w - x0)]
        if out.size == 0:
            return None
        left, top = max(0, x0), max(0, y0)
        right, bottom = room_w - left - out.shape[1], room_h - top - out.shape[0]
        framed = pad(out, left, top, right, bottom, value=border) if left or top or right or bottom else out
        return np.ascontiguousarray(framed)

    def _image_anywhere(self, image: np.ndarray, interpolation: Interpolation, border: Border) -> np.ndarray:
        matrix = self.matrix
        if max(image.shape[:2]) > _OPENCV_SIDE:
            image, origin_xy = self._cut_source(image)
            matrix = matrix @ _shift(*origin_xy)
        matrix = _shift(-0.5, -0.5) @ matrix @ _shift(0.5, 0.5)
        size_wh = self.size_hw[::-1]
        how = {
            "flags": _FLAGS[interpolation],
            "borderMode": cv2.BORDER_REPLICATE if border is None else cv2.BORDER_CONSTANT,
            "borderValue": tuple(border) if isinstance(border, Sequence) else (border or 0,) * 4,
        }
        image = np.ascontiguousarray(image)
        try:
            if self._is_affine:
                out = cv2.warpAffine(image, matrix[:2] / matrix[2, 2], size_wh, **how)
            else:
                out = cv2.warpPerspective(image, matrix, size_wh, **how)
        except cv2.error as error:
            raise ShapeError(
                "OpenCV cannot warp this image",
                where="Warp.image",
                received=f"{image.dtype} {list(image.shape)}, {interpolation}",
                allowed=f"uint8, uint16, int16, float32, float64 (nearest: int32), "
                f"sides up to {_OPENCV_SIDE:,}",
            ) from error
        return out.reshape(*self.size_hw, *image.shape[2:])

    def _cut_source(self, image: np.ndarray) -> tuple[np.ndarray, tuple[int, int]]:
        """The part of a very long image that the target shows, with a margin for the widest kernel, and its corner."""
        height, width = self.size_hw
        seen = self.inverse().boxes(np.array([[0, 0, width, height]], np.float64))[0]
        if not np.isfinite(seen).all():
            return image, (0, 0)
        limits = (image.shape[1], image.shape[0])
        x0, y0 = (int(np.clip(np.floor(seen[i]) - 8, 0, limits[i] - 1)) for i in (0, 1))
        x1, y1 = (int(np.clip(np.ceil(seen[i + 2]) + 8, (x0, y0)[i] + 1, limits[i])) for i in (0, 1))
        return image[y0:y1, x0:x1], (x0, y0)


def _mirror(image: np.ndarray, across: bool, down: bool) -> np.ndarray:
    if image.dtype in (np.uint8, np.float32):  # OpenCV is 40 times faster with three channels
        return cv2.flip(image, -1 if across and down else int(across)).reshape(image.shape)
    return np.ascontiguousarray(image[:: -1 if down else 1, :: -1 if across else 1])


def _shift(x: float, y: float) -> np.ndarray:
    return np.array([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]])


_Cut = tuple[tuple[int, int], tuple[int, int]]  # of one axis: from these source pixels to these target pixels


def _find_visible(scale: float, shift: float, side: int, room: int) -> _Cut | None:
    """The visible part of one axis, if it begins and ends on whole pixels on both sides."""
    source = max(0.0, -shift / scale), min(float(side), (room - shift) / scale)
    target = source[0] * scale + shift, source[1] * scale + shift
    return _whole_pixels(source, target)


def _find_whole(scale: float, shift: float, side: int) -> _Cut | None:
    """The whole of one axis, if it lands on whole pixels."""
    return _whole_pixels((0.0, float(side)), (shift, side * scale + shift))


def _whole_pixels(source: tuple[float, float], target: tuple[float, float]) -> _Cut | None:
    s0, s1, t0, t1 = whole = [round(end) for end in (*source, *target)]
    off = max(abs(end - near) for end, near in zip((*source, *target), whole, strict=True))
    return None if off > 1e-6 or s1 <= s0 or t1 <= t0 else ((s0, s1), (t0, t1))
