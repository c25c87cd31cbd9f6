"""A page's tokens as LayoutXLM reads them: what training and inference share.

Reference: PaddleOCR ppocr/data/imaug/label_ops.py (`VQATokenLabelEncode`), ppocr/data/imaug/vqa/token
"""

from __future__ import annotations

import numpy as np

from framework.core.errors import InputError
from framework.text.xlm_roberta import PAD
from framework.vision.image import resize
from framework.vision.sample import Sample
from ocr.data.forms import XFUND_CLASSES, FormSample

PAGE = 1000  # boxes are shares of the page's sides times this, cut off
IMAGE_HW = (224, 224)
HEADER, QUESTION, ANSWER = 0, 1, 2
"""The kinds of entities that relations are between."""
KIND_OF_LABEL = {"HEADER": HEADER, "QUESTION": QUESTION, "ANSWER": ANSWER}
RELATION_LABELS = tuple(name.upper() for name in XFUND_CLASSES)
"""The labels of data that have relations, in the order of their tags."""


def pack_tokens(sample: Sample, max_seq_len: int, use_image: bool) -> dict[str, np.ndarray]:
    """The inputs of a page, padded to `max_seq_len` tokens: "input_ids", "bbox", "mask", and with `use_image` "image".

    Raises:
        InputError: no transform made tokens of it.
    """
    if not isinstance(sample, FormSample) or sample.token_ids is None or sample.token_segments is None:
        raise InputError(
            "the lines of a page were not divided into tokens",
            where=sample.id,
            received=type(sample).__name__,
            allowed="a FormSample with tokens",
            fix="put TokenizeForm into `transforms`",
        )
    assert sample.boxes is not None
    count = min(len(sample.token_ids), max_seq_len)
    height, width = sample.size_hw
    lines = sample.boxes.astype(np.int64) * PAGE // np.array([width, height, width, height])
    lines = np.clip(lines, 0, PAGE)  # recognised lines may reach over the page's sides
    ids = np.full(max_seq_len, PAD, np.int32)
    boxes = np.zeros((max_seq_len, 4), np.int32)
    ids[:count] = sample.token_ids[:count]
    boxes[:count] = lines[sample.token_segments[:count]]
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
