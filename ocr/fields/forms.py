"""Forms as LayoutXLM reads them, their tags and tokens: what training and inference share.

Reference: PaddleOCR ppocr/data/imaug/label_ops.py (`VQATokenLabelEncode`), ppocr/data/imaug/vqa/token
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from framework.core.errors import InputError
from framework.text.xlm_roberta import PAD
from framework.vision.image import resize
from framework.vision.sample import Sample

XFUND_CLASSES = ("question", "answer", "header")
"""Those of XFUND and FUNSD, in the order of upstream's class_list_xfun.txt"""
PAGE = 1000  # boxes are shares of the page's sides times this, cut off
IMAGE_HW = (224, 224)
HEADER, QUESTION, ANSWER = 0, 1, 2
"""The kinds of entities that relations are between."""
KIND_OF_LABEL = {"HEADER": HEADER, "QUESTION": QUESTION, "ANSWER": ANSWER}
RELATION_LABELS = tuple(name.upper() for name in XFUND_CLASSES)
"""The labels of data that have relations, in the order of their tags."""


@dataclass(frozen=True, eq=False)
class FormSample(Sample):
    """A page with K segments: `boxes`, `text` (one a segment) and `labels`, the class of a segment's first word.

    A class is a tag: 0 is O, 2k + 1 is B- of label k and 2k + 2 is I- of it.
    """

    links: np.ndarray | None = None
    """[L, 2] int32: pairs of segments, by their places, key and value in the order of the labels."""
    token_ids: np.ndarray | None = None
    """[T] int32: the tokens of the segments, one segment after the other, that a transform made."""
    token_segments: np.ndarray | None = None
    """[T] int32: the segment of each token, by its place."""


def tag_names(labels: Sequence[str]) -> tuple[str, ...]:
    """O, and B- and I- of each label, in upper case. Source: PaddleOCR ppocr/utils/utility.py
    load_vqa_bio_label_maps"""
    return ("O", *(f"{letter}-{label.upper()}" for label in labels for letter in "BI"))


def blank_page(size_hw: tuple[int, int]) -> np.ndarray:
    """A white page [H, W, 3] uint8 that takes no memory and cannot be written to."""
    return np.broadcast_to(np.full((1, 1, 3), 255, np.uint8), (*size_hw, 3))


def tokens_of(sample: Sample) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The tokens of a page, the line of each, and the boxes of lines. Raises: InputError, where it has none."""
    if (
        not isinstance(sample, FormSample)
        or sample.token_ids is None
        or sample.token_segments is None
        or sample.boxes is None
    ):
        raise InputError(
            "the lines of a page were not divided into tokens",
            where=sample.id,
            received=type(sample).__name__,
            allowed="a FormSample with tokens",
            fix="put TokenizeForm into `transforms`",
        )
    return sample.token_ids, sample.token_segments, sample.boxes


def pack_tokens(sample: Sample, max_seq_len: int, use_image: bool) -> dict[str, np.ndarray]:
    """The inputs of a page, padded to `max_seq_len` tokens: "input_ids", "bbox", "mask", and with `use_image` "image".

    Raises:
        InputError: no transform made tokens of it.
    """
    token_ids, segments, line_boxes = tokens_of(sample)
    count = min(len(token_ids), max_seq_len)
    height, width = sample.size_hw
    lines = line_boxes.astype(np.int64) * PAGE // np.array([width, height, width, height])
    lines = np.clip(lines, 0, PAGE)  # recognised lines may reach over the page's sides
    ids = np.full(max_seq_len, PAD, np.int32)
    boxes = np.zeros((max_seq_len, 4), np.int32)
    ids[:count] = token_ids[:count]
    boxes[:count] = lines[segments[:count]]
    packed = {"input_ids": ids, "bbox": boxes, "mask": np.arange(max_seq_len) < count}
    if use_image:
        packed["image"] = resize(np.ascontiguousarray(sample.image), IMAGE_HW)
    return packed


def first_tokens(segments: np.ndarray) -> dict[int, int]:
    """The place of the first token of each segment that has one."""
    found: dict[int, int] = {}
    for place, segment in enumerate(segments.tolist()):
        found.setdefault(segment, place)
    return found
