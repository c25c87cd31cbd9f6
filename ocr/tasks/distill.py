"""What a detector or a recogniser learns from another one while it is trained: two students, or a teacher's artifact.

    task: {type: TextRecognition, distill: {type: LineTeacher, model: pp_ocrv6_medium}}
    task: {type: TextRecognition, distill: {type: MutualLines}}, model: {type: Distillation, student: {…}}

A teacher is an artifact, so it needs no model code: its program runs in the training step on the batch, its weights are
constants of the step. They are in no checkpoint, and no gradient reaches them.

Source: PP-OCRv2, https://arxiv.org/abs/2109.03144, sections 2.1 and 2.2; PaddleOCR ppocr/losses/distillation_loss.py
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.errors import ConfigError, ShapeError
from framework.engine.task import Batch
from ocr.losses.text import balanced_cross_entropy, binary_divergence, dice_loss
from ocr.tasks.contracts import ModelPair
from ocr.text.characters import CharacterSet

if TYPE_CHECKING:
    from framework.export import Artifact
    from framework.nn.layer import Layer
    from ocr.layers.db_head import DBMaps


@dataclass(frozen=True)
class Teacher:
    """Base of the teachers.

    Attributes:
        model: The folder of an artifact, the name of a configuration, or a configuration file such as a run's. Of a
            pipeline, its stage counts.
        weight: Share of the loss.
    """

    stage: ClassVar[str]

    model: str
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.weight < 0:
            raise ConfigError(
                "a share of the loss is negative",
                where="task.distill.weight",
                received=self.weight,
                allowed="0 or more",
            )

    @cached_property
    def artifact(self) -> Artifact:
        """The teacher.

        Raises:
            InputError: there is no such model. ConfigError: it has no program for this task.
        """
        from framework.workflow.open.artifacts import find_artifact  # what runs artifacts loads no workflow

        found = find_artifact(self.model, domain="ocr").artifact
        found = found.stages.get(self.stage, found)
        if "float32" not in found.programs or found.config.get("kind", self.stage) != self.stage:
            raise ConfigError(
                f"this model is no {self.stage}",
                where="task.distill.model",
                received=f"{self.model}: {found.config.get('kind') or ', '.join(found.stages) or 'no program'}",
                allowed=f"an artifact, a configuration or a pipeline with a {self.stage}",
            )
        return found

    def outputs(self, batch: Batch) -> dict[str, jax.Array]:
        """What the teacher gives for the images of a batch; without gradient."""
        artifact = self.artifact
        program = artifact.programs["float32"]
        names = artifact.input_names(("image", "size" if self.stage == "detector" else "width"))
        found = program.call(artifact.weights, {name: batch[name] for name in names})
        return jax.lax.stop_gradient(found)


@dataclass(frozen=True)
class LineTeacher(Teacher):
    """A recogniser teaches the symbol that it sees in each column, and how sure it is.

    An artifact gives the best class of a column and its probability p, so the student with probability q of that class
    has the loss p log(p / q) + (1 - p) log((1 - p) / (1 - q)), summed over the columns of a line, the mean over lines.
    Symbols are matched by their characters. Columns with one that the student does not know do not count, nor do lines
    whose text has one that the teacher does not know: a student with new characters so keeps what it knew.

    Source: the first part of decoupled distillation, Zhao et al. 2022, https://arxiv.org/abs/2203.08679, equation 3,
    with the teacher's class in place of the label's.
    """

    stage: ClassVar[str] = "recognizer"

    type: Literal["LineTeacher"] = "LineTeacher"

    def loss(self, logits: jax.Array, batch: Batch, alphabet: CharacterSet) -> jax.Array:
        """logits [N, T, C] of the student -> [].

        Raises:
            ShapeError: the teacher divides a line into another number of columns.
        """
        found = self.outputs(batch)
        indices, sure = found["indices"], found["probabilities"]
        if indices.shape != logits.shape[:2]:
            raise ShapeError(
                "teacher and student divide a line into other numbers of columns",
                where="task.distill",
                received=f"{indices.shape[1]} and {logits.shape[1]} of an image {batch['image'].shape[2]} wide",
                allowed="the same number",
                fix="take a teacher whose backbone has the same stride along the line",
            )
        table = self._table(alphabet)
        own = jnp.asarray(table)[indices]
        known = np.isin(np.arange(alphabet.num_classes), table)
        readable = jnp.asarray(known)[batch["target"]].all(axis=1, keepdims=True)
        scores = jax.nn.log_softmax(logits.astype(jnp.float32), axis=-1)
        taken = jnp.take_along_axis(scores, jnp.maximum(own, 0)[..., None], axis=-1)[..., 0]
        counts = (own >= 0) & readable & valid_steps(batch, logits.shape[1])
        losses = binary_divergence(sure, jnp.exp(taken))
        return self.weight * jnp.where(counts, losses, 0.0).sum() / logits.shape[0]

    def _table(self, alphabet: CharacterSet) -> np.ndarray:
        """For each class of the teacher the student's, or -1; class 0 is the blank of both."""
        theirs = self.artifact.setting("characters", tuple[str, ...])
        space = self.artifact.setting("space", bool)
        reversed_ = self.artifact.setting("right_to_left", bool)
        teacher = CharacterSet.from_symbols(
            theirs, use_space_char=space, right_to_left=reversed_, source=self.artifact.source
        )
        own = {symbol: number for number, symbol in enumerate(alphabet.symbols)}
        table = [own.get(symbol, -1) for symbol in teacher.symbols]
        return np.array([0, *table[1:]], np.int32)


