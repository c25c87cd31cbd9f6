"""The `.tflite` of an artifact: the program with fixed sizes for LiteRT, compared when the artifact is written."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from framework import nn
from framework.core.errors import ConfigError, FormatError, InputError
from framework.core.types import JSON
from framework.export import TensorSpec
from framework.export.artifact import LABELS_FILE, TFLITE
from framework.export.formats.onnx.check import NamedArrays, compare, compare_rows, is_close
from framework.export.formats.onnx.ranked import ranked_outputs
from framework.export.formats.tflite.convert import Signature, convert, make_signatures
from framework.export.formats.tflite.metadata import ModelMetadata, TensorMetadata
from framework.export.formats.tflite.model import add_metadata, name_tensors, tensor_shapes
from framework.export.formats.tflite.packages import (
    import_converter,
    import_interpreter,
    import_quantizer,
)
from framework.export.program import ArrayDict, layer_function
from framework.inference.engine import Engine
from framework.workflow.export.agreement import agreement
from framework.workflow.export.examples import spread
from framework.workflow.export.onnx import draw_input

log = logging.getLogger("oar")
DTypes = Literal["float32", "float16", "int8_weights", "int8"]
DTYPES: tuple[DTypes, ...] = ("float32", "float16", "int8_weights", "int8")
LEAST_AGREEMENT = {"float16": 0.99, "int8_weights": 0.9, "int8": 0.9}
"""With the program on the examples, where no labelled data say more: 1 less the relative error of the output that is
furthest off."""
SUMMARY = "OAR_METADATA"
"""The buffer of metadata with a JSON of all that the artifact knows."""
_BREAKS = re.compile(
    r"[\r\n]+"
)  # in a name: readers of `labels.txt` would take what follows for the next class


@dataclass(frozen=True)
class TfliteOptions:
    """How a `.tflite` is written.

    Attributes:
        dtype: Of the weights; int8_weights computes in float32, int8 in layers of int8, with ranges that examples
            give.
        input_size: (height, width) of images. None: the program's own, or that of the evaluation's first image.
        data: A folder of images, or a file with a text a line, in place of the configuration's own data as examples.
        examples: How many of them; of a pipeline also of the inputs of each stage.
        max_loss: Of the score on `data.eval` in smaller types, as a share of 1.
        check: Whether a file that does not compute what the program computes is refused; else the log says it.
    """

    dtype: DTypes = "float32"
    input_size: tuple[int, int] | None = None
    data: Path | None = None
    examples: int = 64
    max_loss: float = 0.01
    check: bool = True

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise InputError(
                "unknown type of a .tflite", received=repr(self.dtype), allowed=", ".join(DTYPES)
            )
        if self.examples < 1:
            raise InputError(
                "ranges need an example", where="examples", received=self.examples, allowed="1 or more"
            )
        if self.input_size is not None and min(self.input_size) < 1:
            raise InputError(
                "an image has pixels",
                where="--input_size",
                received=list(self.input_size),
                allowed="1 or more",
            )

    def check_packages(self) -> None:
        """Raises: MissingExtraError, before any time is spent on a model."""
        import_converter()
        import_interpreter()
        if self.dtype != "float32":
            import_quantizer()


@dataclass(frozen=True)
class TfliteFile:
    """The file of one model, which `write` makes.

    Attributes:
        layer: Takes the inputs in order and gives named outputs.
        specs: Its inputs.
        sizes: Numbers for their symbolic sizes, a signature each.
        about: The artifact's config, for the metadata.
        vocabulary: See `FixedProgram`.
        examples: Inputs of the layer from the data, one sample each.
        score: The name and the value of the score on labelled data that an engine reaches, where there are some.
        program: The artifact's program, whose score is held.
    """

    layer: nn.Layer
    specs: Mapping[str, TensorSpec]
    sizes: Sequence[Mapping[str, int]]
    about: Mapping[str, JSON]
    options: TfliteOptions
    vocabulary: Sequence[str] = ()
    examples: Callable[[], Sequence[NamedArrays]] = field(default=lambda: [])
    score: Callable[[Engine], tuple[str, float] | None] | None = None
    program: Callable[[], Engine] | None = None

    @property
    def size(self) -> int:
        width = {"float32": 4, "float16": 2, "int8_weights": 1, "int8": 1}[self.options.dtype]
        return sum(int(np.prod(p.shape)) * width for _, p in self.layer.named_parameters())

    def write(self, folder: Path) -> Sequence[Path]:
        """Raises: FormatError: the file would not compute what the program computes. Others as `convert`."""
        fn, weights = layer_function(self.layer, self.specs)
        signatures = make_signatures(self.specs, self.sizes)
        data = name_tensors(convert(fn, weights, signatures))
        examples = [one for feed in self.examples() for one in _single(feed)]
        if self.options.dtype == "float16":
            from framework.compress.tflite import to_float16

            data = to_float16(data)
        elif self.options.dtype == "int8_weights":
            from framework.compress.tflite import to_int8_weights

            data = to_int8_weights(data)
        elif self.options.dtype == "int8":
            from framework.compress.tflite import to_int8

            most = self.options.examples
            data = to_int8(data, {one.name: calibration_feeds(examples, one, most) for one in signatures})
        path = folder / TFLITE
        metadata, summary = self._metadata(data)
        path.write_bytes(add_metadata(data, metadata, [(SUMMARY, summary)]))
        self._check(path, fn, weights, signatures, examples)
        if LABELS_FILE in metadata.files:
            (folder / LABELS_FILE).write_bytes(metadata.files[LABELS_FILE])
            return [path, folder / LABELS_FILE]
        return [path]

    # -- what it computes ---------------------------------------------------------------------------------------------

    def _check(
        self,
        path: Path,
        fn: Callable[[ArrayDict, ArrayDict], ArrayDict],
        weights: Mapping[str, np.ndarray],
        signatures: Sequence[Signature],
        examples: Sequence[NamedArrays],
    ) -> None:
        from framework.inference.engines.litert import LiteRTEngine

        engine = LiteRTEngine(path)
        if self.options.dtype != "float32":
            usable = [one for one in examples if any(_fits(one, signature) for signature in signatures)]
            self._check_score(engine, spread(usable, self.options.examples))
            return
        for signature in signatures:
            differences = compare(path, fn, weights, signature.inputs, draw=draw_input, run=engine)
            if any(one.is_rows and not is_close(one) for one in differences):
                fitting = [one for one in examples if _fits(one, signature)]
                if fitting:
                    rows = compare_rows(fn, weights, fitting[:6], engine)
                    differences = [one for one in differences if not one.is_rows] + rows
            for one in differences:
                if not is_close(one):
                    self._refuse(one.text, "1e-4 of the largest value of an output")

    def _check_score(self, engine: Engine, usable: Sequence[NamedArrays]) -> None:
        """Hold the score of labelled data, else the agreement with the program on examples of the file's sizes."""
        name = str(self.about.get("name", TFLITE))
        program = None if self.program is None else self.program()
        if program is None:
            return
        reference = None if self.score is None else self.score(program)
        scored = None if self.score is None or reference is None else self.score(engine)
        if reference is not None and scored is not None:
            (metric, before), (_, after) = reference, scored
            log.info("%s: %s %.4f, as .tflite in %s %.4f", name, metric, before, self.options.dtype, after)
            if after < before - self.options.max_loss:
                self._refuse(
                    f"{metric} {after:.4f} in place of {before:.4f}", f"a loss of {self.options.max_loss:g}"
                )
            return
        expected = [program(one) for one in usable]
        if not usable or any(ranked_outputs(outputs) for outputs in expected):
            log.warning(
                "%s: nothing says what %s costs: there are no labelled data", name, self.options.dtype
            )
            return
        reached, least = (
            agreement(expected, [engine(one) for one in usable]),
            LEAST_AGREEMENT[self.options.dtype],
        )
        log.info("%s: agreement of the .tflite in %s %.4f", name, self.options.dtype, reached)
        if reached < least:
            self._refuse(f"agreement {reached:.4f} on {len(usable)} examples", f"{least:g} or more")

    def _refuse(self, received: str, allowed: str) -> None:
        if not self.options.check:
            log.warning(f"{TFLITE}: {received}; it is written all the same, as --no-tflite_check says")
            return
        raise FormatError(
            "the .tflite would not compute what the program computes, so it was not written",
            where=str(self.about.get("name", TFLITE)),
            received=received,
            allowed=allowed,
            fix="more --examples of the images that the model will see, --tflite_type int8_weights, or float32; "
            "--no-tflite_check writes it all the same",
        )

    # -- what it says of itself ---------------------------------------------------------------------------------------

    def _metadata(self, data: bytes) -> tuple[ModelMetadata, str]:
        """The metadata, and the JSON of `SUMMARY`."""
        listed = self.about.get("labels")
        labels = [str(label) for label in listed] if isinstance(listed, list | tuple) else []
        lines = [_BREAKS.sub(" ", line) for line in labels or self.vocabulary]
        subgraphs = [
            (
                [self._input(name, shape) for name, shape in inputs.items()],
                [self._output(name, shape, labels, lines) for name, shape in outputs.items()],
            )
            for inputs, outputs in tensor_shapes(data)
        ]
        files = {LABELS_FILE: "".join(f"{line}\n" for line in lines).encode()} if lines else {}
        name = str(self.about.get("name", ""))
        domain = str(self.about.get("domain", ""))
        metadata = ModelMetadata(
            name, f"{domain}, {self.options.dtype}, written by Oar", subgraphs=subgraphs, files=files
        )
        summary = {
            "name": name,
            "domain": domain,
            "dtype": self.options.dtype,
            "inputs": {name: [list(spec.shape), spec.dtype] for name, spec in self.specs.items()},
            "sizes": [dict(size) for size in self.sizes],
            "layout": "NHWC, RGB, uint8 0 to 255; the program normalises",
            "outputs": {one.name: one.description for one in (subgraphs[0][1] if subgraphs else [])},
            "transforms": self.about.get("transforms", []),
            "labels": labels,
        }
        return metadata, json.dumps(summary, ensure_ascii=False)

    def _input(self, name: str, shape: Sequence[int]) -> TensorMetadata:
        if len(shape) != 4 or shape[3] not in (1, 3):
            return TensorMetadata(name, INPUTS.get(name, f"{list(shape)} {self.specs[name].dtype}"))
        return TensorMetadata(
            name,
            "image, NHWC, RGB, 0 to 255 uint8; normalised in the program"
            if self.specs[name].dtype == "uint8"
            else f"image, NHWC, {self.specs[name].dtype}",
            "image",
            (shape[1], shape[2]),
            shape[3],
            value_range=(0.0, 255.0) if self.specs[name].dtype == "uint8" else None,
        )

    def _output(
        self, name: str, shape: Sequence[int], labels: Sequence[str], lines: Sequence[str]
    ) -> TensorMetadata:
        description = OUTPUTS.get(name, f"{name} {list(shape)}")
        if name == "boxes" and shape and shape[-1] == 4:
            return TensorMetadata(name, description, "boxes")
        file = LABELS_FILE if lines else None
        if name in ("labels", "indices", "classes"):
            kind = "values" if labels else "vocabulary"
            return TensorMetadata(name, description, labels=file, labels_of=kind)
        if labels and shape and shape[-1] == len(labels) and len(shape) == 2:
            return TensorMetadata(name, f"probability of each label, 0 to 1, {list(shape)}", labels=file)
        return TensorMetadata(name, description)


