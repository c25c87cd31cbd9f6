"""One model on its way to int8: calibrated once, then written with more or fewer of its layers in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from framework.compress.calibrate import calibrate
from framework.compress.insert import insert_qdq
from framework.compress.layers import (
    QuantizableLayer,
    find_layers,
    quantized_tensors,
)
from framework.compress.ranges import Range
from framework.compress.search import layer_noise, leave_in_float
from framework.core.errors import FormatError
from framework.export.artifact import ONNX
from framework.export.formats.onnx.check import NamedArrays
from framework.export.formats.onnx.model import import_onnx, write_onnx

if TYPE_CHECKING:
    import onnx

_NOISE_FEEDS = 4  # examples are enough to rank layers, and each layer is run on all of them


@dataclass(frozen=True)
class QuantizedModel:
    """The ONNX file of an artifact in int8 (`FormatFiles`).

    Attributes:
        in_float: Names of the layers that stayed in float32.
    """

    model: onnx.ModelProto
    in_float: frozenset[str]

    @property
    def size(self) -> int:
        return self.model.ByteSize()

    def write(self, folder: Path) -> Sequence[Path]:
        return write_onnx(self.model, folder / ONNX)


@dataclass(frozen=True)
class Quantizer:
    """A model, its layers, the ranges of its tensors, and the examples that they are from.

    Attributes:
        bits: Of weights: 8, or 7.
    """

    model: onnx.ModelProto
    layers: tuple[QuantizableLayer, ...]
    ranges: dict[str, Range]
    feeds: tuple[NamedArrays, ...]
    bits: int

    @classmethod
    def read(cls, file: str | Path, feeds: Sequence[NamedArrays], bits: int = 8) -> Quantizer:
        """Of a model in float32.

        Args:
            feeds: Inputs by name; see `calibrate`.

        Raises:
            FormatError: no layer of it could be in int8, or it has int8 layers already.
        """
        model = import_onnx().load(str(file))
        layers = find_layers(model)
        done = any(node.op_type == "QuantizeLinear" for node in model.graph.node)
        if done or not layers:
            raise FormatError(
                "this model cannot be quantised",
                where=file,
                received="QuantizeLinear in it" if done else "no convolution or product with a constant",
                allowed="a model in float32 with such layers",
            )
        ranges = calibrate(model, feeds, quantized_tensors(model, layers))
        return cls(model, tuple(layers), ranges, tuple(feeds), bits)

    def quantize(self, in_float: frozenset[str] = frozenset()) -> QuantizedModel:
        """The model with all layers in int8, but for these."""
        return QuantizedModel(insert_qdq(self.model, self.layers, self.ranges, in_float, self.bits), in_float)

    def search(self, file: Path, holds: Callable[[frozenset[str]], bool]) -> QuantizedModel:
        """The model with as many layers in int8 as `holds` allows; it is written to `file` before `holds(in_float)` is
        asked, and at the end.

        Raises:
            FormatError: it holds with no layer in int8.
        """

        def tried(in_float: frozenset[str]) -> bool:
            self.quantize(in_float).write(file.parent)
            return holds(in_float)

        if tried(frozenset()):  # ranking the layers takes its time
            return self.quantize()
        noise = layer_noise(self.model, self.layers, self.ranges, self.feeds[:_NOISE_FEEDS], self.bits)
        chosen = leave_in_float(noise, tried)
        if chosen is None:
            raise FormatError(
                "the score does not hold with any layer in int8",
                where=file.name,
                received=f"{len(self.layers)} layers",
                allowed="a larger loss (--max_loss), or more examples (--examples)",
            )
        found = self.quantize(chosen)
        found.write(file.parent)
        return found
