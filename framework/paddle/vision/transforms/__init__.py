"""paddle.vision.transforms: on PIL images, arrays [H, W, C] and Tensors [C, H, W]. The numerics are the core's.

What is random comes from the core's host stream: `paddle.seed(s)` makes it repeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.vision.transforms import functional as functional
from framework.paddle.vision.transforms.functional import adjust_brightness as adjust_brightness
from framework.paddle.vision.transforms.functional import adjust_contrast as adjust_contrast
from framework.paddle.vision.transforms.functional import adjust_hue as adjust_hue
from framework.paddle.vision.transforms.functional import affine as affine
from framework.paddle.vision.transforms.functional import center_crop as center_crop
from framework.paddle.vision.transforms.functional import crop as crop
from framework.paddle.vision.transforms.functional import erase as erase
from framework.paddle.vision.transforms.functional import hflip as hflip
from framework.paddle.vision.transforms.functional import normalize as normalize
from framework.paddle.vision.transforms.functional import pad as pad
from framework.paddle.vision.transforms.functional import perspective as perspective
from framework.paddle.vision.transforms.functional import resize as resize
from framework.paddle.vision.transforms.functional import rotate as rotate
from framework.paddle.vision.transforms.functional import to_grayscale as to_grayscale
from framework.paddle.vision.transforms.functional import to_tensor as to_tensor
from framework.paddle.vision.transforms.functional import vflip as vflip
from framework.paddle.vision.transforms.transforms import BaseTransform as BaseTransform
from framework.paddle.vision.transforms.transforms import BrightnessTransform as BrightnessTransform
from framework.paddle.vision.transforms.transforms import CenterCrop as CenterCrop
from framework.paddle.vision.transforms.transforms import ColorJitter as ColorJitter
from framework.paddle.vision.transforms.transforms import Compose as Compose
from framework.paddle.vision.transforms.transforms import ContrastTransform as ContrastTransform
from framework.paddle.vision.transforms.transforms import Grayscale as Grayscale
from framework.paddle.vision.transforms.transforms import HueTransform as HueTransform
from framework.paddle.vision.transforms.transforms import Normalize as Normalize
from framework.paddle.vision.transforms.transforms import Pad as Pad
from framework.paddle.vision.transforms.transforms import RandomAffine as RandomAffine
from framework.paddle.vision.transforms.transforms import RandomCrop as RandomCrop
from framework.paddle.vision.transforms.transforms import RandomErasing as RandomErasing
from framework.paddle.vision.transforms.transforms import RandomHorizontalFlip as RandomHorizontalFlip
from framework.paddle.vision.transforms.transforms import RandomPerspective as RandomPerspective
from framework.paddle.vision.transforms.transforms import RandomResizedCrop as RandomResizedCrop
from framework.paddle.vision.transforms.transforms import RandomRotation as RandomRotation
from framework.paddle.vision.transforms.transforms import RandomVerticalFlip as RandomVerticalFlip
from framework.paddle.vision.transforms.transforms import Resize as Resize
from framework.paddle.vision.transforms.transforms import SaturationTransform as SaturationTransform
from framework.paddle.vision.transforms.transforms import ToTensor as ToTensor
from framework.paddle.vision.transforms.transforms import Transpose as Transpose

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
