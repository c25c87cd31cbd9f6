"""Text detection, recognition and orientation: what is trained, scored and exported of the three models."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from framework.config import plain, register
from framework.core.errors import ConfigError, InputError
from framework.core.model_config import ConfigT, setting_of
from framework.core.transform import Transform
from framework.core.types import JSON
from framework.engine.task import Batch, Losses, Metric, Task
from framework.nn import functional as F
from framework.nn.layer import Layer
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from ocr.data.protocols import HasLineWidths, HasSizes, HasTexts
from ocr.losses.center import CenterLoss
from ocr.losses.text import (
    balanced_cross_entropy,
    ctc_line_losses,
    dice_loss,
    focal_loss,
    map_divergence,
    masked_l1,
    mutual_divergence,
    smoothed_cross_entropy,
)
from ocr.tasks.alphabet import Alphabet, guide_tokens
from ocr.tasks.contracts import LearnsSymbols, ReadsColumns
from ocr.tasks.distill import LineTeacher, MapTeacher, MutualLines, MutualMaps, valid_pair
from ocr.tasks.text_survey import describe_texts, survey_texts
from ocr.text.dictionary import Dictionary
from ocr.text.postprocess import DBPostprocess
from ocr.text.stages import DetectOptions, OrientationOptions, RecognizeOptions

if TYPE_CHECKING:  # what runs artifacts loads no layers
    from ocr.layers.db_head import DBMaps
    from ocr.models.text_recognizer import GuidedLogits, LineOutputs


@register("task")
@dataclass(frozen=True)
class TextDetection(Task[Sample, Layer]):
    """Where text is. Inputs: "image" [N, H, W, 3] uint8 RGB and "size" [N, 2] int32, the rows and columns of each that
    are no padding.

    Trained by differentiable binarization on images of one size whose sides are multiples of 32. The deploy form of a
    model has no threshold map; of that the probability map alone is trained.

    Attributes:
        shrink_ratio: The probability map is of regions shrunk by area * (1 - ratio²) / perimeter.
        least_side: Regions less high or wide, in pixels, do not count in training.
        main_loss: Of the probability map: "dice"; "bce", cross-entropy with hard negatives; or "dice_focal", the sum of
            dice and focal loss, for the binary map too, as PP-OCRv6 was trained.
        alpha, beta: Shares of the losses of the probability map and of the threshold map; that of the binary map is 1.
        negative_ratio: Of "bce": at most so many times as many pixels without text count as with.
        focal_alpha, focal_gamma: Of "dice_focal": the share of text, and how little easy pixels count.
        auxiliary_weights: Shares of the losses of the heads on levels p4, p3 and p2, of models that have them.
        postprocess: From probability map to quads, in evaluation.
        distill: What the model learns from another one besides, see ocr/tasks/distill.py.
    """

    normalize: Normalize
    shrink_ratio: float = 0.4
    least_side: float = 8.0
    main_loss: Literal["dice", "bce", "dice_focal"] = "dice"
    alpha: float = 5.0
    beta: float = 10.0
    negative_ratio: float = 3.0
    focal_alpha: float = 0.25
    focal_gamma: float = 2.5
    auxiliary_weights: tuple[float, float, float] = (0.2, 0.3, 0.4)
    postprocess: DBPostprocess = field(default_factory=DBPostprocess)
    distill: MapTeacher | MutualMaps | None = None

    def __post_init__(self) -> None:
        if not 0 < self.shrink_ratio < 1 or min(self.alpha, self.beta, self.negative_ratio) < 0:
            raise ConfigError(
                "this is no text detection",
                where="task",
                received=f"shrink_ratio {self.shrink_ratio}, alpha {self.alpha}, beta {self.beta}, negative_ratio "
                f"{self.negative_ratio}",
                allowed="shrink_ratio between 0 and 1, the others from 0",
            )

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        from ocr.data.targets import make_db_targets  # what runs artifacts loads no training data

        packed = self.pack_evaluated(sample)
        assert sample.polygons is not None and sample.valid is not None
        targets = make_db_targets(
            sample.polygons,
            sample.valid.tolist(),
            sample.size_hw,
            shrink_ratio=self.shrink_ratio,
            least_side=self.least_side,
        )
        return {**packed, **targets._asdict()}

    def pack_evaluated(self, sample: Sample) -> dict[str, np.ndarray]:
        from ocr.text.scores import describe_page

        if sample.polygons is None or sample.valid is None:
            raise InputError(
                "a sample has no regions of text",
                where=sample.id,
                allowed="polygons and valid, as of TextPages",
            )
        polygons, source_hw, size = sample.polygons, sample.size_hw, sample.size_hw
        if sample.warp is not None:
            source_hw = sample.warp.source_hw
            size = _visible_size(sample)
            back = sample.warp.inverse()
            polygons = tuple(back.points(points) for points in polygons)
        page = describe_page(polygons, sample.valid.tolist(), source_hw)
        return {
            "image": sample.image,
            "size": np.array(size, np.int32),
            "truth": np.array(json.dumps(page)),
        }

    def loss(self, model: Layer, batch: Batch) -> Losses:
        image = self.normalize(batch["image"])
        if not isinstance(self.distill, MutualMaps):
            maps = model(image)
            found = self._weighted(maps, batch)
            if self.distill is None:
                return found
            taught = self.distill.loss(maps, batch)
            return Losses(found.total + taught, {**found.parts, "teacher": taught})
        first, second = (one(image) for one in valid_pair(model))
        one, other = self._weighted(first, batch), self._weighted(second, batch)
        mutual = map_divergence(first.probability, second.probability, batch["shrink_mask"])
        mutual = self.distill.weight * mutual
        parts = {**one.parts, "second": other.total, "mutual": mutual}
        return Losses(one.total + other.total + mutual, parts)

    def _weighted(self, maps: DBMaps, batch: Batch) -> Losses:
        """The loss by the labels alone."""
        parts = self._map_losses(maps, batch)
        total = sum(parts.values(), jnp.float32(0))
        for one, weight in zip(maps.auxiliary, self.auxiliary_weights):
            total = total + weight * sum(self._map_losses(one, batch).values(), jnp.float32(0))
        return Losses(jnp.asarray(total), parts)

    def _map_losses(self, maps: DBMaps, batch: Batch) -> dict[str, jax.Array]:
        shrink, mask = batch["shrink"], batch["shrink_mask"]
        parts = {"shrink": self.alpha * self._text_loss(maps.probability, shrink, mask)}
        if maps.threshold is None:
            return parts
        assert maps.binary is not None  # as the threshold map is there
        border = masked_l1(maps.threshold, batch["threshold"], batch["threshold_mask"])
        binary = dice_loss(maps.binary, shrink, mask)
        if self.main_loss == "dice_focal":
            binary = self._text_loss(maps.binary, shrink, mask)
        return {**parts, "threshold": self.beta * border, "binary": binary}

    def _text_loss(self, prediction: jax.Array, shrink: jax.Array, mask: jax.Array) -> jax.Array:
        if self.main_loss == "bce":
            return balanced_cross_entropy(prediction, shrink, mask, self.negative_ratio)
        loss = dice_loss(prediction, shrink, mask)
        if self.main_loss == "dice_focal":
            loss = loss + focal_loss(prediction, shrink, mask, self.focal_alpha, self.focal_gamma)
        return loss

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "probability": {
                "meaning": "of each pixel of the input image to be of a text line",
                "range": [0, 1],
            }
        }

    def infer(self, model: Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"probability": [N, H, W] float32}"""
        image, size = inputs["image"], inputs["size"]
        rows = jnp.arange(image.shape[1])[None, :, None] < size[:, 0, None, None]
        columns = jnp.arange(image.shape[2])[None, None, :] < size[:, 1, None, None]
        valid = (rows & columns)[..., None]
        return {"probability": model(_normalize_valid(image, self.normalize, valid)).probability}

    def describe_stage(self, buckets: tuple[int, ...] | None) -> dict[str, JSON]:
        """What an artifact's config holds, so that it runs as the stage of a reader."""
        options = DetectOptions(self.normalize, postprocess=self.postprocess)
        return {"kind": "detector", "options": plain(options)}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        from ocr.text.scores import DetectionScores

        return {"text": DetectionScores(self.postprocess)}


