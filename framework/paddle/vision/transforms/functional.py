"""Functions of one image: a PIL image or an array [H, W, C], which stay what they are, or a Tensor [C, H, W].

The pixels are the core's; `tensor_backend` has what the core's functions do with a Tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle.vision.transforms import tensor_backend
from framework.vision.transforms import functional as core

ImageOrTensor = core.ImageLike | Tensor
core.register_images(Tensor, tensor_backend)


def _is_pil_image(img: ImageOrTensor) -> bool:
    return core.is_pil_image(img)


def _is_numpy_image(img: ImageOrTensor) -> bool:
    return isinstance(img, np.ndarray) and img.ndim in (2, 3)


def _is_tensor_image(img: ImageOrTensor) -> bool:
    return isinstance(img, Tensor)


resize = core.resize
pad = core.pad
center_crop = core.center_crop
hflip = core.hflip
vflip = core.vflip
adjust_brightness = core.adjust_brightness
adjust_contrast = core.adjust_contrast
adjust_saturation = core.adjust_saturation
adjust_hue = core.adjust_hue
affine = core.affine
rotate = core.rotate
perspective = core.perspective
to_grayscale = core.to_grayscale


def crop(img: ImageOrTensor, top: int, left: int, height: int, width: int) -> ImageOrTensor:
    """The part of the image. What lies beyond an array or a Tensor on the right or below is left out, as in Paddle;
    beyond a PIL image it is black.

    Raises:
        ShapeError: the part of an array begins outside of it.
    """
    if isinstance(img, np.ndarray):
        height, width = min(height, img.shape[0] - top), min(width, img.shape[1] - left)
    return core.crop(cast(core.ImageLike, img), top, left, height, width)


def to_tensor(pic: ImageOrTensor, data_format: str = "CHW") -> Tensor:
    """A Tensor of float32 [C, H, W] (or "HWC"), bytes divided by 255."""
    if isinstance(pic, Tensor):
        return pic
    return wrap(as_array(core.to_tensor(pic, data_format)))


def normalize(
    img: ImageOrTensor,
    mean: float | Sequence[float],
    std: float | Sequence[float],
    data_format: str = "CHW",
    to_rgb: bool = False,
) -> np.ndarray | Tensor:
    """(img - mean) / std; `data_format` says where the channels of an array or a Tensor are. A gray image gets as many
    channels as there are numbers. `to_rgb` reads the last axis of an array backwards, and does nothing to a Tensor."""
    if isinstance(img, Tensor):
        core.check_choice(data_format, ("HWC", "CHW"), "normalize.data_format")
        return tensor_backend.normalize(img, mean, std, data_format == "HWC")
    if (count := max(np.size(mean), np.size(std))) > 1:
        img = _spread_gray(np.asarray(img), count, data_format)
    return core.normalize(img, mean, std, data_format, to_rgb)


def _spread_gray(img: np.ndarray, count: int, data_format: str) -> np.ndarray:
    """An image of one channel with so many equal ones, another one as it is."""
    axis = 0 if data_format == "CHW" else -1
    if img.ndim == 2:
        img = np.expand_dims(img, axis)
    return np.repeat(img, count, axis) if img.shape[axis] == 1 else img


def erase(img: ImageOrTensor, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> ImageOrTensor:
    """With the rectangle of h x w pixels from row `i` and column `j` on painted over with `v`: a number, or what
    broadcasts to the rectangle in the layout of the image."""
    if isinstance(img, Tensor):
        return tensor_backend.paint(img, i, j, h, w, v, inplace)
    return core.erase(img, i, j, h, w, v, inplace)
