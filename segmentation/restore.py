"""From what a program gives for a prepared image to the classes of the image's own pixels."""

from __future__ import annotations

import numpy as np

from framework.core.errors import FormatError
from framework.vision.sample import Sample


def resize_to_source(outputs: dict[str, np.ndarray], sample: Sample) -> np.ndarray:
    """Labels [H, W] of the image as it was read.

    Args:
        outputs: Of the size of the sample's image: "labels" [h, w], or "scores" [h, w, num_classes].

    Raises:
        FormatError: the outputs are others.
    """
    if "labels" in outputs:
        labels = outputs["labels"]
        return labels if sample.warp is None else sample.warp.inverse().mask(labels)
    if "scores" in outputs:
        return labels_at_source(outputs["scores"], sample)
    raise FormatError(
        "this program does not segment images",
        received=f"outputs {', '.join(sorted(outputs))}",
        allowed="labels, or scores",
    )


def labels_at_source(scores: np.ndarray, sample: Sample) -> np.ndarray:
    """The class with the greatest score, [H, W] uint8, of scores brought back by bilinear interpolation.

    Of equal scores the first class counts. What the transforms cut off has the class of the nearest pixel left.

    Args:
        scores: [h, w, num_classes] float32, of the size of the sample's image.
    """
    classes = scores.shape[2]
    kind = np.uint8 if classes <= 256 else np.uint16
    if sample.warp is None:
        return scores.argmax(axis=-1).astype(kind)
    back = sample.warp.inverse()
    channels = np.ascontiguousarray(scores.transpose(2, 0, 1))
    best = back.image(channels[0], border=None)
    labels = np.zeros(best.shape, kind)
    for index in range(1, classes):
        class_scores = back.image(channels[index], border=None)
        np.copyto(labels, kind(index), where=class_scores > best)
        np.maximum(best, class_scores, out=best)
    return labels
