"""The core's transforms, which also take Tensors [C, H, W], with Paddle's layouts as defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from framework.paddle._kernel.tensor import Tensor
from framework.paddle.vision.transforms import functional as F
from framework.vision.transforms import image_transforms as core
from framework.vision.transforms.image_transforms import BaseTransform as BaseTransform
from framework.vision.transforms.image_transforms import Compose as Compose

Keys = Sequence[str] | None


class _OnTensors(BaseTransform):
    def _apply_image(self, img: Any) -> Any:
        apply = super()._apply_image  # type: ignore[misc]
        return F.on_tensors(apply)(img)


class ToTensor(core.ToTensor):
    """A Tensor of float32 [C, H, W], bytes divided by 255; "HWC": [H, W, C]."""

    def __init__(self, data_format: str = "CHW", keys: Keys = None) -> None:
        super().__init__(data_format, keys)

    def _apply_image(self, img: Any) -> Any:
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

    def _apply_image(self, img: Any) -> Any:
        return F.normalize(img, self.mean, self.std, self.data_format, self.to_rgb)


class Transpose(core.Transpose):
    """The axes [H, W, C] in another order: by default channels first."""

    def _apply_image(self, img: Any) -> Any:
        return img.transpose(list(self.order)) if isinstance(img, Tensor) else super()._apply_image(img)


class BrightnessTransform(_OnTensors, core.BrightnessTransform):
    """`BrightnessTransform` of the core, on Tensors too."""


class CenterCrop(_OnTensors, core.CenterCrop):
    """`CenterCrop` of the core, on Tensors too."""


class ColorJitter(_OnTensors, core.ColorJitter):
    """`ColorJitter` of the core, on Tensors too."""


class ContrastTransform(_OnTensors, core.ContrastTransform):
    """`ContrastTransform` of the core, on Tensors too."""


class Grayscale(_OnTensors, core.Grayscale):
    """`Grayscale` of the core, on Tensors too."""


class HueTransform(_OnTensors, core.HueTransform):
    """`HueTransform` of the core, on Tensors too."""


class Pad(_OnTensors, core.Pad):
    """`Pad` of the core, on Tensors too."""


class RandomAffine(_OnTensors, core.RandomAffine):
    """`RandomAffine` of the core, on Tensors too."""


class RandomCrop(_OnTensors, core.RandomCrop):
    """`RandomCrop` of the core, on Tensors too."""


class RandomErasing(_OnTensors, core.RandomErasing):
    """`RandomErasing` of the core, on Tensors too."""


class RandomHorizontalFlip(_OnTensors, core.RandomHorizontalFlip):
    """`RandomHorizontalFlip` of the core, on Tensors too."""


class RandomPerspective(_OnTensors, core.RandomPerspective):
    """`RandomPerspective` of the core, on Tensors too."""


class RandomResizedCrop(_OnTensors, core.RandomResizedCrop):
    """`RandomResizedCrop` of the core, on Tensors too."""


class RandomRotation(_OnTensors, core.RandomRotation):
    """`RandomRotation` of the core, on Tensors too."""


class RandomVerticalFlip(_OnTensors, core.RandomVerticalFlip):
    """`RandomVerticalFlip` of the core, on Tensors too."""


class Resize(_OnTensors, core.Resize):
    """`Resize` of the core, on Tensors too."""


class SaturationTransform(_OnTensors, core.SaturationTransform):
    """`SaturationTransform` of the core, on Tensors too."""
