"""The configuration of text detection and recognition: three models and their options, exported as one pipeline."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from framework import hub
from framework.config import Kind, plain, register
from framework.engine.task import Pipeline, Stage, Task
from framework.export import TensorSpec
from ocr.characters import CharacterSet
from ocr.dictionary import find_characters
from ocr.pipeline import PipelineOptions
from ocr.run_stage import read_run_stage
from ocr.stages import DetectOptions, OrientationOptions, RecognizeOptions
from ocr.tasks import TextDetection, TextLineOrientation, TextRecognition


@dataclass(frozen=True)
class DetectorConfig:
    """A text detector: its model, where its weights are (a name of the hub, a path or an address), its options."""

    model: Annotated[object, Kind("model")]
    weights: str
    options: DetectOptions
    bf16_verified: bool = False

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

    model: Annotated[Any, Kind("model")]  # any recogniser's config: it has `num_classes`
    weights: str
    options: RecognizeOptions
    characters: str = ""
    use_space_char: bool = True
    right_to_left: bool = False
    bf16_verified: bool = False

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
        """The named dictionary, or the one that comes with the weights: inside an ONNX file, or beside them in the
        hub."""
        how = {"use_space_char": self.use_space_char, "right_to_left": self.right_to_left}
        if self.characters:
            return CharacterSet.from_file(hub.resolve(self.characters, "ocr"), **how)
        return find_characters(path, self.weights, **how)


@dataclass(frozen=True)
class OrientationConfig:
    """A text-line orientation classifier: finds lines that stand on their heads."""

    model: Annotated[object, Kind("model")]
    weights: str
    options: OrientationOptions
    bf16_verified: bool = False

    def stage(self) -> Stage:
        """The stage "orientation"."""
        inputs = {
            "image": TensorSpec(("n", *self.options.size_hw, 3), "uint8"),
            "width": TensorSpec(("n",), "int32"),
        }
        return _make_stage(self, TextLineOrientation(self.options.normalize), inputs)


def _make_stage(
    config: DetectorConfig | RecognizerConfig | OrientationConfig, task: Task, inputs: dict[str, TensorSpec]
) -> Stage:
    path, about = hub.resolve(config.weights, "ocr"), {"options": plain(config.options)}
    return Stage(config.model, task, config.weights, path, inputs, (), about, config.bf16_verified)


def _open_stage(config: DetectorConfig | RecognizerConfig | OrientationConfig | str, name: str) -> Stage:
    return read_run_stage(config, name) if isinstance(config, str) else config.stage()


@register("pipeline")
@dataclass(frozen=True)
class TextSystem(Pipeline):
    """Detector, recogniser and, if wanted, a text-line orientation classifier, as predict_system.py of PaddleOCR.

    `bf16_verified` of a stage says that its score in bfloat16 was measured and holds, so `precision: auto` may take it.
    In place of a mapping a stage may be the folder of a training run, such as `detector: output/my_detector`.
    """

    detector: DetectorConfig | str
    recognizer: RecognizerConfig | str
    orientation: OrientationConfig | str | None = None
    options: PipelineOptions = field(default_factory=PipelineOptions)

    @property
    def stage_names(self) -> tuple[str, ...]:
        return ("detector", "recognizer", *(("orientation",) if self.orientation else ()))

    def stages(self) -> Mapping[str, Stage]:
        return {name: _open_stage(getattr(self, name), name) for name in self.stage_names}

    def describe(self) -> Mapping[str, Any]:
        return {"options": plain(self.options)}
