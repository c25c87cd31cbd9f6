"""Transforms of samples: frozen dataclasses that take (Sample, random generator) and give a Sample.

    train = (RandomResizedCrop((224, 224)), RandomHorizontalFlip(), ColorJitter(0.4, 0.4, 0.4))
    for transform in train:
        sample = transform(sample, rng)

Geometric ones (`GeometricTransform`) plan one Warp from the image's size and the generator and apply it to every field;
photometric ones change the image alone. Images stay uint8 RGB: normalising is part of the
model's program. What is in the sample is shared or replaced, never changed in place. Equal generators give equal
results. Two kinds are called by the loader in their own way: those that mix several images (`MixTransform`) and those
that do the same to a whole batch (class attribute `per_batch`).
"""

from framework.vision.transforms.affine import (
    RandomAffine,
    RandomHorizontalFlip,
    RandomRotation,
    RandomVerticalFlip,
)
from framework.vision.transforms.affine_crop import CropToObject, RandomCropToObject, RandomFrame
from framework.vision.transforms.apply import GeometricTransform, apply_warp, keep_objects
from framework.vision.transforms.auto_augment import AutoAugment, RandAugment
from framework.vision.transforms.color import (
    ColorJitter,
    GaussianBlur,
    RandomDistort,
    RandomErasing,
    RandomGrayscale,
)
from framework.vision.transforms.combine import RandomApply, RandomChoice
from framework.vision.transforms.crop import CenterCrop, RandomCrop, RandomIoUCrop, RandomResizedCrop
from framework.vision.transforms.mix import MixUp, Mosaic
from framework.vision.transforms.pad import Pad, PadToMultiple, PadToSize, RandomExpand
from framework.vision.transforms.resize import BatchRandomResize, LetterBox, RandomScale, Resize, ResizeShort

__all__ = [
    "AutoAugment",
    "BatchRandomResize",
    "CenterCrop",
    "ColorJitter",
    "CropToObject",
    "GaussianBlur",
    "GeometricTransform",
    "LetterBox",
    "MixUp",
    "Mosaic",
    "Pad",
    "PadToMultiple",
    "PadToSize",
    "RandAugment",
    "RandomAffine",
    "RandomApply",
    "RandomChoice",
    "RandomCrop",
    "RandomCropToObject",
    "RandomDistort",
    "RandomErasing",
    "RandomExpand",
    "RandomFrame",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomIoUCrop",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomScale",
    "RandomVerticalFlip",
    "Resize",
    "ResizeShort",
    "apply_warp",
    "keep_objects",
]
