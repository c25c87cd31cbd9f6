"""LiteRT (TensorFlow Lite): what runs on phones and small boards, here on this machine's CPU."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from framework.core.errors import DeviceError, FormatError, InputError, ShapeError
from framework.core.process import cpu_count
from framework.export.artifact import TFLITE, Artifact
from framework.export.formats.tflite.packages import import_interpreter
from framework.inference.engine import TensorShape, check_inputs, describe


def find_tflite_file(artifact: Artifact) -> Path:
    """The `.tflite` of an artifact. Raises: FormatError, where it has none."""
    path = artifact.format_file(TFLITE)
    if path is not None:
        return path
    raise FormatError(
        "the artifact has no .tflite, which this engine runs",
        where=artifact.source,
        received="an artifact that was not saved"
        if artifact.folder is None
        else f"no {TFLITE} beside its program",
        allowed="an artifact that was exported as .tflite too, or engine xla",
        fix="oar export -c … --format tflite",
    )


class LiteRTEngine:
    """Run a `.tflite` with LiteRT on the CPU. A file has fixed sizes, a signature for each; a batch is run sample by
    sample where the file takes one. Safe in threads: calls wait for each other.

    Args:
        file: The `.tflite`.
        threads: CPUs for one call; None is all.
        inputs: Shapes and dtypes by name as the artifact's config has them; see `declared_inputs`.

    Attributes:
        inputs: Shape and dtype of each input; the sizes that differ between signatures are symbolic.
        outputs: Shape and dtype of each output, by sorted names.

    Raises:
        MissingExtraError: the package is not installed. FormatError: it cannot read the file.
    """

    takes_any_shape = False

    def __init__(
        self, file: Path, threads: int | None = None, inputs: Mapping[str, TensorShape] | None = None
    ) -> None:
        module = import_interpreter()
        try:
            self._interpreter = module.Interpreter(model_path=str(file), num_threads=threads or cpu_count())
            names = list(self._interpreter.get_signature_list())
            runners = [self._interpreter.get_signature_runner(name) for name in names]
        except (ValueError, RuntimeError) as error:
            raise FormatError(
                "LiteRT cannot read the file",
                where=file,
                received=next(iter(str(error).splitlines()), "")[:300],
                allowed="a .tflite of operators that it has",
            ) from error
        if not runners:
            raise FormatError(
                "the .tflite has no signature, so its inputs have no names",
                where=file,
                received="no signature",
                allowed="a file that `oar export --format tflite` wrote",
            )
        self._runners = dict(zip(names, runners))
        self._shapes = {
            name: {key: tuple(map(int, one["shape"])) for key, one in runner.get_input_details().items()}
            for name, runner in self._runners.items()
        }
        self._file, self._lock = file, threading.Lock()
        first = runners[0]
        dtypes = {key: np.dtype(one["dtype"]) for key, one in first.get_input_details().items()}
        self.inputs = {
            name: TensorShape(_common([shapes[name] for shapes in self._shapes.values()], name), dtypes[name])
            for name in sorted(dtypes)
        }
        if inputs is not None:
            self._check_declared(inputs)
        self.outputs = {
            name: TensorShape(("n", *map(int, one["shape"][1:])), np.dtype(one["dtype"]))
            for name, one in sorted(first.get_output_details().items())
        }

    @property
    def compile_count(self) -> int:
        """The number of signatures: each has its sizes."""
        return len(self._runners)

    def __call__(self, inputs: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
        """Outputs by name. Raises: ShapeError, where no signature of the file takes these sizes."""
        arrays = check_inputs(inputs, self.inputs)
        name, count = self._signature_for({key: array.shape for key, array in arrays.items()})
        size = next(iter(self._shapes[name].values()))[0]
        runner = self._runners[name]
        with self._lock:
            calls = [
                {
                    key: np.array(value)
                    for key, value in runner(
                        **{key: array[first : first + size] for key, array in arrays.items()}
                    ).items()
                }
                for first in range(0, count, size)
            ]
        return {
            key: calls[0][key] if len(calls) == 1 else np.concatenate([call[key] for call in calls])
            for key in self.outputs
        }

    def start(self, inputs: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
        """As a call."""
        return self(inputs)

    def prepare(self, shapes: Iterable[Mapping[str, tuple[int, ...]]]) -> None:
        """Nothing is done: every signature is ready."""
        return None

    def _signature_for(self, shapes: Mapping[str, tuple[int, ...]]) -> tuple[str, int]:
        """(signature, samples) for inputs of these shapes."""
        counts = {shape[0] for shape in shapes.values()}
        for name, signature in self._shapes.items():
            if all(signature[key][1:] == shape[1:] for key, shape in shapes.items()):
                size = next(iter(signature.values()))[0]
                if len(counts) == 1 and (count := min(counts)) % size == 0:
                    return name, count
        raise ShapeError(
            "the .tflite was not written for these sizes",
            where=self._file,
            received=", ".join(f"{key} {list(shape)}" for key, shape in shapes.items()),
            allowed="; ".join(
                ", ".join(f"{key} {list(shape)}" for key, shape in one.items())
                for one in self._shapes.values()
            ),
            fix="export it with --input_size H W of the images, or scale them to it",
        )

    def _check_declared(self, declared: Mapping[str, TensorShape]) -> None:
        mine = {name: one.dtype for name, one in self.inputs.items()}
        if mine != {name: one.dtype for name, one in declared.items()}:
            raise FormatError(
                "the .tflite has other inputs than the artifact",
                where=self._file,
                received=describe(self.inputs),
                allowed=describe(declared),
                fix="export the artifact again, with its .tflite",
            )


def check_device(device: str, precision: str) -> None:
    """Raises: DeviceError, InputError, where LiteRT cannot be told to run so here."""
    if device != "cpu":
        raise DeviceError(
            "LiteRT runs on the CPU here",
            received=device,
            allowed="cpu",
            fix="its drivers for GPUs and NPUs are those of phones; engine xla or onnxruntime drives a GPU",
        )
    if precision == "bfloat16":
        raise InputError(
            "a .tflite computes in the types that are in it",
            received=precision,
            allowed="auto, float32",
            fix="oar export --format tflite --tflite_type float16 or int8",
        )


def _common(shapes: list[tuple[int, ...]], name: str) -> tuple[int | str, ...]:
    """The sizes that all signatures have, and a name for those that differ; the first is the number of samples."""
    sizes: list[int | str] = ["n"] if shapes[0] else []
    for axis in range(1, len(shapes[0])):
        values = {shape[axis] for shape in shapes}
        sizes.append(values.pop() if len(values) == 1 else f"{name}_{axis}")
    return tuple(sizes)
