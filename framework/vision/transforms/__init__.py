"""paddle.vision.transforms: 38 names as a Paddle user types them, on arrays [H, W, C] and PIL images.

    transform = transforms.Compose([transforms.Resize(256), transforms.ToTensor(), transforms.Normalize(mean, std)])
    pixels = transform(image)

Arrays are channels-last, also what ToTensor and Normalize give, unless `data_format="CHW"` is said.

A config's transforms, which take a Sample and move its boxes, masks and keypoints too, are in
`framework.vision.sample_transforms`. Eleven names, such as Resize, are in both: in Python `transforms.Resize` takes an
image; in a config `type: Resize` takes Samples. The other transforms of Samples can be imported from here for one more
release.
"""

from framework.vision.sample_transforms.affine_crop import CropToObject as CropToObject
from framework.vision.sample_transforms.affine_crop import RandomCropToObject as RandomCropToObject
from framework.vision.sample_transforms.affine_crop import RandomFrame as RandomFrame
from framework.vision.sample_transforms.apply import GeometricTransform as GeometricTransform
from framework.vision.sample_transforms.apply import apply_warp as apply_warp
from framework.vision.sample_transforms.apply import keep_objects as keep_objects
from framework.vision.sample_transforms.auto_augment import AutoAugment as AutoAugment
from framework.vision.sample_transforms.auto_augment import RandAugment as RandAugment
from framework.vision.sample_transforms.color import GaussianBlur as GaussianBlur
from framework.vision.sample_transforms.color import RandomDistort as RandomDistort
from framework.vision.sample_transforms.color import RandomGrayscale as RandomGrayscale
from framework.vision.sample_transforms.combine import RandomApply as RandomApply
from framework.vision.sample_transforms.combine import RandomChoice as RandomChoice
from framework.vision.sample_transforms.crop import RandomIoUCrop as RandomIoUCrop
from framework.vision.sample_transforms.mix import MixUp as MixUp
from framework.vision.sample_transforms.mix import Mosaic as Mosaic
from framework.vision.sample_transforms.pad import PadToMultiple as PadToMultiple
from framework.vision.sample_transforms.pad import PadToSize as PadToSize
from framework.vision.sample_transforms.pad import RandomExpand as RandomExpand
from framework.vision.sample_transforms.resize import BatchRandomResize as BatchRandomResize
from framework.vision.sample_transforms.resize import LetterBox as LetterBox
from framework.vision.sample_transforms.resize import RandomScale as RandomScale
from framework.vision.sample_transforms.resize import ResizeShort as ResizeShort
from framework.vision.transforms.functional import adjust_brightness as adjust_brightness
from framework.vision.transforms.functional import adjust_contrast as adjust_contrast
from framework.vision.transforms.functional import adjust_hue as adjust_hue
from framework.vision.transforms.functional import affine as affine
from framework.vision.transforms.functional import center_crop as center_crop
from framework.vision.transforms.functional import crop as crop
from framework.vision.transforms.functional import erase as erase
from framework.vision.transforms.functional import hflip as hflip
from framework.vision.transforms.functional import normalize as normalize
from framework.vision.transforms.functional import pad as pad
from framework.vision.transforms.functional import perspective as perspective
from framework.vision.transforms.functional import resize as resize
from framework.vision.transforms.functional import rotate as rotate
from framework.vision.transforms.functional import to_grayscale as to_grayscale
from framework.vision.transforms.functional import to_tensor as to_tensor
from framework.vision.transforms.functional import vflip as vflip
from framework.vision.transforms.image_transforms import BaseTransform as BaseTransform
from framework.vision.transforms.image_transforms import BrightnessTransform as BrightnessTransform
from framework.vision.transforms.image_transforms import CenterCrop as CenterCrop
from framework.vision.transforms.image_transforms import ColorJitter as ColorJitter
from framework.vision.transforms.image_transforms import Compose as Compose
from framework.vision.transforms.image_transforms import ContrastTransform as ContrastTransform
from framework.vision.transforms.image_transforms import Grayscale as Grayscale
from framework.vision.transforms.image_transforms import HueTransform as HueTransform
from framework.vision.transforms.image_transforms import Normalize as Normalize
from framework.vision.transforms.image_transforms import Pad as Pad
from framework.vision.transforms.image_transforms import RandomAffine as RandomAffine
from framework.vision.transforms.image_transforms import RandomCrop as RandomCrop
from framework.vision.transforms.image_transforms import RandomErasing as RandomErasing
from framework.vision.transforms.image_transforms import RandomHorizontalFlip as RandomHorizontalFlip
from framework.vision.transforms.image_transforms import RandomPerspective as RandomPerspective
from framework.vision.transforms.image_transforms import RandomResizedCrop as RandomResizedCrop
from framework.vision.transforms.image_transforms import RandomRotation as RandomRotation
from framework.vision.transforms.image_transforms import RandomVerticalFlip as RandomVerticalFlip
from framework.vision.transforms.image_transforms import Resize as Resize
from framework.vision.transforms.image_transforms import SaturationTransform as SaturationTransform
from framework.vision.transforms.image_transforms import ToTensor as ToTensor
from framework.vision.transforms.image_transforms import Transpose as Transpose
