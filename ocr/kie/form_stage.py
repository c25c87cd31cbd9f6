"""LayoutXLM at run time: lines of a page become labelled lines, and with a second model pairs of keys and values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from framework.core.transform import Transform
from framework.inference import Engine
from framework.vision.sample import Sample
from framework.workflow.samples import apply_transforms
from ocr.blocks import Field
from ocr.data.forms import FormSample, blank_page
from ocr.kie.form_decoding import pair_entities, vote_lines
from ocr.kie.form_tokens import ANSWER, HEADER, QUESTION, first_tokens, pack_tokens
from ocr.results import Page
from ocr.structure.text_layer import line_box

_KINDS = {"HEADER": HEADER, "QUESTION": QUESTION, "ANSWER": ANSWER}


@dataclass(frozen=True)
class FormOptions:
    """What an artifact of SER or RE says of its inputs; see the tasks of `form_tasks`."""

    max_seq_len: int = 512
    use_image: bool = False
    max_entities: int = 512


@dataclass(frozen=True, eq=False)
class FormStage:
    """A program of SER or RE with the transforms before it, its options and its tags."""

    engine: Engine
    transforms: Sequence[Transform[Any]]
    options: FormOptions
    tags: tuple[str, ...] = ()


class FormReader:
    """The fields of forms. Safe to call from several threads.

    Without relations each line that is of a kind is a field of that name; with them each value that has a key is a
    field whose `key` is what the key's line says, and whose name is made by `name_key`.
    """

    def __init__(
        self, entities: FormStage, relations: FormStage | None, name_key: Callable[[str], str]
    ) -> None:
        self.entities, self.relations, self.name_key = entities, relations, name_key

    def __call__(self, page: Page) -> list[Field]:
        """The fields of a page, in the order of its lines; without relations several may have one name."""
        lines = [line for line in page.lines if line.text.strip()]
        if not lines or page.width < 1 or page.height < 1:
            return []
        boxes = np.array([line_box(line) for line in lines], np.float32)
        sample = FormSample(
            blank_page((round(page.height), round(page.width))),
            boxes=boxes,
            text=tuple(line.text for line in lines),
            id=page.source or None,
        )
        kinds = self._classify(sample)
        if self.relations is None:
            return [
                self._field(kind.lower(), line.text, score * line.score, "", page, box)
                for line, box, (kind, score) in zip(lines, boxes, kinds)
                if kind != "O"
            ]
        return [
            self._field(
                self.name_key(lines[key].text),
                lines[value].text,
                score * lines[value].score,
                lines[key].text,
                page,
                boxes[value],
            )
            for key, value, score in self._relate(self.relations, sample, kinds)
        ]

    def _classify(self, sample: Sample) -> list[tuple[str, float]]:
        stage = self.entities
        made = _tokenize(sample, stage)
        scores = stage.engine(_batch(pack_tokens(made, stage.options.max_seq_len, False)))["scores"]
        assert made.token_segments is not None and made.boxes is not None
        segments = made.token_segments[: stage.options.max_seq_len]
        return vote_lines(np.asarray(scores)[0, : len(segments)], segments, len(made.boxes), stage.tags)

    @staticmethod
    def _relate(
        stage: FormStage, sample: Sample, kinds: Sequence[tuple[str, float]]
    ) -> list[tuple[int, int, float]]:
        """(line of the key, line of the value, probability)."""
        made = _tokenize(sample, stage)
        assert made.token_segments is not None
        starts, numbers = (np.full(stage.options.max_entities, -1, np.int32) for _ in range(2))
        lines: list[int] = []
        for line, start in first_tokens(made.token_segments[: stage.options.max_seq_len]).items():
            if kinds[line][0] in _KINDS and len(lines) < stage.options.max_entities:
                starts[len(lines)], numbers[len(lines)] = start, _KINDS[kinds[line][0]]
                lines.append(line)
        packed = pack_tokens(made, stage.options.max_seq_len, False)
        scores = stage.engine(_batch({**packed, "starts": starts, "kinds": numbers}))["scores"]
        found = pair_entities(np.asarray(scores)[0, : len(lines), : len(lines)])
        return [(lines[key], lines[value], score) for key, value, score in found]

    @staticmethod
    def _field(name: str, value: str, score: float, key: str, page: Page, box: np.ndarray) -> Field:
        left, top, right, bottom = (float(one) for one in box)
        return Field(name, value, score, key, page.page, ((left, top, right, bottom),), value)


def _tokenize(sample: Sample, stage: FormStage) -> FormSample:
    made = apply_transforms(sample, stage.transforms)
    assert isinstance(made, FormSample)
    return made


def _batch(packed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: value[None] for name, value in packed.items()}
