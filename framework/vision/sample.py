"""One image with what is known about it: what datasets yield and transforms change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from framework.core.errors import ShapeError
from framework.core.sample import Sample as AnySample
from framework.vision.warp import Warp

_RANKS = {
    "image": (3,),
    "mask": (2, 3),
    "boxes": (2,),
    "keypoints": (3,),
    "labels": (0, 1),
    "valid": (1,),
    "areas": (1,),
}


@dataclass(frozen=True, eq=False)
class Sample(AnySample):
    """K objects on one image. All geometry is in pixels of `image` as it is now, in the convention of `warp`.

    Raises:
        ShapeError: a field has another rank than stated, or fields disagree on K.
    """

    image: np.ndarray
    """`[H, W, 3]` uint8 RGB; float32 once it is normalised. Images of other sensors have C channels of uint8,
    uint16 or float32, as they are stored: all geometric transforms take them, those of colour do not."""
    mask: np.ndarray | None = None
    """`[H, W]` class indices, or `[K, H, W]` bool, one mask an object."""
    boxes: np.ndarray | None = None
    """`[K, 4]` float32 xyxy."""
    polygons: tuple[np.ndarray, ...] | None = None
    """K arrays `[N_k, 2]` float32."""
    keypoints: np.ndarray | None = None
    """`[K, J, 3]` float32: x, y, visibility (0 unlabelled, 1 hidden, 2 seen)."""
    labels: np.ndarray | None = None
    """`[K]` class indices; for an image with one class, `[]` (a scalar array)."""
    text: str | tuple[str, ...] | None = None
    """The image's text, or one text an object."""
    valid: np.ndarray | None = None
    """`[K]` bool: False marks objects to ignore (crowds, unreadable text)."""
    areas: np.ndarray | None = None
    """`[K]` float32: what annotators measured of the objects, in pixels of the image as it was read. No transform
    changes them: metrics sort objects into small and large by them."""
    warp: Warp | None = None
    """From the image as it was read to `image`; None stands for no change."""
    source_size: tuple[int, int] | None = None
    """(height, width) of the image as it was read."""

    def __post_init__(self) -> None:
        self.check_ranks(_RANKS)
        of_image = self.image_fields()
        counts = {
            name: len(value)
            for name in ("mask", "boxes", "polygons", "keypoints", "labels", "text", "valid", "areas")
            if (value := getattr(self, name)) is not None and name not in of_image
        }
        if len(set(counts.values())) > 1:
            raise ShapeError(
                "the fields disagree on the number of objects",
                where=self.where("fields"),
                received=", ".join(f"{name}: {count}" for name, count in counts.items()),
                allowed="the same number in each",
            )

    @property
    def size_hw(self) -> tuple[int, int]:
        """(height, width) of `image`."""
        return self.image.shape[0], self.image.shape[1]

    def image_fields(self) -> set[str]:
        """Names of the fields that say something of the whole image and not of each object."""
        found = {
            "text": isinstance(self.text, str),
            "mask": self.mask is not None and self.mask.ndim == 2,
            "labels": self.labels is not None and self.labels.ndim == 0,
        }
        return {name for name, of_image in found.items() if of_image}
