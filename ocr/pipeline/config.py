"""The configuration of text detection and recognition: three models and their options, exported as one pipeline."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from framework import hub
from framework.config import Kind, plain, register
from framework.config.domains import packages_of_domain
from framework.config.registry import find
from framework.core.errors import ConfigError, HubError
from framework.core.model_config import ModelConfig
from framework.core.types import JSON
from framework.engine.task import Pipeline, Stage, Task
from framework.export import TensorSpec
from framework.workflow.domain.weights import resolve_weights
from ocr.pages.stages import PageOrientationOptions, UnwarpOptions
from ocr.pipeline.stage_from_run import find_run, read_run_characters, read_run_stage
from ocr.pipeline.text_pipeline import PipelineOptions
from ocr.tasks.pages import PageOrientation, PageUnwarping
from ocr.tasks.text import TextDetection, TextLineOrientation, TextRecognition
from ocr.text.characters import CharacterSet
from ocr.text.dictionary import find_characters
from ocr.text.languages import choose_recognizers, is_right_to_left
from ocr.text.stages import DetectOptions, OrientationOptions, RecognizeOptions

log = logging.getLogger("oar")
BF16Engine = Literal["onnxruntime", "openvino"]


@dataclass(frozen=True)
class DetectorConfig:
    """A text detector: its model, where its weights are (a name of the hub, a path or an address), its options."""

    model: Annotated[ModelConfig, Kind("model")]
    weights: str
    options: DetectOptions
    bf16_verified: bool = False
    bf16_engines: tuple[BF16Engine, ...] = ()

    def stage(self) -> Stage:
        """The stage "detector"."""
        inputs = {
            "image": TensorSpec(("n", "32*h", "32*w", 3), "uint8"),
            "size": TensorSpec(("n", 2), "int32"),
        }
        return _make_stage(self, TextDetection(self.options.normalize), inputs)


@dataclass(frozen=True)
class RecognizerConfig:
    """A text recogniser. `characters` is a dictionary file, or empty where the weights carry their dictionary."""

    model: Annotated[ModelConfig, Kind("model")]  # any recogniser's config: it has `num_classes`
    weights: str
    options: RecognizeOptions
    characters: str = ""
    use_space_char: bool = True
    right_to_left: bool = False
    bf16_verified: bool = False
    bf16_engines: tuple[BF16Engine, ...] = ()

    def stage(self) -> Stage:
        """The stage "recognizer", whose model has a class for each symbol of the dictionary.

        Raises:
            ConfigError: there is no dictionary.
        """
        inputs = {
            "image": TensorSpec(("n", self.options.height, "w", 3), "uint8"),
            "width": TensorSpec(("n",), "int32"),
        }
        stage = _make_stage(self, TextRecognition(self.options.normalize), inputs)
        characters = self._read_characters(stage.path)
        return dataclasses.replace(
            stage,
            model=dataclasses.replace(self.model, num_classes=characters.num_classes),
            constraints=("w >= 16",),
            config={**stage.config, **characters.to_dict()},
        )

    def _read_characters(self, path: Path) -> CharacterSet:
        """The named dictionary, or the one that comes with the weights: inside an ONNX file, in the inference.yml
        beside a program of PaddleOCR, beside them in the hub, or in the config of the run that trained them."""
        how = {"use_space_char": self.use_space_char, "right_to_left": self.right_to_left}
        if not self.characters and (run := find_run(self.weights)) is not None:
            # A run's dictionary is in its config, not beside its weights.
            return read_run_characters(run)
        if self.characters:
            return CharacterSet.from_file(hub.resolve(self.characters, "ocr"), **how)
        return find_characters(path, self.weights, "characters: FILE", **how)


@dataclass(frozen=True)
class OrientationConfig:
    """A text-line orientation classifier: finds lines that stand on their heads."""

    model: Annotated[ModelConfig, Kind("model")]
    weights: str
    options: OrientationOptions
    bf16_verified: bool = False
    bf16_engines: tuple[BF16Engine, ...] = ()

    def stage(self) -> Stage:
        """The stage "orientation"."""
        inputs = {
            "image": TensorSpec(("n", *self.options.size_hw, 3), "uint8"),
            "width": TensorSpec(("n",), "int32"),
        }
        return _make_stage(self, TextLineOrientation(self.options.normalize), inputs)


@dataclass(frozen=True)
class PageOrientationConfig:
    """A classifier of pages that are turned by 0, 90, 180 or 270 degrees.

    Attributes:
        enabled: Whether the pipeline has the stage.
        fallback: Takes its place where its weights are neither here nor reachable.
    """

    model: Annotated[ModelConfig, Kind("model")]
    weights: str
    options: PageOrientationOptions
    bf16_verified: bool = False
    bf16_engines: tuple[BF16Engine, ...] = ()
    enabled: bool = True
    fallback: PageOrientationConfig | None = None

    def stage(self) -> Stage:
        """The stage "document_orientation"."""
        options = self.options
        inputs = {"image": TensorSpec(("n", *options.size_hw, 3), "uint8")}
        task = PageOrientation(options.normalize, options.size_hw, turn_all=options.turn_all)
        try:
            return _make_stage(self, task, inputs)
        except HubError as error:
            if self.fallback is None:
                raise
            log.warning(
                "%s cannot be had, so pages are turned upright by %s. %s",
                *(self.weights, self.fallback.weights, error.problem),
            )
            return self.fallback.stage()


@dataclass(frozen=True)
class UnwarpConfig:
    """A network that makes photographed pages flat; `enabled` says whether the pipeline has the stage."""

    model: Annotated[ModelConfig, Kind("model")]
    weights: str
    options: UnwarpOptions
    bf16_verified: bool = False
    bf16_engines: tuple[BF16Engine, ...] = ()
    enabled: bool = True

    def stage(self) -> Stage:
        """The stage "unwarp"."""
        inputs = {"image": TensorSpec(("n", *self.options.size_hw, 3), "uint8")}
        return _make_stage(self, PageUnwarping(self.options.normalize), inputs)


_StageConfig = DetectorConfig | RecognizerConfig | OrientationConfig | PageOrientationConfig | UnwarpConfig


def _make_stage(config: _StageConfig, task: Task, inputs: dict[str, TensorSpec]) -> Stage:
    path, about = resolve_weights(config.weights, "ocr"), {"options": plain(config.options)}
    low = config.bf16_verified, config.bf16_engines
    return Stage(config.model, task, config.weights, path, inputs, (), about, *low)


def _open_stage(config: _StageConfig | str, name: str) -> Stage:
    return read_run_stage(config, name) if isinstance(config, str) else config.stage()


@register("pipeline")
@dataclass(frozen=True)
class TextSystem(Pipeline):
    """Detector, recogniser and, if wanted, a text-line orientation classifier, as predict_system.py of PaddleOCR.

    `bf16_verified` of a stage says that its score in bfloat16 was measured and holds, so `precision: auto` may take it;
    `bf16_engines` says it of engines that run ONNX files.
    In place of a mapping a stage may be the folder of a training run, such as `detector: output/my_detector`.

    Attributes:
        lang: One language or several ("ru", "ru,en"). Where `recognizer` does not read them, the recognisers of the
            index that do take its place, with its options.
        recognizers: Names of the index that take the place of `recognizer`. Of several, each reads every line, and the
            surest reading is kept.
        document_orientation: Turns whole pages upright before they are read.
        unwarp: Makes photographed pages flat before they are read.
    """

    detector: DetectorConfig | str
    recognizer: RecognizerConfig | str
    orientation: OrientationConfig | str | None = None
    options: PipelineOptions = field(default_factory=PipelineOptions)
    lang: str = ""
    recognizers: tuple[str, ...] = ()
    document_orientation: PageOrientationConfig | str | None = None
    unwarp: UnwarpConfig | None = None

    @property
    def stage_names(self) -> tuple[str, ...]:
        return (
            "detector",
            "recognizer",
            *(("orientation",) if self.orientation else ()),
            *self._page_stages(),
        )

    def _page_stages(self) -> Mapping[str, PageOrientationConfig | UnwarpConfig | str]:
        """What prepares pages, where it is switched on; a trained model's folder is."""
        stages = {"document_orientation": self.document_orientation, "unwarp": self.unwarp}
        return {
            name: config
            for name, config in stages.items()
            if config is not None and (isinstance(config, str) or config.enabled)
        }

    def stages(self) -> Mapping[str, Stage]:
        """A second recogniser is the stage "recognizer2", and so on."""
        first, *others = self._recognizers()
        stages = {"detector": self.detector, "recognizer": first, "orientation": self.orientation}
        more = {f"recognizer{number}": config for number, config in enumerate(others, start=2)}
        return {
            name: _open_stage(config, name)
            for name, config in {**stages, **more, **self._page_stages()}.items()
            if config is not None
        }

    def describe(self) -> Mapping[str, JSON]:
        return {"options": plain(self.options), **({"lang": self.lang} if self.lang else {})}

    def _recognizers(self) -> list[RecognizerConfig | str]:
        names, base = self.recognizers, self.recognizer
        if isinstance(base, str):
            if names or self.lang:
                raise ConfigError(
                    "a trained recogniser takes the place of all others",
                    where="pipeline.recognizer",
                    received=f"{base}, with lang {self.lang!r} and recognizers {list(names)}",
                    allowed="a run alone",
                    fix="-o pipeline.lang= pipeline.recognizers=[]",
                )
            return [base]
        if not names and self.lang:
            names = choose_recognizers(self.lang, base.weights).recognizers
        return [base if name == base.weights else recognizer_of(name, base) for name in names] or [base]


def recognizer_of(name: str, base: RecognizerConfig) -> RecognizerConfig:
    """The recogniser of the index called `name`, with the options of `base`.

    Raises:
        ConfigError: the row does not say which model it is of.
    """
    row = hub.entry(name)
    fields = dict(row.model)
    if "type" not in fields or "dict" not in row.files:
        raise ConfigError(
            "this is no recogniser of the index",
            where="pipeline.recognizers",
            received=name,
            allowed="one that `oar models list --lang CODE` lists",
        )
    model = find("model", fields.pop("type"), packages_of_domain("ocr")).config
    height = row.preprocess.get("size_hw", [base.options.height])[0]
    return RecognizerConfig(
        model(**fields),
        name,
        dataclasses.replace(base.options, height=height),
        right_to_left=any(map(is_right_to_left, row.languages)),
    )
