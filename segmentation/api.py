"""`predictor(...)`: the short way in to segmentation of images and videos.

from segmentation import predictor

segment = predictor("pp_liteseg_stdc1_membrane")
mask = segment("slice.png")
mask.save("output")
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from framework.config import bind
from framework.core.errors import ConfigError, InputError, OarError
from framework.engine.experiment import Experiment
from framework.export import Artifact
from framework.inference.cache import ROOT
from framework.inference.image_predictor import ImagePredictor
from framework.inference.prepared import prepared
from framework.vision import raw_images
from framework.vision.sample import Sample
from framework.vision.transforms.pad import Pad, PadToMultiple, PadToSize
from segmentation import palettes
from segmentation.background import Background, read_background
from segmentation.restore import labels_at_source, resize_to_source
from segmentation.results import OPACITY, Segmentation
from segmentation.test_time_augmentation import TestTimeAugmentation
from zoo.api import find_artifact, image_predictor

CONFIGS = ROOT / "configs" / "segmentation"
PACKAGES = ("segmentation", "zoo", "framework")
_ONLY_FILL = (Pad, PadToMultiple, PadToSize)


class Segmenter:
    """Finds the class of every pixel; made by `predictor`. Safe to call from several threads.

    A call takes a path, bytes, a file, an array or a PIL image and gives a Segmentation, of a list of them a list.

    Args:
        model: Of one image, or of one window of it where `inference` has a slide: then it gives {"scores"}.
        transforms: Of an image before it is cut into windows.
        look: What every result is made with: names, palette, opacity, background.
    """

    further = "_label"

    def __init__(
        self,
        model: ImagePredictor[Any],
        inference: TestTimeAugmentation,
        transforms: Sequence[Any],
        look: Segmentation,
    ) -> None:
        self.model, self.inference, self.transforms, self.look = model, inference, tuple(transforms), look

    def __call__(self, source: Any) -> Any:
        if isinstance(source, (list, tuple)):
            return list(self.results(self.read(item) for item in source))
        return next(self.results(iter([self.read(source)])))

    def read(self, source: Any) -> tuple[np.ndarray, str]:
        """(image, its path if it has one): RGB, or with the model's channels as they are stored, where it has others.

        Raises:
            InputError: it cannot be read, or has other channels or another dtype than the model.
        """
        wanted = self.model.engine.inputs["image"]
        if wanted.shape[3] == 3 and wanted.dtype in (np.uint8, np.float32):
            return self.model.read(source)
        label = str(source) if isinstance(source, (str, os.PathLike)) else ""
        image = source if isinstance(source, np.ndarray) else raw_images.read_channels(source)
        image = image[..., None] if image.ndim == 2 else image
        if image.ndim != 3 or image.shape[2] != wanted.shape[3] or not np.can_cast(image.dtype, wanted.dtype):
            raise InputError(
                "this is no image for the model",
                where=label or None,
                received=f"{list(image.shape)} {image.dtype}",
                allowed=f"[H, W, {wanted.shape[3]}] {wanted.dtype}",
            )
        return image.astype(wanted.dtype, copy=False), label

    def results(self, images: Iterable[tuple[np.ndarray, str]]) -> Iterator[Segmentation]:
        """One result for each (image [H, W, 3] uint8 RGB, source), in order. Memory does not grow with their number."""
        if self.inference.slide is None:
            yield from self.model.results(images)
            return
        for image, source in images:
            sample = prepared(Sample(image, source_size=image.shape[:2], id=source), self.transforms)
            dtype = self.model.engine.inputs["image"].dtype
            scores = self.inference.on_host(self._windows, sample.image.astype(dtype, copy=False))
            yield self._result(labels_at_source(scores, sample), source, image)

    def pages(self, items: Iterable[tuple[np.ndarray, str, int]]) -> Iterator[Segmentation]:
        """`results` of (image, source, number)."""
        return self.results((image, source) for image, source, _ in items)

    def _windows(self, windows: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        return self.model.results((np.ascontiguousarray(window), "") for window in windows)

    def _result(self, labels: np.ndarray, source: str, image: np.ndarray) -> Segmentation:
        return replace(self.look, source=source, size=labels.shape, labels=labels, image=_shown(image))


def _shown(image: np.ndarray) -> np.ndarray:
    """The image as drawings show it: its first three channels or its first one, [H, W, 3] uint8."""
    if image.shape[2] != 3:
        image = image[..., :3] if image.shape[2] > 3 else image[..., :1].repeat(3, axis=2)
    if image.dtype != np.uint8:
        low, high = float(image.min()), float(image.max())
        image = ((image.astype(np.float32) - low) * (255 / max(high - low, 1e-12))).astype(np.uint8)
    return np.ascontiguousarray(image)


def predictor(
    model: str | os.PathLike[str],
    *,
    device: str | None = None,
    precision: str = "auto",
    opacity: float = OPACITY,
    background: Background | str | None = None,
    batch_size: int | None = None,
    overrides: Sequence[str] = (),
) -> Segmenter:
    """An object that finds the class of every pixel: `segment("a.jpg").labels`.

    Args:
        model: The name of a config in configs/segmentation, a config file, or an artifact folder.
        device: "cpu", "gpu", "gpu:1", …; None is jax's default.
        precision: "float32", "bfloat16" or "auto".
        opacity: Of the classes' colours on drawings.
        background: Drawings show the foreground on it: a Background, or its name as `read_background` takes it.
        batch_size: Images, or windows of them, that run together.
        overrides: Settings of the config, as `-o` of the tools.

    Raises:
        InputError: no such model, or the opacity is out of range. HubError: weights are neither here nor reachable.
    """
    if not 0 <= opacity <= 1:
        raise InputError("an opacity cannot be that", where="opacity", received=opacity, allowed="0 to 1")
    if isinstance(background, str):
        background = read_background(background)
    artifact = find_artifact(
        model, CONFIGS, tuple(overrides), "does not segment images", export_artifact, "inference"
    )
    inference = bind(artifact.config["inference"], TestTimeAugmentation, PACKAGES)
    none = np.zeros((0, 0), np.uint8)
    look = Segmentation(
        "",
        (0, 0),
        none,
        tuple(artifact.config["labels"]),
        np.array(artifact.config["palette"], np.uint8).reshape(-1, 3),
        none,
        opacity,
        background,
    )

    def segmented(outputs: dict[str, np.ndarray], sample: Sample, image: np.ndarray) -> Segmentation:
        labels = resize_to_source(outputs, sample)
        return segmenter._result(labels, str(sample.id), image)

    def scored(outputs: dict[str, np.ndarray], sample: Sample, image: np.ndarray) -> np.ndarray:
        return outputs["scores"]

    runs: ImagePredictor[Any] = image_predictor(
        artifact,
        segmented if inference.slide is None else scored,
        device,
        precision,
        batch_size=batch_size,
        packages=PACKAGES,
    )
    transforms = runs.transforms
    if inference.slide is not None:
        runs.transforms = ()
    segmenter = Segmenter(runs, inference, transforms, look)
    return segmenter


def open_predictor(
    config: str | None,
    model_dir: str | None,
    device: str | None,
    precision: str,
    overrides: tuple[str, ...],
    *,
    opacity: float | None = None,
    background: str | None = None,
    batch_size: int | None = None,
) -> Segmenter:
    """What tools/infer.py runs; the keywords are its options of the same names."""
    return predictor(
        model_dir if model_dir is not None else str(config),
        device=device,
        precision=precision,
        opacity=OPACITY if opacity is None else opacity,
        background=background,
        batch_size=batch_size,
        overrides=overrides,
    )


def export_artifact(
    config: str, overrides: tuple[str, ...], *, input_shape: tuple[int, ...] | None = None
) -> Artifact:
    """What tools/export_model.py writes: see `exported` for what the program is. Colours of the classes go with it."""
    from framework.config import load
    from framework.engine.experiment import bind_experiment
    from zoo.export import export_experiment, plain

    artifact = export_experiment(Path(config), overrides, input_shape, exported)
    experiment = bind_experiment(load(config, overrides))
    assert experiment.task is not None
    artifact.config["inference"] = plain(experiment.task.inference)
    classes = max(len(artifact.config["labels"]), getattr(experiment.model, "num_classes", 0))
    artifact.config["palette"] = _palette(experiment, classes).tolist()
    return artifact


def _palette(experiment: Experiment, classes: int) -> np.ndarray:
    """The colours of the data set where it has one for each class, else VOC's."""
    data = experiment.data
    for dataset in (feed.dataset for feed in (data.eval, data.train) if feed is not None):
        with contextlib.suppress(OarError):  # the data need not be on the machine that exports
            colours = getattr(dataset, "palette", None)
            if colours is not None and len(colours) >= classes:
                return np.asarray(colours, np.uint8)
    return palettes.of_classes(classes)