@register("task")
@dataclass(frozen=True)
class TextRecognition(Task[Sample, Layer]):
    """What lines say. Inputs: "image" [N, H, W, 3] uint8 RGB and "width" [N] int32, the columns that are no padding.

    Any model will do that gives CTC logits [N, T, num_classes] of normalised images, class 0 being the blank, or that
    has a loss of its own (`LearnsSymbols`).

    Attributes:
        characters: The dictionary; needed for training and evaluation. A model with `num_classes: null` gets a class
            for each symbol.
        height: Of the images, in pixels.
        width_scale: Of the data's ResizeLine, for the reader that runs the model.
        width: Of the images, in pixels, where they have one size: the reader brings lines to it as well. None: any.
        stretch: Lines are stretched to `width`, whatever their proportions, and not padded to it.
        max_text_length: Longer texts are left out of training, and reported.
        lower_case: Texts are put into lower case, for dictionaries without capitals; in scores, too.
        unknown: What is done with a text that has a character outside of the dictionary: "error" before training
            begins, "skip" leaves it out of training (it counts in evaluation), "drop" leaves out the characters, as
            PaddleOCR does. The log says how many there are, and where the first ones stand.
        guide_weight: Share of the loss of the guiding decoder, of models with `guided: true`.
        label_smoothing: Of that decoder.
        pretrained_characters: The dictionary of the weights of `pretrained`, where it is another one: the head's rows
            of the symbols that both have are copied, the others begin as the mean of all.
        keep_known: The rows of the CTC head of symbols that `pretrained_characters` has get no gradients. With all
            below them frozen and an optimiser without weight decay they, and so the scores of these symbols, stay as
            they are; new symbols alone are learned.
        center: The centre loss on the features of the CTC head, besides.
        distill: What the model learns from another one besides, see ocr/tasks/distill.py.
    """

    padding: ClassVar[Mapping[str, int] | None] = {"image": 0}
    padding_axes: ClassVar[Mapping[str, int]] = {"image": 1}

    normalize: Normalize
    characters: Dictionary | None = None
    height: int = 48
    width_scale: float = 1.0
    width: int | None = None
    stretch: bool = False
    max_text_length: int = 25
    lower_case: bool = False
    unknown: Literal["error", "skip", "drop"] = "error"
    guide_weight: float = 1.0
    label_smoothing: float = 0.1
    pretrained_characters: Dictionary | None = None
    keep_known: bool = False
    center: CenterLoss | None = None
    distill: LineTeacher | MutualLines | None = None

    def __post_init__(self) -> None:
        if self.keep_known and self.pretrained_characters is None:
            raise ConfigError(
                "there are no known symbols to keep",
                where="task.keep_known",
                received="true, without pretrained_characters",
                allowed="true beside the dictionary of the pretrained weights",
                fix="-o task.pretrained_characters={weights: pp_ocrv6_small_rec}",
            )
        if self.stretch and self.width is None:
            raise ConfigError(
                "there is no width to stretch lines to",
                where="task.stretch",
                received="true, without width",
                allowed="true beside the width of the model's images",
                fix="-o task.width=256",
            )

    @cached_property
    def alphabet(self) -> Alphabet:
        """The symbols that are learned."""
        return Alphabet(
            self.characters, self.pretrained_characters, self.max_text_length, self.lower_case, self.unknown
        )

    # -- data -----------------------------------------------------------------------------------------------------

    def adapt(self, dataset: object) -> Self:
        """Surveys the texts of the training data, where they can be had without the images."""
        if isinstance(dataset, HasTexts):
            survey_texts(dataset.labels_of_lines(), self.alphabet)
        return self

    def misfits(self, dataset: object) -> list[str]:
        return (
            describe_texts(dataset.labels_of_lines(), self.alphabet) if isinstance(dataset, HasTexts) else []
        )

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        if not isinstance(sample.text, str):
            raise InputError(
                "a sample has no text", where=sample.id, allowed="one text, as of TextLineImages"
            )
        text = self.alphabet.written(sample.text)
        target, counts = self.alphabet.encode(text)
        # Columns that ResizeLine padded are none of the line: a reader makes them 0 after normalisation, too.
        width = sample.size_hw[1] if sample.warp is None else _visible_size(sample)[1]
        return {
            "image": sample.image,
            "width": np.array(width, np.int32),
            "target": np.pad(target, (0, self.max_text_length - len(target))),
            "target_length": np.array(len(target), np.int32),
            "counts": np.array(counts, np.float32),
            "text": np.array(text),
        }

    def length(self, sample: Sample) -> int:
        return sample.image.shape[1]

    def lengths(self, dataset: object, transforms: Sequence[Transform[Sample]]) -> list[int] | None:
        last = transforms[-1] if transforms else None
        if not isinstance(dataset, HasSizes) or not isinstance(last, HasLineWidths):
            return None
        return [last.line_width(dataset.size_hw(index)) for index in range(len(dataset))]

    # -- model ----------------------------------------------------------------------------------------------------

    def adapt_model(self, config: ConfigT) -> ConfigT:
        if self.characters is None or getattr(config, "num_classes", 0) is not None:
            return config
        return replace(config, num_classes=self.alphabet.characters.num_classes)

    def check(self, model: Layer, labels: tuple[str, ...]) -> None:
        classes = setting_of(model, "num_classes", int)
        if self.characters is not None and classes is not None:
            self.alphabet.characters.check_head(classes, "the model")
        length = setting_of(model, "max_text_length", int)
        if length not in (None, self.max_text_length):
            raise ConfigError(
                "model and task have texts of different lengths",
                where="task.max_text_length",
                received=f"{self.max_text_length}, the model {length}",
                allowed="the same",
                fix=f"-o task.max_text_length={length}",
            )
        for name in ("center", "distill", "keep_known") if isinstance(model, LearnsSymbols) else ():
            if getattr(self, name):
                raise ConfigError(
                    f"{name} is for recognisers with a CTC head",
                    where=f"task.{name}",
                    received=f"{plain(getattr(self, name))}, and a {type(model).__name__}",
                    allowed="none, or a model with such a head",
                )

    def pretrained_model(self, config: ConfigT) -> ConfigT:
        pretrained = self.alphabet.pretrained
        return config if pretrained is None else replace(config, num_classes=pretrained.num_classes)

    def adapt_pretrained(self, state: dict[str, np.ndarray], model: Layer) -> dict[str, np.ndarray]:
        return self.alphabet.begin_head(state, model)

    # -- loss and inference -----------------------------------------------------------------------------------------

    def loss(self, model: Layer, batch: Batch) -> Losses:
        image = _normalize_valid(batch["image"], self.normalize, _valid_columns(batch))
        if isinstance(model, LearnsSymbols):
            total = model.symbol_loss(image, batch["target"], batch["target_length"], batch["counts"])
            lengths = (batch["target_length"] + 1).astype(jnp.float32)  # with the end of each text
            symbols = (lengths * batch["counts"]).sum()
            return Losses(total, {"symbols": total}, symbols)
        if not isinstance(self.distill, MutualLines):
            found, out = self._loss_of(model, image, batch)
            if self.distill is None:
                return found
            taught = self.distill.loss(out.ctc, batch, self.alphabet.characters)
            return Losses(found.total + taught, {**found.parts, "teacher": taught}, found.weight)
        first, second = valid_pair(model)
        (one, one_out), (other, other_out) = (self._loss_of(m, image, batch) for m in (first, second))
        counts = jnp.broadcast_to(jnp.float32(1), one_out.ctc.shape[:2])
        total = self.distill.weight * mutual_divergence(one_out.ctc, other_out.ctc, counts)
        if self.distill.feature_weight:
            assert one_out.row is not None and other_out.row is not None
            apart = jnp.square(one_out.row.astype(jnp.float32) - other_out.row.astype(jnp.float32)).mean()
            total = total + self.distill.feature_weight * apart
        parts = {**one.parts, "second": other.total, "mutual": total}
        return Losses(one.total + other.total + total, parts, one.weight)

    def _loss_of(self, model: Layer, image: jax.Array, batch: Batch) -> tuple[Losses, _Outputs]:
        """The loss of one model by the labels alone, and what it was computed of."""
        target, length, counts = batch["target"], batch["target_length"], batch["counts"]
        tokens = None
        if setting_of(model, "guided", bool):
            tokens = guide_tokens(target, length)
        out = self._outputs(model, image, tokens)
        logits = out.ctc.astype(jnp.float32)
        if self.keep_known:
            logits = jnp.where(jnp.asarray(self.alphabet.is_new), logits, jax.lax.stop_gradient(logits))
        losses = ctc_line_losses(logits, target, length)
        total = (losses * counts).sum() / jnp.maximum(counts.sum(), 1.0)
        parts = {"ctc": total}
        if tokens is not None:
            assert out.gtc is not None
            weight = jnp.where(tokens[:, 1:] != 0, counts[:, None], 0.0)
            parts["guide"] = smoothed_cross_entropy(out.gtc, tokens[:, 1:], weight, self.label_smoothing)
            total = total + self.guide_weight * parts["guide"]
        if self.center is not None:
            assert out.features is not None
            parts["center"] = self.center.loss(model, out.features, out.ctc, counts)
            total = total + parts["center"]
        return Losses(total, parts, counts.sum()), out

    def _outputs(self, model: Layer, image: jax.Array, tokens: jax.Array | None) -> _Outputs:
        """What the loss needs of the model."""
        if self.center is not None or isinstance(self.distill, MutualLines):
            parts: LineOutputs = model.forward_parts(image, tokens)
            return _Outputs(parts.ctc, parts.gtc, parts.features, parts.row)
        if tokens is not None:
            both: GuidedLogits = model.forward_guided(image, tokens)
            return _Outputs(both.ctc, both.gtc)
        return _Outputs(model(image))

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "indices": {"meaning": "best symbol of each step, as a number in characters"},
            "probabilities": {"meaning": "of each of them", "range": [0, 1]},
        }

    def infer(self, model: Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"indices": [N, T] int32 of symbols, "probabilities": [N, T] float32}"""
        from ocr.layers.ctc_head import greedy  # what runs artifacts loads no layers

        image = _normalize_valid(inputs["image"], self.normalize, _valid_columns(inputs))
        indices, probabilities = (
            model.read(image) if isinstance(model, ReadsColumns) else greedy(model(image))
        )
        return {"indices": indices, "probabilities": probabilities}

    def describe_stage(self, buckets: tuple[int, ...] | None) -> dict[str, JSON]:
        """As of TextDetection. Without a `width` lines are padded to the `buckets` of the evaluation, longer ones as by
        default."""
        options = RecognizeOptions(self.normalize, self.height, width_scale=self.width_scale)
        if self.width is not None:
            options = replace(options, widths=(self.width,), stretch=self.stretch)
        elif buckets is not None:
            longer = (width for width in options.widths if width > buckets[-1])
            options = replace(options, widths=(*buckets, *longer))
        return {"kind": "recognizer", "options": plain(options), **self.alphabet.characters.to_dict()}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        from ocr.text.scores import RecognitionScores

        return {"text": RecognitionScores(self.alphabet.characters)}


@register("task")
@dataclass(frozen=True)
class TextLineOrientation(Task[Sample, Layer]):
    """Which lines stand on their heads. Inputs as of TextRecognition.

    Attributes:
        size_hw: Of the images, in pixels.
        label_smoothing: Share of the target that is spread over all classes.
    """

    label_arrays: ClassVar[tuple[str, ...]] = ("label",)

    normalize: Normalize
    size_hw: tuple[int, int] = (48, 192)
    label_smoothing: float = 0.0

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        if sample.labels is None or sample.labels.ndim != 0:
            raise InputError("a sample has no direction", where=sample.id, allowed="one class index")
        size = sample.size_hw if sample.warp is None else _visible_size(sample)
        return {
            "image": sample.image,
            "width": np.array(size[1], np.int32),
            "label": np.asarray(sample.labels, np.int32),
        }

    def loss(self, model: Layer, batch: Batch) -> Losses:
        logits = self.logits(model, batch)
        value = F.cross_entropy(logits, batch["label"], label_smoothing=self.label_smoothing)
        hits = (logits.argmax(axis=-1) == batch["label"]).mean(dtype=jnp.float32)
        return Losses(value, {"accuracy": hits})

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {"probability": {"meaning": "of each direction", "range": [0, 1], "sum": 1}}

    def infer(self, model: Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"probability": [N, classes] float32}, of upright and of upside down for lines"""
        return {"probability": jax.nn.softmax(self.logits(model, inputs), axis=-1)}

    def logits(self, model: Layer, inputs: Batch) -> jax.Array:
        """[N, classes]"""
        return model(_normalize_valid(inputs["image"], self.normalize, _valid_columns(inputs)))

    def describe_stage(self, buckets: tuple[int, ...] | None) -> dict[str, JSON]:
        """As of TextDetection."""
        options = OrientationOptions(self.normalize, self.size_hw)
        return {"kind": "orientation", "options": plain(options)}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        from ocr.text.scores import OrientationScores

        return {"direction": OrientationScores()}


