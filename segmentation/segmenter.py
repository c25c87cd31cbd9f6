"""What `segmentation.predictor` gives: finds the class of every pixel of images and videos."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from framework.core.errors import InputError
from framework.core.transform import Transform
from framework.vision import raw_images
from framework.vision.sample import Sample
from framework.vision.windowed import WindowedImage
from framework.workflow import ImageItem, VisionPredictor
from framework.workflow.domain.predictor import ImageSource
from framework.workflow.domain.samples import apply_transforms
from framework.workflow.runners.image_runner import ImageRunner
from segmentation.background import Background
from segmentation.restore import labels_at_source
from segmentation.results import Segmentation
from segmentation.test_time_augmentation import TestTimeAugmentation


@dataclass(frozen=True)
class Appearance:
    """How results are drawn: names and colours of the classes, opacity, and what stands behind the foreground."""

    names: tuple[str, ...]
    palette: np.ndarray
    opacity: float
    background: Background | None
    selected: frozenset[int] | None = None
    """The classes that are kept; pixels of others have no class. None: all."""

    def result(self, labels: np.ndarray, source: str, image: np.ndarray) -> Segmentation:
        """Of labels [H, W] and the image [H, W, C] that they are of."""
        height, width = labels.shape
        left_out = None
        if self.selected is not None:
            kind = np.dtype(np.uint8 if len(self.names) < 256 else np.uint16)
            left_out = int(np.iinfo(kind).max)
            labels = np.where(np.isin(labels, list(self.selected)), labels, left_out).astype(kind)
        look = (self.names, self.palette, self.opacity, self.background)
        displayed = _displayable(image)
        return Segmentation(
            labels, *look, left_out, source=source, width=width, height=height, image=displayed
        )


_BLOCK, _MARGIN = 2048, 256  # pixels: of what is labelled at a time of a huge image
R = TypeVar("R")


class _Predictor(VisionPredictor[Segmentation], Generic[R]):
    """What both predictors share."""

    extra_suffixes = Segmentation.extra_suffixes
    runner: ImageRunner[R]

    def read(self, source: ImageSource) -> ImageItem:
        """An image as RGB, or with the model's channels as they are stored, where it has others.

        Raises:
            InputError: it cannot be read, or has other channels or another dtype than the model.
        """
        spec = self.runner.engine.inputs["image"]
        if spec.shape[3] == 3 and spec.dtype in (np.uint8, np.float32):
            return super().read(source)
        label = str(source) if isinstance(source, (str, os.PathLike)) else ""
        if isinstance(source, np.ndarray):
            image = source
        else:
            is_given = isinstance(source, (str, os.PathLike, bytes))
            image = raw_images.read_channels(source if is_given else source.read())
        image = image[..., None] if image.ndim == 2 else image
        if image.ndim != 3 or image.shape[2] != spec.shape[3] or not np.can_cast(image.dtype, spec.dtype):
            raise InputError(
                "the image does not fit the model",
                where=label or None,
                received=f"{list(image.shape)} {image.dtype}",
                allowed=f"[H, W, {spec.shape[3]}] {spec.dtype}",
            )
        return ImageItem(image.astype(spec.dtype, copy=False), label)


class Segmenter(_Predictor[Segmentation]):
    """Finds the class of every pixel; made by `predictor`. Safe to call from several threads.

    A call takes a path, bytes, a file, an array or a PIL image and gives a Segmentation, of a list of them a list.

    Args:
        runner: Of one image.
    """

    def __init__(self, runner: ImageRunner[Segmentation]) -> None:
        self.runner = runner

    def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[Segmentation]:
        return self.runner.predict(items)


class WindowSegmenter(_Predictor[np.ndarray]):
    """As Segmenter, of a model that sees windows of an image, whose scores are put together.

    Args:
        runner: Of one window: its scores.
        inference: Scales, mirror images and windows.
        transforms: Of an image before it is cut into windows.
    """

    def __init__(
        self,
        runner: ImageRunner[np.ndarray],
        inference: TestTimeAugmentation,
        transforms: Sequence[Transform[Sample]],
        appearance: Appearance,
    ) -> None:
        self.runner, self.inference, self.transforms = runner, inference, tuple(transforms)
        self.appearance = appearance

    def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[Segmentation]:
        dtype = self.runner.engine.inputs["image"].dtype
        for item in items:
            if item.windows is None:
                labels = self._label(item.image, item.source, dtype)
            else:
                labels = self._label_blocks(item.windows, item.source, dtype)
            yield self.appearance.result(labels, item.source, item.image)

    def _label(self, image: np.ndarray, source: str, dtype: np.dtype) -> np.ndarray:
        """The classes [H, W] of an image [H, W, C]."""
        sample = apply_transforms(Sample(image, source_size=image.shape[:2], id=source), self.transforms)
        scores = self.inference.on_host(self._predict_windows, sample.image.astype(dtype, copy=False))
        return labels_at_source(scores, sample)

    def _label_blocks(self, image: WindowedImage, source: str, dtype: np.dtype) -> np.ndarray:
        """The classes of an image that is read by windows: of one block after the other, each with a margin of a
        window of the model, which is cut off again."""
        height, width, _ = image.shape
        slide = self.inference.slide
        margin = _MARGIN if slide is None else max(slide.crop_hw)
        block = max(_BLOCK, 2 * margin)
        labels: np.ndarray | None = None
        for y in range(0, height, block):
            for x in range(0, width, block):
                top, left = max(0, y - margin), max(0, x - margin)
                below, right = min(height, y + block), min(width, x + block)
                pixels = image[top : below + margin, left : right + margin]
                classes = self._label(pixels, source, dtype)
                if labels is None:
                    labels = np.zeros((height, width), classes.dtype)
                labels[y:below, x:right] = classes[y - top : below - top, x - left : right - left]
        assert labels is not None
        return labels

    def _predict_windows(self, windows: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        return self.runner.predict(ImageItem(np.ascontiguousarray(window)) for window in windows)


def _displayable(image: np.ndarray) -> np.ndarray:
    """The image as drawings show it: its first three channels or its first one, [H, W, 3] uint8."""
    if image.shape[2] != 3:
        image = image[..., :3] if image.shape[2] > 3 else image[..., :1].repeat(3, axis=2)
    if image.dtype != np.uint8:
        low, high = float(image.min()), float(image.max())
        image = ((image.astype(np.float32) - low) * (255 / max(high - low, 1e-12))).astype(np.uint8)
    return np.ascontiguousarray(image)
