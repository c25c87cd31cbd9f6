"""LayoutXLM at run time: lines of a page become labelled lines, and with a second model pairs of keys and values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from framework.core.errors import InputError
from framework.core.transform import Transform
from framework.inference import Engine
from framework.vision.sample import Sample
from framework.workflow.domain.samples import apply_transforms
from ocr.fields.form_decoding import pair_entities, vote_lines
from ocr.fields.forms import KIND_OF_LABEL, FormSample, blank_page, first_tokens, pack_tokens, tokens_of
from ocr.results.blocks import Field
from ocr.results.geometry import line_box
from ocr.results.lines import Line
from ocr.results.pages import Page


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
    transforms: Sequence[Transform[Sample]]
    options: FormOptions
    tags: tuple[str, ...] = ()

    def run(self, page: FormSample, **entities: np.ndarray) -> np.ndarray:
        """The scores of a page that `tokenize` made, with what the program reads besides its tokens."""
        packed = pack_tokens(page, self.options.max_seq_len, self.options.use_image)
        batch = {name: value[None] for name, value in {**packed, **entities}.items()}
        return np.asarray(self.engine(batch)["scores"])[0]

    def tokenize(self, page: FormSample) -> tuple[FormSample, np.ndarray]:
        """The page with its tokens, and the line of each token that the program sees."""
        tokenized = apply_transforms(page, self.transforms)
        _, segments, _ = tokens_of(tokenized)
        return cast(FormSample, tokenized), segments[: self.options.max_seq_len]


class FormReader:
    """The fields of forms. Safe to call from several threads.

    Without relations each line that has a label is a field of that name; with them each value that has a key is a
    field whose `key` is what the key's line says, and whose name is made by `name_key`.
    """

    def __init__(
        self, entities: FormStage, relations: FormStage | None, name_key: Callable[[str], str]
    ) -> None:
        self.entities, self.relations, self.name_key = entities, relations, name_key

    @property
    def reads_images(self) -> bool:
        """Whether pages must have their image."""
        return any(stage.options.use_image for stage in (self.entities, self.relations) if stage is not None)

    def __call__(self, page: Page) -> list[Field]:
        """The fields of a page, in the order of its lines; without relations several may have one name.

        Raises: InputError, where the model reads images and the page has none.
        """
        lines = [line for line in page.lines if line.text.strip()]
        if not lines or not page.width or not page.height:
            return []
        sample = FormSample(
            self._image_of(page),
            boxes=np.array([line_box(line) for line in lines], np.float32),
            text=tuple(line.text for line in lines),
            id=page.source or None,
        )
        labels = self._classify(sample)
        if self.relations is None:
            return [
                _field(label.lower(), line, share, "", page)
                for line, (label, share) in zip(lines, labels)
                if label != "O"
            ]
        names = [label for label, _ in labels]
        return [
            _field(self.name_key(lines[key].text), lines[value], chance, lines[key].text, page)
            for key, value, chance in self._relate(self.relations, sample, names)
        ]

    def _image_of(self, page: Page) -> np.ndarray:
        if not self.reads_images:
            return blank_page((page.height, page.width))
        if page.image is None:
            raise InputError(
                "this model reads the images of pages, and a page has none",
                where=page.source or f"page {page.page}",
                received="a page without its image",
                fix="read the document with images=True",
            )
        return page.image

    def _classify(self, sample: FormSample) -> list[tuple[str, float]]:
        """The label of each line, "O" where it has none, and the share of its tokens that are for it."""
        stage = self.entities
        made, segments = stage.tokenize(sample)
        return vote_lines(stage.run(made)[: len(segments)], segments, len(sample.text or ()), stage.tags)

    @staticmethod
    def _relate(stage: FormStage, sample: FormSample, labels: Sequence[str]) -> list[tuple[int, int, float]]:
        """(line of the key, line of the value, probability)."""
        made, segments = stage.tokenize(sample)
        starts, kinds = (np.full(stage.options.max_entities, -1, np.int32) for _ in range(2))
        known = [(line, start) for line, start in first_tokens(segments).items() if labels[line] != "O"]
        known = known[: stage.options.max_entities]
        for place, (line, start) in enumerate(known):
            starts[place], kinds[place] = start, KIND_OF_LABEL[labels[line]]
        scores = stage.run(made, starts=starts, kinds=kinds)
        pairs = pair_entities(scores[: len(known), : len(known)])
        return [(known[key][0], known[value][0], chance) for key, value, chance in pairs]


def _field(name: str, value: Line, chance: float, key: str, page: Page) -> Field:
    """The field that a line says; its score is the chance times that of the line."""
    return Field(name, value.text, chance * value.score, key, page.page, (line_box(value),), value.text)