class _Outputs(NamedTuple):
    """What the losses see of a recogniser, by the names of LineOutputs: the logits of CTC, and what else they need."""

    ctc: jax.Array
    gtc: jax.Array | None = None
    features: jax.Array | None = None
    row: jax.Array | None = None


def _visible_size(sample: Sample) -> tuple[int, int]:
    """(rows, columns) of an image that are no padding, where it stands upright in the top left corner; else of all."""
    height, width = sample.size_hw
    assert sample.warp is not None
    rows, columns = sample.warp.source_hw
    corners = sample.warp.points(np.array([[0, 0], [columns, 0], [columns, rows], [0, rows]], np.float64))
    low, high = corners.min(axis=0), corners.max(axis=0)
    is_box = (np.minimum(np.abs(corners - low), np.abs(corners - high)) < 0.5).all()
    if not is_box or np.abs(low).max() > 0.5:
        return height, width
    return min(max(round(high[1]), 1), height), min(max(round(high[0]), 1), width)


def _valid_columns(inputs: Batch) -> jax.Array:
    """[N, 1, W, 1] bool: which columns are line and not padding."""
    columns = jnp.arange(inputs["image"].shape[2])[None, :] < inputs["width"][:, None]
    return columns[:, None, :, None]


def _normalize_valid(image: jax.Array, normalize: Normalize, valid: jax.Array) -> jax.Array:
    """uint8 RGB to the network's float32, 0 where `valid` is false, as upstream pads after normalisation."""
    return jnp.where(valid, normalize(image), 0.0)
