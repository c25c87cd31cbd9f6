"""The ONNX file of an artifact: a model with its task's inference, written and compared when the artifact is."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import jax
import numpy as np

from framework import nn
from framework.core.errors import ConfigError, FormatError
from framework.export import TensorSpec
from framework.export.artifact import ONNX
from framework.export.formats.onnx.bare import without_weights, write_whole
from framework.export.formats.onnx.check import (
    NamedArrays,
    example_inputs,
    export_file,
    import_onnxruntime,
    trial_sizes,
)
from framework.export.formats.onnx.model import MOST_BYTES, OPSET, Function, export_onnx, import_onnx
from framework.export.formats.onnx.ort import write_ort
from framework.export.program import ArrayDict, layer_function
from framework.workflow.export.bundled import find_graph

log = logging.getLogger("oar")


@dataclass(frozen=True)
class OnnxOptions:
    """How an ONNX file is written.

    Attributes:
        opset: Version of the operators, 18 or more.
        layout: Of images: NHWC uint8 as an artifact's program takes them, or NCHW float32 with the same values, 0 to
            255; they are normalised in the program in either case.
        most_bytes: A larger file has its weights beside it.
        for_engine: The file is for an engine of this machine alone: the graph that comes with the package is taken
            where there is one, with the weights beside it, and nothing is compared.
        check: Whether a file that does not compute what the program computes is refused; else the log says it.
        optional: Without such a graph and without the packages that write one there is no file, in place of an error.
    """

    opset: int = OPSET
    layout: Literal["NHWC", "NCHW"] = "NHWC"
    most_bytes: int = MOST_BYTES
    for_engine: bool = False
    optional: bool = False
    check: bool = True
    ort: bool = False

    def check_packages(self) -> None:
        """Raises: MissingExtraError, before any time is spent on a model."""
        import_onnx()
        import_onnxruntime()


@dataclass(frozen=True)
class OnnxFile:
    """The file of one model, which `write` makes.

    Attributes:
        layer: Takes the inputs in order and gives named outputs.
        prefix: Of the names of its weights, which the file does without.
        metadata: Texts in the file.
        graph: The file without its weights, where it was made before.
        examples: Inputs of the layer from the data, for the comparison.
    """

    layer: nn.Layer
    specs: Mapping[str, TensorSpec]
    constraints: Sequence[str]
    options: OnnxOptions
    prefix: str = ""
    metadata: Mapping[str, str] | None = None
    graph: bytes | None = None
    examples: Callable[[], Iterable[NamedArrays]] | None = None

    @property
    def size(self) -> int:
        return sum(int(np.prod(p.shape)) * 4 for _, p in self.layer.named_parameters())

    def write(self, folder: Path) -> Sequence[Path]:
        """Raises: as `export_file`."""
        fn, weights = self._function()
        if self.graph is not None:
            return write_whole(self.graph, weights, folder / ONNX)
        specs = {name: self._outer(spec) for name, spec in self.specs.items()}
        paths = export_file(
            fn,
            weights,
            specs,
            folder / ONNX,
            constraints=self.constraints,
            opset=self.options.opset,
            metadata=self.metadata,
            draw=draw_input,
            most_bytes=self.options.most_bytes,
            examples=self._outer_examples,
            refuse=self.options.check,
        )
        if not self.options.ort:
            return paths
        feeds = [example_inputs(specs, sizes, draw_input) for sizes in trial_sizes(specs, self.constraints)]
        return [*paths, *write_ort(folder / ONNX, feeds)]

    def _outer_examples(self) -> Iterator[NamedArrays]:
        """Examples as the file takes them."""
        for feed in self.examples() if self.examples is not None else ():
            yield {
                name: array.transpose(0, 3, 1, 2).astype(np.float32)
                if self._is_turned(self.specs[name])
                else array
                for name, array in feed.items()
            }

    def bare(self) -> bytes:
        """The file without its weights, as `graph` takes it.

        Raises:
            FormatError: more of it than its weights depends on their values.
        """
        fn, weights = self._function()
        # Buffers that no checkpoint holds are of the model itself: a graph may compute with them.
        stored = {name.removeprefix(self.prefix) for name in self.layer.state_shapes()}
        others = {
            name: array * 2 if array.dtype.kind == "f" and name in stored else array
            for name, array in weights.items()
        }
        specs = {name: self._outer(spec) for name, spec in self.specs.items()}
        one, other = (
            without_weights(
                export_onnx(fn, arrays, specs, constraints=self.constraints, opset=self.options.opset),
                arrays,
                f"{ONNX}.data",
            )
            for arrays in (weights, others)
        )
        if one != other:
            raise FormatError(
                "a constant of the graph is computed from the weights",
                where=str((self.metadata or {}).get("name", "")),
                received="another graph for other weights",
                allowed="graphs whose weights stand in them as they are",
            )
        return one

    def _function(self) -> tuple[Function, dict[str, np.ndarray]]:
        """(function, weights) with the names of weights in the file."""
        fn, weights = layer_function(self.layer, self.specs)

        def renamed(weights: ArrayDict, inputs: ArrayDict) -> ArrayDict:
            arrays = {self.prefix + name: array for name, array in weights.items()}
            return fn(arrays, {name: self._inner(name, array) for name, array in inputs.items()})

        return renamed, {name.removeprefix(self.prefix): array for name, array in weights.items()}

    def _is_turned(self, spec: TensorSpec) -> bool:
        return self.options.layout == "NCHW" and len(spec.shape) == 4 and spec.dtype == "uint8"

    def _outer(self, spec: TensorSpec) -> TensorSpec:
        """An input as the file has it."""
        if not self._is_turned(spec):
            return spec
        n, height, width, channels = spec.shape
        return TensorSpec((n, channels, height, width), "float32")

    def _inner(self, name: str, array: jax.Array) -> jax.Array:
        """An input as the layer takes it."""
        return array.transpose(0, 2, 3, 1) if self._is_turned(self.specs[name]) else array


def with_onnx(options: OnnxOptions | None, file: OnnxFile, key: str | None = None) -> tuple[OnnxFile, ...]:
    """The formats of an artifact: the file, if options ask for it.

    Args:
        key: Of a graph that may have come with the package; see `program_key`.

    Raises:
        ConfigError: another layout for a model that takes no images. MissingExtraError: the packages that write it.
    """
    if options is None:
        return ()
    if options.for_engine:
        graph = None if key is None else find_graph(key)
        if graph is not None:
            return (replace(file, options=options, graph=graph),)
        if options.optional and not can_write_onnx():
            log.info(
                "no ONNX file for the engines of the configuration's table: that needs pip install 'oar-toolkit[onnx]'"
            )
            return ()
    options.check_packages()
    file = replace(file, options=options)
    if options.layout == "NCHW" and not any(map(file._is_turned, file.specs.values())):
        raise ConfigError(
            "this model takes no images",
            where="--onnx_layout",
            received=f"NCHW for inputs {', '.join(file.specs)}",
            allowed="NHWC, the default, which leaves inputs as they are",
        )
    return (file,)


def can_write_onnx() -> bool:
    """Whether the packages are installed that write an ONNX file and compare it."""
    return all(importlib.util.find_spec(name) is not None for name in ("onnx", "onnxruntime"))


def draw_input(
    name: str, shape: tuple[int, ...], feed: NamedArrays, rng: np.random.Generator
) -> np.ndarray | None:
    """What is in the comparison where plain noise would say little: images, numbers of words, sizes of whole images."""
    image = feed.get("image")
    if name == "image" and len(shape) == 4:
        return _draw_image(shape, rng)
    if name in ("input_ids", "pair_ids"):
        return rng.integers(1, 50, shape)
    if name == "positions":
        return rng.integers(0, feed["input_ids"].shape[1], shape)
    if image is not None and name in ("size", "width"):
        channels_last = image.shape[3] in (1, 3)
        height, width = image.shape[1:3] if channels_last else image.shape[2:4]
        return np.broadcast_to(np.array([height, width] if name == "size" else width), shape)
    return None


def _draw_image(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Blocks of colours with noise on them, 0 to 255: on noise alone a network sees the same everywhere, and which of
    many equal scores is the best is up to rounding."""
    axes = (1, 2) if shape[3] in (1, 3) else (2, 3)
    coarse = [-(-size // 16) if axis in axes else size for axis, size in enumerate(shape)]
    image = rng.integers(20, 236, coarse)
    for axis in axes:
        image = np.repeat(image, 16, axis).take(np.arange(shape[axis]), axis)
    return image + rng.integers(-20, 20, shape)
