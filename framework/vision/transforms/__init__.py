"""Transforms of samples: frozen dataclasses that take (Sample, random generator) and give a Sample.

    train = (RandomResizedCrop((224, 224)), RandomHorizontalFlip(), ColorJitter(0.4, 0.4, 0.4))
    for transform in train:
        sample = transform(sample, rng)

Geometric ones plan one Warp from the picture's size and the generator, `plan(size_hw, rng)`, and apply it to every
field with `apply_warp`; photometric ones change the image alone. Images stay uint8 RGB: normalising is part of the
model's program. What is in the sample is shared or replaced, never changed in place. Equal generators give equal
results.
"""

from framework.vision.transforms.affine import RandomAffine, RandomRotation
from framework.vision.transforms.apply import Transform, apply_warp, keep_objects
from framework.vision.transforms.auto_augment import AutoAugment, RandAugment
from framework.vision.transforms.color import ColorJitter, GaussianBlur, RandomGrayscale
from framework.vision.transforms.combine import RandomApply, RandomChoice
from framework.vision.transforms.crop import CenterCrop, RandomCrop, RandomResizedCrop
from framework.vision.transforms.erase import RandomErasing
from framework.vision.transforms.flip import RandomHorizontalFlip, RandomVerticalFlip
from framework.vision.transforms.pad import Pad, PadToMultiple, PadToSize, RandomExpand
from framework.vision.transforms.resize import RandomScale, Resize

__all__ = [
    "AutoAugment",
    "CenterCrop",
    "ColorJitter",
    "GaussianBlur",
    "Pad",
    "PadToMultiple",
    "PadToSize",
    "RandAugment",
    "RandomAffine",
    "RandomApply",
    "RandomChoice",
    "RandomCrop",
    "RandomErasing",
    "RandomExpand",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomScale",
    "RandomVerticalFlip",
    "Resize",
    "Transform",
    "apply_warp",
    "keep_objects",
]