INPUTS = {
    "size": "(height, width) of the image inside of the input, in pixels from its upper left corner",
    "width": "columns of each line inside of the input",
}
OUTPUTS = {
    "boxes": "x0, y0, x1, y1 in pixels of the input, right and bottom exclusive, best first",
    "scores": "score of each row, 0 to 1; 0 is padding",
    "labels": "index of the class of each row or pixel",
    "probability": "probability of each pixel, or of each class, 0 to 1",
    "indices": "the best class of each step; 0 is the blank of CTC",
    "probabilities": "probability of the best class of each step, 0 to 1",
}


# -- sizes and examples -----------------------------------------------------------------------------------------------


def sizes_of_inputs(
    specs: Mapping[str, TensorSpec],
    buckets: Sequence[int] | None,
    example: Callable[[], NamedArrays | None],
    where: str,
) -> tuple[Mapping[str, int], ...]:
    """Numbers for the symbolic sizes of a program's inputs: the buckets of texts, else those of an example.

    Raises:
        ConfigError: nothing says how large the inputs are.
    """
    free = {
        symbol for spec in specs.values() for size in spec.shape[1:] if (symbol := _symbol(size)) is not None
    }
    first = {
        symbol: 1
        for spec in specs.values()
        for size in spec.shape[:1]
        if (symbol := _symbol(size)) is not None
    }
    if not free:
        return (first,)
    if len(free) == 1 and buckets:
        return tuple({**first, next(iter(free)): length} for length in buckets)
    feed = example()
    sizes: dict[str, int] = {}
    for name, spec in specs.items() if feed is not None else ():
        assert feed is not None
        for size, length in zip(spec.shape[1:], feed[name].shape[1:]):
            if (symbol := _symbol(size)) is not None:
                sizes[symbol] = length // int(str(size).partition("*")[0] if "*" in str(size) else 1)
    if free - sizes.keys():
        raise ConfigError(
            "a .tflite has fixed sizes, and nothing says how large the images are",
            where=where,
            received="; ".join(f"{name} [{', '.join(map(str, spec.shape))}]" for name, spec in specs.items()),
            allowed="a size, or the data of the configuration, whose first image then has it",
            fix="--input_size H W",
        )
    return ({**first, **sizes},)


def _symbol(size: int | str) -> str | None:
    return None if isinstance(size, int) else str(size).rpartition("*")[2].strip()


def _single(feed: NamedArrays) -> list[NamedArrays]:
    """The samples of a batch, each as a batch of one."""
    count = min(len(array) for array in feed.values())
    return [{name: array[index : index + 1] for name, array in feed.items()} for index in range(count)]


def _fits(feed: NamedArrays, signature: Signature) -> bool:
    return all(feed[name].shape == shape for name, shape in signature.shapes.items())


def calibration_feeds(examples: Sequence[NamedArrays], signature: Signature, most: int) -> list[NamedArrays]:
    """At most so many examples for one signature: those of its sizes, else others cut or filled up with zeros to them.

    A stage of a pipeline has many of an image, such as its lines, and all of them would take hours.
    """
    fitting = spread([one for one in examples if _fits(one, signature)], most)
    return fitting or [
        {name: _resize(feed[name], shape) for name, shape in signature.shapes.items()}
        for feed in spread(examples, most)
    ]


def _resize(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    cut = array[tuple(slice(size) for size in shape)]
    return np.pad(cut, [(0, size - length) for size, length in zip(shape, cut.shape)])