def valid_steps(batch: Batch, steps: int) -> jax.Array:
    """[N, T] bool: which columns of a recogniser's output begin inside of the line."""
    starts = jnp.arange(steps)[None, :] * batch["image"].shape[2]
    return starts < batch["width"][:, None] * steps


@dataclass(frozen=True)
class MapTeacher(Teacher):
    """A detector teaches its probability map, where the label's regions can be read.

    Attributes:
        target: "soft": the divergence of the probabilities of each pixel, the mean over pixels. "dilated", as PP-OCRv2:
            where the teacher is above `threshold`, dilated by 2 x 2 pixels, is text, for the balanced cross-entropy of
            the probability map, and for the dice loss of the binary map where the student has one.
        alpha: Share of the probability map's loss beside that of the binary map, of "dilated".
    """

    stage: ClassVar[str] = "detector"

    type: Literal["MapTeacher"] = "MapTeacher"
    target: Literal["soft", "dilated"] = "soft"
    threshold: float = 0.3
    alpha: float = 5.0

    def loss(self, maps: DBMaps, batch: Batch) -> jax.Array:
        """DBMaps of the student -> []."""
        size = jnp.broadcast_to(jnp.array(batch["image"].shape[1:3], jnp.int32), (batch["image"].shape[0], 2))
        taught = self.outputs({"image": batch["image"], "size": batch.get("size", size)})["probability"]
        mask = batch["shrink_mask"]
        if self.target == "soft":
            losses = binary_divergence(taught, maps.probability)
            return self.weight * (losses * mask).sum() / jnp.maximum(mask.sum(), 1.0)
        text = dilate(taught > self.threshold).astype(jnp.float32)
        loss = self.alpha * balanced_cross_entropy(maps.probability, text, mask)
        if maps.binary is not None:
            loss = loss + dice_loss(maps.binary, text, mask)
        return self.weight * loss


def dilate(mask: jax.Array) -> jax.Array:
    """bool [N, H, W] grown by a pixel to the right and down, as OpenCV's dilation by 2 x 2 ones."""
    down = mask | jnp.pad(mask, ((0, 0), (1, 0), (0, 0)))[:, :-1]
    return down | jnp.pad(down, ((0, 0), (0, 0), (1, 0)))[:, :, :-1]


def valid_pair(model: object) -> tuple[Layer, Layer]:
    """Both models of a `Distillation`. Raises: ConfigError, where the model is another one."""
    if not isinstance(model, ModelPair):
        raise ConfigError(
            "learning from each other takes two models",
            where="task.distill",
            received=f"model {type(model).__name__}",
            allowed="model: {type: Distillation, student: {…}}",
        )
    return model.pair


@dataclass(frozen=True)
class MutualLines:
    """Two recognisers, both trained, learn from each other; needs `model: {type: Distillation}`.

    Attributes:
        weight: Share of the divergence of their CTC probabilities.
        feature_weight: Share of the mean squared distance of their backbones' rows; 0 where these differ in width.
    """

    type: Literal["MutualLines"] = "MutualLines"
    weight: float = 1.0
    feature_weight: float = 1.0


@dataclass(frozen=True)
class MutualMaps:
    """Two detectors, both trained, learn from each other's maps; needs `model: {type: Distillation}`.

    Attributes:
        weight: Share of the divergence of their probability maps.
    """

    type: Literal["MutualMaps"] = "MutualMaps"
    weight: float = 1.0
