"""The core's transforms, which also take Tensors [C, H, W], with Paddle's layouts as defaults."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle.vision.transforms import functional as F
from framework.paddle.vision.transforms.functional import ImageOrTensor
from framework.paddle.vision.transforms.tensor_backend import has_pixels
from framework.vision.transforms import image_transforms as core
from framework.vision.transforms.image_transforms import BaseTransform as BaseTransform
from framework.vision.transforms.image_transforms import Compose as Compose

Keys = Sequence[str] | None
Kind = TypeVar("Kind", bound=BaseTransform)


def _drawing(kind: type[Kind]) -> type[Kind]:
    """The core's transform, which says where it draws once and for all: a static program holds what is computed, and
    this draws on the host before."""

    def _apply_image(self: object, img: ImageOrTensor) -> ImageOrTensor:
        if isinstance(img, Tensor) and isinstance(img._value, Symbol):
            warnings.warn(
                f"{kind.__name__} draws while the static program is built, and each run of the program uses what it "
                "drew: call it on the batches instead",
                stacklevel=3,
            )
        apply = kind._apply_image.__get__(self)  # type: ignore[attr-defined]
        if kind is core.RandomResizedCrop and isinstance(img, Tensor) and img.ndim == 3 and has_pixels(img):
            # On the host, which has no program to compile for each size of the part that it draws.
            scaled = apply(np.ascontiguousarray(np.moveaxis(img.numpy(), 0, -1)))
            return wrap(as_array(np.moveaxis(scaled.reshape(*scaled.shape[:2], -1), -1, 0), img.dtype))
        return apply(img)

    doc = f"`{kind.__name__}` of the core, on Tensors too."
    body = {"__module__": __name__, "__doc__": doc, "_apply_image": _apply_image}
    made: Any = type(kind.__name__, (kind,), body)
    return made


def _get_image_size(img: ImageOrTensor) -> tuple[int, int]:
    """(width, height); packages import it. A Tensor is [..., H, W]."""
    if isinstance(img, Tensor):
        return img.shape[-1], img.shape[-2]
    height, width = np.asarray(img).shape[:2]
    return width, height


def _check_input(
    value: float | Sequence[float],
    name: str,
    center: float = 1,
    bound: tuple[float, float] = (0, float("inf")),
    clip_first_on_zero: bool = True,
) -> Sequence[float] | None:
    """The (least, largest) factor of a jitter: `value` to either side of `center`, or the two as given; None: nothing
    is changed. Packages that derive from the transforms call it.

    Raises:
        ValueError: a negative number, or a pair out of order or beyond `bound`.
        TypeError: neither a number nor a pair.
    """
    if isinstance(value, int | float):
        if value < 0:
            raise ValueError(f"{name}: how far a factor moves is at least 0, received {value}")
        least = center - value
        pair: Sequence[float] = [max(least, 0) if clip_first_on_zero else least, center + value]
    elif isinstance(value, tuple | list) and len(value) == 2:
        pair = value
        if not bound[0] <= pair[0] <= pair[1] <= bound[1]:
            raise ValueError(
                f"{name}: the least and the largest factor are in order and within {bound}, received {value}"
            )
    else:
        raise TypeError(f"{name}: a number, or the least and the largest factor, received {value!r}")
    return None if pair[0] == pair[1] == center else pair


class ToTensor(core.ToTensor):
    """A Tensor of float32 [C, H, W], bytes divided by 255; "HWC": [H, W, C]."""

    def __init__(self, data_format: str = "CHW", keys: Keys = None) -> None:
        super().__init__(data_format, keys)

    def _apply_image(self, img: ImageOrTensor) -> Any:
        return F.to_tensor(img, self.data_format)


class Normalize(core.Normalize):
    """(img - mean) / std, a number for each channel; one number stands for three, of a gray image too."""

    def __init__(
        self,
        mean: float | Sequence[float] = 0.0,
        std: float | Sequence[float] = 1.0,
        data_format: str = "CHW",
        to_rgb: bool = False,
        keys: Keys = None,
    ) -> None:
        mean, std = ([one] * 3 if isinstance(one, int | float) else one for one in (mean, std))
        super().__init__(mean, std, data_format, to_rgb, keys)

    def _apply_image(self, img: ImageOrTensor) -> Any:
        return F.normalize(img, self.mean, self.std, self.data_format, self.to_rgb)


class Transpose(core.Transpose):
    """The axes [H, W, C] in another order: by default channels first."""

    def _apply_image(self, img: ImageOrTensor) -> Any:
        return img.transpose(list(self.order)) if isinstance(img, Tensor) else super()._apply_image(img)


BrightnessTransform = _drawing(core.BrightnessTransform)
CenterCrop = core.CenterCrop
ColorJitter = _drawing(core.ColorJitter)
ContrastTransform = _drawing(core.ContrastTransform)
Grayscale = core.Grayscale
HueTransform = _drawing(core.HueTransform)
Pad = core.Pad
RandomAffine = _drawing(core.RandomAffine)
RandomCrop = _drawing(core.RandomCrop)
RandomErasing = _drawing(core.RandomErasing)
RandomHorizontalFlip = _drawing(core.RandomHorizontalFlip)
RandomPerspective = _drawing(core.RandomPerspective)
RandomResizedCrop = _drawing(core.RandomResizedCrop)
RandomRotation = _drawing(core.RandomRotation)
RandomVerticalFlip = _drawing(core.RandomVerticalFlip)
Resize = core.Resize
SaturationTransform = _drawing(core.SaturationTransform)
