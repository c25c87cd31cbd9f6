"""Functions of one image: a PIL image or an array [H, W, C], which stay what they are, or a Tensor [C, H, W].

The pixels are the core's; a Tensor goes through an array and comes back with its layout.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.vision.transforms import functional as core

ImageOrTensor = core.ImageLike | Tensor


def _is_pil_image(img: ImageOrTensor) -> bool:
    return core.is_pil_image(img)


def _is_numpy_image(img: ImageOrTensor) -> bool:
    return isinstance(img, np.ndarray) and img.ndim in (2, 3)


def _is_tensor_image(img: ImageOrTensor) -> bool:
    return isinstance(img, Tensor)


def to_pixels(img: Tensor) -> np.ndarray:
    """[C, H, W] as [H, W, C]."""
    values = img.numpy()
    return values if values.ndim < 3 else np.ascontiguousarray(np.moveaxis(values, 0, -1))


def from_pixels(values: core.ImageLike, like: Tensor) -> Tensor:
    """[H, W] or [H, W, C] as [C, H, W], of the type of `like`."""
    pixels = np.asarray(values)
    if pixels.ndim == 2 and like.ndim == 3:
        pixels = pixels[..., None]
    return wrap(as_array(pixels if pixels.ndim < 3 else np.moveaxis(pixels, -1, 0), like.dtype))


def on_tensors(function: Callable[..., core.ImageLike]) -> Callable[..., ImageOrTensor]:
    """The function of an image for Tensors too."""

    @functools.wraps(function)
    def call(img: ImageOrTensor, *args: Any, **kwargs: Any) -> ImageOrTensor:
        if isinstance(img, Tensor):
            return from_pixels(function(to_pixels(img), *args, **kwargs), img)
        return function(img, *args, **kwargs)

    return call


resize = on_tensors(core.resize)
pad = on_tensors(core.pad)
crop = on_tensors(core.crop)
center_crop = on_tensors(core.center_crop)
hflip = on_tensors(core.hflip)
vflip = on_tensors(core.vflip)
adjust_brightness = on_tensors(core.adjust_brightness)
adjust_contrast = on_tensors(core.adjust_contrast)
adjust_saturation = on_tensors(core.adjust_saturation)
adjust_hue = on_tensors(core.adjust_hue)
affine = on_tensors(core.affine)
rotate = on_tensors(core.rotate)
perspective = on_tensors(core.perspective)
to_grayscale = on_tensors(core.to_grayscale)


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
    """(img - mean) / std; `data_format` says where the channels of an array or a Tensor are. `to_rgb` reads the last
    axis of an array backwards, and does nothing to a Tensor."""
    if isinstance(img, Tensor):
        return wrap(as_array(core.normalize(img.numpy(), mean, std, data_format)))
    return core.normalize(img, mean, std, data_format, to_rgb)


def erase(img: ImageOrTensor, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> ImageOrTensor:
    """With the rectangle of h x w pixels from row `i` and column `j` on painted over with `v`: a number, or what
    broadcasts to the rectangle in the layout of the image."""
    if not isinstance(img, Tensor):
        return core.erase(img, i, j, h, w, v, inplace)
    paint = to_pixels(v) if isinstance(v, Tensor) else v
    result = from_pixels(core.erase(to_pixels(img), i, j, h, w, paint), img)
    if inplace:
        img._value = result._value
        return img
    return result
