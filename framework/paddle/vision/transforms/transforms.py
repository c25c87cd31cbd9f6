"""The core's transforms, which also take Tensors [C, H, W], with Paddle's layouts as defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from framework.paddle._kernel.tensor import Tensor
from framework.paddle.vision.transforms import functional as F
from framework.paddle.vision.transforms.functional import ImageOrTensor
from framework.vision.transforms import image_transforms as core
from framework.vision.transforms.image_transforms import BaseTransform as BaseTransform
from framework.vision.transforms.image_transforms import Compose as Compose

Keys = Sequence[str] | None
Kind = TypeVar("Kind", bound=BaseTransform)


def _on_tensors(kind: type[Kind]) -> type[Kind]:
    """The core's transform of images, on Tensors too."""

    def _apply_image(self: object, img: ImageOrTensor) -> ImageOrTensor:
        return F.on_tensors(kind._apply_image.__get__(self))(img)  # type: ignore[attr-defined]

    doc = f"`{kind.__name__}` of the core, on Tensors too."
    body = {"__module__": __name__, "__doc__": doc, "_apply_image": _apply_image}
    made: Any = type(kind.__name__, (kind,), body)
    return made


class ToTensor(core.ToTensor):
    """A Tensor of float32 [C, H, W], bytes divided by 255; "HWC": [H, W, C]."""

    def __init__(self, data_format: str = "CHW", keys: Keys = None) -> None:
        super().__init__(data_format, keys)

    def _apply_image(self, img: ImageOrTensor) -> Any:
        return F.to_tensor(img, self.data_format)


class Normalize(core.Normalize):
    """(img - mean) / std, a number for each channel or one for all."""

    def __init__(
        self,
        mean: float | Sequence[float] = 0.0,
        std: float | Sequence[float] = 1.0,
        data_format: str = "CHW",
        to_rgb: bool = False,
        keys: Keys = None,
    ) -> None:
        super().__init__(mean, std, data_format, to_rgb, keys)

    def _apply_image(self, img: ImageOrTensor) -> Any:
        return F.normalize(img, self.mean, self.std, self.data_format, self.to_rgb)


class Transpose(core.Transpose):
    """The axes [H, W, C] in another order: by default channels first."""

    def _apply_image(self, img: ImageOrTensor) -> Any:
        return img.transpose(list(self.order)) if isinstance(img, Tensor) else super()._apply_image(img)


BrightnessTransform = _on_tensors(core.BrightnessTransform)
CenterCrop = _on_tensors(core.CenterCrop)
ColorJitter = _on_tensors(core.ColorJitter)
ContrastTransform = _on_tensors(core.ContrastTransform)
Grayscale = _on_tensors(core.Grayscale)
HueTransform = _on_tensors(core.HueTransform)
Pad = _on_tensors(core.Pad)
RandomAffine = _on_tensors(core.RandomAffine)
RandomCrop = _on_tensors(core.RandomCrop)
RandomErasing = _on_tensors(core.RandomErasing)
RandomHorizontalFlip = _on_tensors(core.RandomHorizontalFlip)
RandomPerspective = _on_tensors(core.RandomPerspective)
RandomResizedCrop = _on_tensors(core.RandomResizedCrop)
RandomRotation = _on_tensors(core.RandomRotation)
RandomVerticalFlip = _on_tensors(core.RandomVerticalFlip)
Resize = _on_tensors(core.Resize)
SaturationTransform = _on_tensors(core.SaturationTransform)
