"""Run an ONNX model on examples in ONNX Runtime and see the values of its tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from framework.compress.ranges import Histogram, Range
from framework.core.disk import scratch_folder
from framework.core.errors import InputError
from framework.export.formats.onnx.check import NamedArrays, import_onnxruntime
from framework.export.formats.onnx.model import import_onnx, write_onnx

if TYPE_CHECKING:
    import onnx


def model_runner(
    model: onnx.ModelProto, outputs: Sequence[str] | None = None
) -> Callable[[NamedArrays], dict[str, np.ndarray]]:
    """Runs a model in ONNX Runtime on the CPU; `outputs` are tensors of it in place of its own outputs."""
    onnx, runtime = import_onnx(), import_onnxruntime()
    if outputs is not None:
        whole, model = model, type(model)()
        model.CopyFrom(whole)
        del model.graph.output[:]
        model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in outputs)
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    with scratch_folder("oar-calibrate-") as work:
        file = write_onnx(model, work / "model.onnx")[-1]
        session = runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    known = {one.name for one in session.get_inputs()}

    def run(feed: NamedArrays) -> dict[str, np.ndarray]:
        given = {name: array for name, array in feed.items() if name in known}
        return dict(zip(names, session.run(None, given)))

    return run


def calibrate(
    model: onnx.ModelProto, feeds: Iterable[NamedArrays], tensors: Iterable[str]
) -> dict[str, Range]:
    """The range of each of `tensors`, as the examples have it.

    Args:
        feeds: Inputs of the model by name. They are run twice.

    Raises:
        InputError: there are no examples, or a tensor is not finite on them.
    """
    feeds, names = list(feeds), sorted(tensors)
    if not feeds:
        raise InputError("there is nothing to calibrate with", where="quantize", received="no examples")
    run = model_runner(model, names)
    found = {name: Histogram() for name in names}
    for feed in feeds:
        for name, array in run(feed).items():
            found[name].see_extent(array)
    if wrong := [name for name, one in found.items() if not one.is_finite]:
        raise InputError(
            "a tensor has no range",
            where=", ".join(wrong[:3]),
            received="values that are not finite, or none at all",
            fix="look at the model and the examples: `oar infer` on one of them",
        )
    for feed in feeds:
        for name, array in run(feed).items():
            found[name].count(array)
    return {name: one.best_range() for name, one in found.items()}
