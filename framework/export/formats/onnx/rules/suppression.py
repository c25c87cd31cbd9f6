"""Boxes that suppress one another, as NonMaxSuppression."""

from __future__ import annotations

import numpy as np
from jax.extend.core import JaxprEqn

from framework.export.formats.onnx.convert import Converter
from framework.export.formats.onnx.graph import is_symbolic
from framework.export.formats.onnx.registry import function
from framework.export.formats.onnx.rules.elementwise import out_aval
from framework.export.formats.onnx.rules.functionals import described
from framework.export.formats.onnx.rules.reduction import whole
from framework.export.formats.onnx.values import Value


@function("_suppress_boxes")
def _suppress_boxes(c: Converter, eqn: JaxprEqn, boxes: Value, valid: Value, *labels: Value) -> Value | None:
    """The operator gives the boxes that stay, as many as there are; a mask of all has them set.

    It sorts by scores. Boxes come best first, so scores here are how many boxes are not better, and -1 for those that
    are not valid. A box has that score for its own label alone.
    """
    settings, aval = described(eqn, "suppress_boxes"), out_aval(eqn)
    count = aval.shape[-1]
    if settings is None or len(aval.shape) > 2 or is_symbolic(count) or boxes.dtype != np.float32:
        return None
    g, images = c.graph, aval.shape[:-1] or (1,)
    whole_ = [whole(c, eqn, value, place) for place, value in enumerate((boxes, valid, *labels))]
    boxes, valid, *labels_ = (c.reshape_value(v, [*images, *v.shape[len(aval.shape) - 1 :]]) for v in whole_)
    ranks = g.constant(np.arange(count, 0, -1, dtype=np.float32)[None])
    none = g.constant(np.float32(-1))
    scores = g.add("Unsqueeze", g.add("Where", c.plain(valid), ranks, none), g.integers(1))
    for one in labels_:
        all_labels = g.constant(np.arange(settings["num_labels"], dtype=one.dtype)[:, None])
        of_label = g.add("Equal", g.add("Unsqueeze", c.plain(one), g.integers(1)), all_labels)
        scores = g.add("Where", of_label, scores, none)
    low, high = g.add_many("Split", 2, c.plain(boxes), g.integers(2, 2), axis=2)
    selected = g.add(
        "NonMaxSuppression",
        # Corners of a box that is turned inside out would be exchanged; it is empty.
        g.add("Concat", low, g.add("Max", low, high), axis=2),
        scores,
        g.integers(count),
        g.constant(np.array([settings["iou_threshold"]], np.float32)),
        g.constant(np.zeros(1, np.float32)),
    )
    positions = g.add("Gather", selected, g.integers(0, 2), axis=1)
    ones = g.add("Expand", g.constant(np.ones((), bool)), g.add("Shape", selected, start=0, end=1))
    empty = g.add("Expand", g.constant(np.zeros((), bool)), g.sizes([*images, count]))
    mask = c.value(g.add("ScatterND", empty, positions, ones), aval, (0, 1), (*images, count))
    return c.reshape_value(mask, aval.shape)
