"""What every detector takes and gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax

from detection.layers.backbone import BackboneModel
from framework.core.model_config import ConfigT
from framework.engine.task import Losses, Metric
from zoo.contracts import Contract


@dataclass(frozen=True)
class DetectorContract(Contract):
    """What differs in a detector or pose model from the usual one.

    Attributes:
        row: A row of VARIANTS of the same structure that is quick to compile, where no field of the config makes one.
        published_hw: The sides of the images that its weights are published for, where `example_shape` has others.
        gain: Factor of the kernels of the tests' weights, so that the image is still seen in the outputs.
        selects: The best places of the image become queries, so rounding swaps rows: they are compared sorted.
        people: M of the targets of a pose model.
    """

    row: Any = None
    published_hw: tuple[int, int] | None = None
    gain: float | None = None
    selects: bool | None = None
    people: int | None = None


class Targets(NamedTuple):
    """Ground truth of a batch, padded to M objects. Boxes are xyxy in pixels of the network's input."""

    boxes: jax.Array
    """[N, M, 4] float32"""
    labels: jax.Array
    """[N, M] int32"""
    valid: jax.Array
    """[N, M] bool: False is padding, or an object to ignore"""
    step: jax.Array
    """[] int32: training steps done"""


class Detections(NamedTuple):
    """The K best boxes of each image, best first; a score of 0 marks padding."""

    boxes: jax.Array
    """[N, K, 4] float32 xyxy in pixels of the network's input"""
    scores: jax.Array
    """[N, K] float32 in [0, 1]"""
    labels: jax.Array
    """[N, K] int32"""


class Detector(BackboneModel[ConfigT]):
    """For normalised images [N, H, W, 3] float32. `loss` and `detect` are pure and of fixed shapes."""

    def loss(self, images: jax.Array, targets: Targets) -> Losses:
        raise NotImplementedError

    def detect(self, images: jax.Array) -> Detections:
        raise NotImplementedError


class PoseTargets(NamedTuple):
    """People of a batch, padded to M (1 where the image is one person's crop), with J keypoints each."""

    keypoints: jax.Array
    """[N, M, J, 3] float32: x and y in pixels of the network's input, and visibility: 0 unlabelled, 1 hidden, 2 seen"""
    boxes: jax.Array
    """[N, M, 4] float32 xyxy in pixels of the network's input"""
    valid: jax.Array
    """[N, M] bool: False is padding"""
    ignore: jax.Array | None = None
    """[N, H, W] bool: crowds and people without keypoints; no loss is taken there"""


class Poses(NamedTuple):
    """The K best people of each image, best first; a score of 0 marks padding."""

    keypoints: jax.Array
    """[N, K, J, 3] float32: x and y in pixels of the network's input, and the keypoint's score"""
    scores: jax.Array
    """[N, K] float32 in [0, 1]"""


class PoseEstimator(BackboneModel[ConfigT]):
    """For normalised images [N, H, W, 3] float32. `loss` and `detect` are pure and of fixed shapes."""

    def loss(self, images: jax.Array, targets: PoseTargets) -> Losses:
        raise NotImplementedError

    def detect(self, images: jax.Array) -> Poses:
        raise NotImplementedError


class MetricConfig(Protocol):
    """A registered metric: a frozen dataclass that starts the Metric of an evaluation."""

    def start(self, class_names: Sequence[str]) -> Metric: ...
