"""Augmentations of single lines of text: samples whose text is the image's, without objects.

Geometry that a Warp cannot say takes the way back to the file away: `warp` and `source_size` are None then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from framework.config.registry import register
from framework.core.errors import ShapeError
from framework.core.transform import MixTransform, Transform
from framework.vision import degrade, image
from framework.vision.sample import Sample
from framework.vision.sample_transforms import pixels
from framework.vision.sample_transforms.apply import apply_warp
from framework.vision.sample_transforms.checks import check_number, check_range, check_rgb
from framework.vision.warp import Warp

_LEAST_SIDE = 20  # pixels of both sides, below which a line is neither bent nor cut


@register("transform")
@dataclass(frozen=True)
class RandomLineDistortion(Transform[Sample]):
    """Bends, cuts and discolours a line of text, each with its probability and in this order.

    * `p_warp`: control points on both edges, 3 to 6 segments apart, move up and down by up to a sixth of the height
      and along the line by up to three eighths of a segment, and the text shrinks towards one side in perspective.
    * `p_crop`: 1 to 8 pixels are cut off at the top or at the bottom.
    * `p_blur`: a Gaussian of a standard deviation from `blur`, in pixels.
    * `p_hsv`: brightness, saturation and hue change a little.
    * `p_noise`: Gaussian noise of a standard deviation from `noise`, in values 0 to 255.
    * `p_invert`: the colours become their opposites.

    Edge pixels are repeated. Lines with a side below 20 pixels are neither bent nor cut.

    Source: PaddleOCR's RecAug, with its probabilities. Differs: its changes of brightness (0.1%), its noise (0.16 of
    255) and its jitter (nothing below 100 pixels) cannot be seen, and its control points may leave nothing of a letter.

    Raises:
        ConfigError: a probability is none, or a range is empty or out of bounds.
        ShapeError: at a call, the sample is no line of text, or no 8-bit RGB image.
    """

    p_warp: float = 0.4
    p_crop: float = 0.4
    p_blur: float = 0.4
    p_hsv: float = 0.4
    p_noise: float = 0.4
    p_invert: float = 0.4
    blur: tuple[float, float] = (0.4, 1.2)
    noise: tuple[float, float] = (1.0, 12.0)

    def __post_init__(self) -> None:
        for name in ("p_warp", "p_crop", "p_blur", "p_hsv", "p_noise", "p_invert"):
            check_number(self, name, 0, 1)
        check_range(self, "blur", 0, 20, above=True)
        check_range(self, "noise", 0, 128)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        check_line(self, sample)
        check_rgb(self, sample)
        changed = sample.image
        large = min(sample.size_hw) >= _LEAST_SIDE
        moved = False
        if rng.random() < self.p_warp:
            changed, moved = _lean(_bend(changed, rng) if large else changed, rng), True
        if rng.random() < self.p_crop and large:
            cut, at_top = int(rng.integers(1, 9)), bool(rng.random() < 0.5)
            changed, moved = np.ascontiguousarray(changed[cut:] if at_top else changed[:-cut]), True
        if rng.random() < self.p_blur:
            changed = degrade.blur(changed, rng.uniform(*self.blur))
        if rng.random() < self.p_hsv:
            changed = pixels.brightness(changed, rng.uniform(0.8, 1.2))
            changed = pixels.saturation(changed, rng.uniform(0.6, 1.4))
            changed = pixels.hue(changed, rng.uniform(-0.03, 0.03))
        if rng.random() < self.p_noise:
            changed = degrade.add_noise(changed, rng.uniform(*self.noise), rng)
        if rng.random() < self.p_invert:
            changed = pixels.invert(changed)
        if moved:
            return sample.replace(image=changed, warp=None, source_size=None)
        return sample.replace(image=changed)


def _bend(line: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Moves the control points; what is between them follows smoothly."""
    height, width = line.shape[:2]
    segments = int(rng.integers(3, 7))
    step, lift = width / segments, height / 6
    offsets = np.zeros((2, segments + 1, 2), np.float32)  # of the upper and the lower edge: along, down
    offsets[..., 0] = rng.uniform(-step / 8, step / 8, (2, segments + 1))
    offsets[:, 1:-1, 0] += rng.uniform(-step / 4, step / 4, segments - 1)
    # An edge rather lets something in from outside than cuts letters off.
    offsets[0, :, 1] = rng.uniform(-lift, lift / 4, segments + 1)
    offsets[1, :, 1] = rng.uniform(-lift / 4, lift, segments + 1)
    knots = np.linspace(0, width, segments + 1)
    ease = _smooth(np.arange(width) + 0.5, knots)
    upper, lower = (ease @ edge for edge in offsets)
    down = ((np.arange(height, dtype=np.float32) + 0.5) / height)[:, None, None]
    return degrade.displace(line, upper[None] * (1 - down) + lower[None] * down)


