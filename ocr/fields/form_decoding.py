"""From probabilities to the kinds of lines and to pairs of keys and values, and how right the pairs are.

Reference: PaddleOCR ppocr/postprocess/vqa_token_{ser,re}_layoutlm_postprocess.py, ppocr/metrics/vqa_token_re_metric.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ocr.fields.scores import scores_of

Arrays = Mapping[str, np.ndarray]


def vote_lines(
    probabilities: np.ndarray, segments: np.ndarray, count: int, tags: Sequence[str]
) -> list[tuple[str, float]]:
    """The kind of each of `count` lines and the share of its tokens that are for it: the kind that most of its tokens
    are of, B- and I- together, of equal ones the first; "O" where none of its tokens was seen.

    Args:
        probabilities: [T, tags].
        segments: [T] the line of each token.
    """
    label_of_tag = [tag.partition("-")[2] or tag for tag in tags]
    names = list(dict.fromkeys(label_of_tag))
    chosen = np.array([names.index(label_of_tag[tag]) for tag in probabilities.argmax(axis=1)], np.int64)
    found = []
    for line in range(count):
        votes = np.bincount(chosen[segments == line], minlength=len(names))
        best = int(votes.argmax())
        total = int(votes.sum())
        found.append((names[best], float(votes[best] / total)) if total else ("O", 0.0))
    return found


def pair_entities(scores: np.ndarray) -> list[tuple[int, int, float]]:
    """(key, value, probability) of entities by their places, of [E, E] probabilities, 0 where a pair cannot be. Each
    value has one key: the first one that is more likely than not, in the order of keys, as upstream decides.
    """
    found = []
    for tail in range(scores.shape[1]):
        heads = np.flatnonzero(scores[:, tail] > 0.5)
        if len(heads):
            found.append((int(heads[0]), tail, float(scores[heads[0], tail])))
    return sorted(found)


class RelationScores:
    """Pairs are right where key and value are: {"hmean", "precision", "recall"}.

    Reads "scores" [N, E, E] of the outputs and "related" [N, E, E] of the batch. All pairs that are more likely than
    not count, as upstream's metric has it, more than one key of a value too.
    """

    higher_is_better = True

    def __init__(self) -> None:
        self.right = self.found = self.wanted = 0

    def update(self, outputs: Arrays, batch: Arrays) -> None:
        found, wanted = np.asarray(outputs["scores"]) > 0.5, np.asarray(batch["related"]) == 1
        self.right += int((found & wanted).sum())
        self.found += int(found.sum())
        self.wanted += int(wanted.sum())

    def result(self) -> dict[str, float]:
        return scores_of(self.right, self.found, self.wanted)
