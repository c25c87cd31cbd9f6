"""Distillation: two models side by side that are trained on the same batch and learn from each other.

Paper: deep mutual learning, https://arxiv.org/abs/1706.00384; as used in PP-OCRv2, https://arxiv.org/abs/2109.03144
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/architectures/distillation_model.py
Differs: an exported teacher is no part of the model, see ocr/tasks/distill.py. Outside of training the student runs
alone. Weights: `.pdparams` of upstream's mutual learning by name: `Student.` and `Teacher.`, which is trained, too.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated

import jax

from framework import nn
from framework.config import Kind, build, register
from framework.core.model_config import ModelConfig
from framework.core.types import PyTree
from ocr.models.dbnet import DBNetConfig
from zoo.contracts import Contract

__all__ = ["Distillation", "DistillationConfig"]


@dataclass(frozen=True)
class DistillationConfig:
    """`teacher` is the second student; None: one of the same config, with values of its own.

    `num_classes`, where both are recognisers, is handed to those that have none.
    """

    student: Annotated[ModelConfig, Kind("model")] = dataclasses.field(
        default_factory=lambda: DBNetConfig("PP-OCRv6_tiny_det")
    )
    teacher: Annotated[ModelConfig, Kind("model")] | None = None
    num_classes: int | None = None

    @property
    def parts(self) -> tuple[ModelConfig, ModelConfig]:
        """The configs of both."""
        second = self.student if self.teacher is None else self.teacher
        return self._with_classes(self.student), self._with_classes(second)

    def _with_classes(self, config: ModelConfig) -> ModelConfig:
        if self.num_classes is None or getattr(config, "num_classes", 0) is not None:
            return config
        return dataclasses.replace(config, num_classes=self.num_classes)


@register("model", config=DistillationConfig)
class Distillation(nn.Model[DistillationConfig]):
    """The student's outputs; a task that trains both takes `pair`."""

    example_shape = (1, 64, 64, 3)
    contract = Contract(flat=(r"Teacher\..*", "the student alone runs outside of training"))

    def __init__(self, config: DistillationConfig) -> None:
        super().__init__(config)
        first, second = config.parts
        self.add_sublayer("Student", build(first))
        self.add_sublayer("Teacher", build(second))

    @property
    def pair(self) -> tuple[nn.Layer, nn.Layer]:
        """Both models."""
        return self.Student, self.Teacher

    def forward(self, x: jax.Array) -> PyTree:
        return self.Student(x)

    def read(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The student's reading, see TextRecognizer.read."""
        return self.Student.read(x)
