"""Scores of key information: entities by their words, and fields by their texts.

Source: PaddleOCR ppocr/metrics/vqa_token_ser_metric.py (seqeval's default mode, micro average)
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from framework.engine.details import Details, class_table
from framework.text.spans import Span, spans
from ocr.fields.field_decoding import FieldKind, decode_fields, label_names, plain_text
from ocr.fields.words import PageWords

Arrays = Mapping[str, np.ndarray]


class EntityScores:
    """Entities are right where first word, last word and label are: {"hmean", "precision", "recall"}.

    Reads "scores" [N, T, tags] and "tags" [N, T], -1 where a word does not count.
    """

    higher_is_better = True

    def __init__(self, tags: Sequence[str]) -> None:
        self.tags = tuple(tags)
        self.right: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.wanted: Counter[str] = Counter()

    def update(self, outputs: Arrays, batch: Arrays) -> None:
        best = np.asarray(outputs["scores"]).argmax(axis=-1)
        for tags, truth in zip(best, np.asarray(batch["tags"])):
            known = truth >= 0
            found, wanted = self._spans(tags[known]), self._spans(truth[known])
            self.right.update(label for *_, label in found & wanted)
            self.found.update(label for *_, label in found)
            self.wanted.update(label for *_, label in wanted)

    def _spans(self, tags: np.ndarray) -> set[Span]:
        return set(spans([self.tags[tag] for tag in tags]))

    def result(self) -> dict[str, float]:
        return scores_of(self.right.total(), self.found.total(), self.wanted.total())

    def details(self) -> Details:
        """Of each label, in entities."""
        names = label_names(self.tags)
        right, found, wanted = (
            np.array([counts[name] for name in names], np.int64)
            for counts in (self.right, self.found, self.wanted)
        )
        return Details(class_table(names, right, wanted, found))


class FieldScores:
    """How many pages' fields are exactly right, letters and digits compared: {"exact"}, the mean over the labels of
    pages that have the field, and {"exact_<label>"} of each.

    Reads "scores" [N, T, tags], and of the batch "page", what `pack_page` gives.
    """

    higher_is_better = True

    def __init__(self, tags: Sequence[str], kinds: Mapping[str, FieldKind]) -> None:
        self.tags, self.kinds = tuple(tags), kinds
        self.names = [name.lower() for name in label_names(tags)]
        self.right: Counter[str] = Counter()
        self.wanted: Counter[str] = Counter()

    def update(self, outputs: Arrays, batch: Arrays) -> None:
        for scores, page in zip(np.asarray(outputs["scores"]), np.asarray(batch["page"])):
            words, texts, wanted = unpack_page(str(page))
            fields = decode_fields(scores[: len(words)], self.tags, words, texts, self.kinds)
            truth = np.zeros((len(words), len(self.tags)), np.float32)
            truth[np.arange(len(words)), wanted] = 1
            for field in decode_fields(truth, self.tags, words, texts, self.kinds):
                found = next((one.value for one in fields if one.name == field.name), "")
                self.wanted[field.name] += 1
                self.right[field.name] += plain_text(found) == plain_text(field.value)

    def result(self) -> dict[str, float]:
        shares = {
            name: self.right[name] / self.wanted[name] if self.wanted[name] else 0.0 for name in self.names
        }
        known = [shares[name] for name in self.names if self.wanted[name]]
        mean = sum(known) / len(known) if known else 0.0
        return {"exact": mean, **{f"exact_{name}": share for name, share in shares.items()}}


def scores_of(right: int, found: int, wanted: int) -> dict[str, float]:
    """{"hmean", "precision", "recall"} of counts; 0 where nothing is right."""
    precision, recall = right / max(found, 1), right / max(wanted, 1)
    hmean = 2 * precision * recall / (precision + recall) if right else 0.0
    return {"hmean": hmean, "precision": precision, "recall": recall}


def pack_page(words: PageWords, texts: Sequence[str], tags: np.ndarray) -> np.ndarray:
    """The words of a page with their tags as an array of one text, for metrics."""
    plain = {
        "words": words.texts,
        "boxes": words.boxes.round(1).tolist(),
        "lines": words.lines.tolist(),
        "spans": words.spans.tolist(),
        "rows": words.rows.tolist(),
        "texts": list(texts),
        "tags": tags.tolist(),
    }
    return np.array(json.dumps(plain, ensure_ascii=False))


def unpack_page(packed: str) -> tuple[PageWords, list[str], np.ndarray]:
    """Words, texts of lines, and tags [T] that `pack_page` got."""
    plain = json.loads(packed)
    words = PageWords(
        tuple(plain["words"]),
        np.array(plain["boxes"], np.float32).reshape(-1, 4),
        np.array(plain["lines"], np.int32),
        np.array(plain["spans"], np.int32).reshape(-1, 2),
        np.array(plain["rows"], np.int32),
    )
    return words, plain["texts"], np.array(plain["tags"], np.int64)
