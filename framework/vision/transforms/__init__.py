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

from framework.vision.transforms.affine import RandomAffine as RandomAffine
from framework.vision.transforms.affine import RandomHorizontalFlip as RandomHorizontalFlip
from framework.vision.transforms.affine import RandomRotation as RandomRotation
from framework.vision.transforms.affine import RandomVerticalFlip as RandomVerticalFlip
from framework.vision.transforms.affine_crop import CropToObject as CropToObject
from framework.vision.transforms.affine_crop import RandomCropToObject as RandomCropToObject
from framework.vision.transforms.affine_crop import RandomFrame as RandomFrame
from framework.vision.transforms.apply import GeometricTransform as GeometricTransform
from framework.vision.transforms.apply import apply_warp as apply_warp
from framework.vision.transforms.apply import keep_objects as keep_objects
from framework.vision.transforms.auto_augment import AutoAugment as AutoAugment
from framework.vision.transforms.auto_augment import RandAugment as RandAugment
from framework.vision.transforms.color import ColorJitter as ColorJitter
from framework.vision.transforms.color import GaussianBlur as GaussianBlur
from framework.vision.transforms.color import RandomDistort as RandomDistort
from framework.vision.transforms.color import RandomErasing as RandomErasing
from framework.vision.transforms.color import RandomGrayscale as RandomGrayscale
from framework.vision.transforms.combine import RandomApply as RandomApply
from framework.vision.transforms.combine import RandomChoice as RandomChoice
from framework.vision.transforms.crop import CenterCrop as CenterCrop
from framework.vision.transforms.crop import RandomCrop as RandomCrop
from framework.vision.transforms.crop import RandomIoUCrop as RandomIoUCrop
from framework.vision.transforms.crop import RandomResizedCrop as RandomResizedCrop
from framework.vision.transforms.mix import MixUp as MixUp
from framework.vision.transforms.mix import Mosaic as Mosaic
from framework.vision.transforms.pad import Pad as Pad
from framework.vision.transforms.pad import PadToMultiple as PadToMultiple
from framework.vision.transforms.pad import PadToSize as PadToSize
from framework.vision.transforms.pad import RandomExpand as RandomExpand
from framework.vision.transforms.resize import BatchRandomResize as BatchRandomResize
from framework.vision.transforms.resize import LetterBox as LetterBox
from framework.vision.transforms.resize import RandomScale as RandomScale
from framework.vision.transforms.resize import Resize as Resize
from framework.vision.transforms.resize import ResizeShort as ResizeShort