def _smooth(places: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Weights [P, K] of the knots at the places: a cosine's rise from one to the next."""
    step = knots[1] - knots[0]
    near = np.abs(places[:, None] - knots[None]) / step
    return np.where(near < 1, 0.5 + 0.5 * np.cos(np.pi * np.minimum(near, 1)), 0).astype(np.float32)


def _lean(line: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The corners move towards the line's middle by up to 0.3 of its height."""
    height, width = line.shape[:2]
    inward = rng.uniform(0, 0.3 * height, 4)
    quad = np.array(
        [[0, inward[0]], [width, inward[1]], [width, height - inward[2]], [0, height - inward[3]]], np.float64
    )
    warp = Warp.perspective((height, width), quad, (height, width)).inverse()
    return warp.image(line, border=None)


@register("transform")
@dataclass(frozen=True)
class ConcatenateLines(MixTransform[Sample]):
    """Puts another line on the right of this one, with probability `p`, and joins their texts.

    Not done where the joined text is longer than `max_text_length` characters, or the joined line is more than
    `max_ratio` times as wide as high. Both are scaled to `height` first. Nothing stands between the two.

    Attributes:
        right_to_left: The script is read from the right, so the text of the line on the right comes first.

    Source: PaddleOCR's RecConAug, with its default values.

    Raises:
        ConfigError: a number is out of range.
        ShapeError: at a call, a sample is no line of text, or the two are of other types.
    """

    extra: ClassVar[int] = 1
    p: float = 0.5
    height: int = 32
    max_ratio: float = 10.0
    max_text_length: int = 25
    right_to_left: bool = False

    def __post_init__(self) -> None:
        check_number(self, "p", 0, 1)
        check_number(self, "height", 1, 4096)
        check_number(self, "max_ratio", 0, above=True)
        check_number(self, "max_text_length", 1)

    def __call__(self, sample: Sample, rng: np.random.Generator, others: Sequence[Sample] = ()) -> Sample:
        if rng.random() >= self.p:
            return sample
        pair = (sample, others[0])
        text, added = (check_line(self, one) for one in pair)
        ratio = sum(one.size_hw[1] / one.size_hw[0] for one in pair)
        if len(text) + len(added) > self.max_text_length or ratio > self.max_ratio:
            return sample
        first, second = (one.image for one in pair)
        if first.dtype != second.dtype or first.shape[2] != second.shape[2]:
            raise ShapeError(
                "these lines cannot be joined",
                where=_where(self, sample),
                received=f"{first.dtype} of {first.shape[2]} channels, {second.dtype} of {second.shape[2]}",
                allowed="images of one type",
            )
        parts = [
            image.resize(
                one.image, (self.height, max(1, round(one.size_hw[1] / one.size_hw[0] * self.height)))
            )
            for one in pair
        ]
        joined = added + text if self.right_to_left else text + added
        return sample.replace(image=np.concatenate(parts, axis=1), text=joined, warp=None, source_size=None)


@register("transform")
@dataclass(frozen=True)
class RandomTurn180(Transform[Sample]):
    """Turns a line upside down with probability `p`, and says so in `labels []` (int32): 0 upright, 1 turned.

    A line that already has such a label gets the other one when it is turned.

    Raises:
        ConfigError: `p` is no probability.
        ShapeError: at a call, the sample has objects, or a label that is neither 0 nor 1.
    """

    p: float = 0.5

    def __post_init__(self) -> None:
        check_number(self, "p", 0, 1)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        check_objects(self, sample)
        label = 0 if sample.labels is None else int(sample.labels)
        if label not in (0, 1):
            raise ShapeError(
                "the line has a label that is no direction",
                where=_where(self, sample),
                received=label,
                allowed="0 (upright), 1 (turned by 180 degrees), or none",
            )
        if rng.random() < self.p:
            sample = apply_warp(sample, Warp.rotate90(sample.size_hw, 2))
            label = 1 - label
        return sample.replace(labels=np.array(label, np.int32))


def check_line(owner: object, sample: Sample) -> str:
    """The text of a line. Raises: ShapeError, where the sample has no text of its own, or objects."""
    check_objects(owner, sample)
    if not isinstance(sample.text, str):
        raise ShapeError(
            "the sample has no text",
            where=_where(owner, sample),
            allowed="a line: an image and its text",
        )
    return sample.text


def check_objects(owner: object, sample: Sample) -> None:
    """Raises: ShapeError, where the sample is more than a line: it has objects or a mask."""
    names = ("mask", "boxes", "polygons", "keypoints", "valid", "areas")
    found = [name for name in names if getattr(sample, name) is not None]
    if sample.labels is not None and sample.labels.ndim:
        found.append("labels")
    if isinstance(sample.text, tuple):
        found.append("text")
    if found:
        raise ShapeError(
            "the sample is no single line of text",
            where=_where(owner, sample),
            received=f"objects: {', '.join(found)}",
            allowed="an image with a text and a label of its own",
            fix="use it on the lines of a recogniser's data set",
        )


def _where(owner: object, sample: Sample) -> str:
    name = type(owner).__name__
    return name if sample.id is None else f"{name}, sample {sample.id!r}"