def exported(experiment: Experiment) -> Experiment:
    """The experiment as its program is made, which follows from the transforms and the inference options.

    * With a slide the program gives the scores of windows: images of any size run through one compiled program.
    * Where the transforms fill images up and do nothing else, the program gives labels, which are cut to size.
    * Where they also scale or cut, it gives scores, which are brought back to the image before a class is chosen.

    Raises:
        ConfigError: the program's input is no image.
    """
    task, spec = experiment.task, experiment.export.inputs.get("image")
    assert task is not None
    if spec is None or len(spec.shape) != 4:
        raise ConfigError(
            "the program of a segmentation model takes images",
            where="export.inputs",
            received={name: list(one.shape) for name, one in experiment.export.inputs.items()},
            allowed="such as {image: {shape: [n, 32*h, 32*w, 3], dtype: uint8}}",
        )
    inference: TestTimeAugmentation = task.inference
    if inference.slide is not None:
        scaled = inference.scales != (1.0,)  # pixels of a scaled image are no whole numbers
        window = ("n", *inference.slide.crop_hw, spec.shape[3])
        inputs = {"image": replace(spec, shape=window, dtype="float32" if scaled else spec.dtype)}
        experiment = replace(experiment, export=replace(experiment.export, inputs=inputs))
        return replace(experiment, task=replace(task, inference=TestTimeAugmentation(output="scores")))
    transforms = experiment.predict.transforms or ()
    kept = all(isinstance(transform, _ONLY_FILL) for transform in transforms)
    output = replace(inference, output="labels" if kept else "scores")
    return replace(experiment, task=replace(task, inference=output))
