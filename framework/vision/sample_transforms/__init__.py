"""Transforms of samples: frozen dataclasses that take (Sample, random generator) and give a Sample.

    train = (RandomResizedCrop((224, 224)), RandomHorizontalFlip(), ColorJitter(0.4, 0.4, 0.4))
    for transform in train:
        sample = transform(sample, rng)

Geometric ones (`GeometricTransform`) plan one Warp from the image's size and the generator and apply it to every field;
photometric ones change the image alone. Images stay uint8 RGB: normalising is part of the
model's program. What is in the sample is shared or replaced, never changed in place. Equal generators give equal
results. Two kinds are called by the loader in their own way: those that mix several images (`MixTransform`) and those
that do the same to a whole batch (class attribute `per_batch`).

A config names them (`type: RandomResizedCrop`), and Python imports them from here. `framework.vision.transforms` has
Paddle's transforms, which take one image; some have the same names.
"""

from framework.vision.sample_transforms.affine import RandomAffine as RandomAffine
from framework.vision.sample_transforms.affine import RandomHorizontalFlip as RandomHorizontalFlip
from framework.vision.sample_transforms.affine import RandomRotation as RandomRotation
from framework.vision.sample_transforms.affine import RandomVerticalFlip as RandomVerticalFlip
from framework.vision.sample_transforms.affine_crop import CropToObject as CropToObject
from framework.vision.sample_transforms.affine_crop import RandomCropToObject as RandomCropToObject
from framework.vision.sample_transforms.affine_crop import RandomFrame as RandomFrame
from framework.vision.sample_transforms.apply import GeometricTransform as GeometricTransform
from framework.vision.sample_transforms.apply import apply_warp as apply_warp
from framework.vision.sample_transforms.apply import keep_objects as keep_objects
from framework.vision.sample_transforms.auto_augment import AutoAugment as AutoAugment
from framework.vision.sample_transforms.auto_augment import RandAugment as RandAugment
from framework.vision.sample_transforms.color import ColorJitter as ColorJitter
from framework.vision.sample_transforms.color import GaussianBlur as GaussianBlur
from framework.vision.sample_transforms.color import RandomDistort as RandomDistort
from framework.vision.sample_transforms.color import RandomErasing as RandomErasing
from framework.vision.sample_transforms.color import RandomGrayscale as RandomGrayscale
from framework.vision.sample_transforms.combine import RandomApply as RandomApply
from framework.vision.sample_transforms.combine import RandomChoice as RandomChoice
from framework.vision.sample_transforms.crop import CenterCrop as CenterCrop
from framework.vision.sample_transforms.crop import RandomCrop as RandomCrop
from framework.vision.sample_transforms.crop import RandomIoUCrop as RandomIoUCrop
from framework.vision.sample_transforms.crop import RandomResizedCrop as RandomResizedCrop
from framework.vision.sample_transforms.mix import MixUp as MixUp
from framework.vision.sample_transforms.mix import Mosaic as Mosaic
from framework.vision.sample_transforms.pad import Pad as Pad
from framework.vision.sample_transforms.pad import PadToMultiple as PadToMultiple
from framework.vision.sample_transforms.pad import PadToSize as PadToSize
from framework.vision.sample_transforms.pad import RandomExpand as RandomExpand
from framework.vision.sample_transforms.resize import BatchRandomResize as BatchRandomResize
from framework.vision.sample_transforms.resize import LetterBox as LetterBox
from framework.vision.sample_transforms.resize import RandomScale as RandomScale
from framework.vision.sample_transforms.resize import Resize as Resize
from framework.vision.sample_transforms.resize import ResizeShort as ResizeShort
