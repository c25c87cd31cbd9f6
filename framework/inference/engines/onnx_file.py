"""What the engines of ONNX files share: where an artifact's file is, and how inputs and outputs are declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from framework.core.errors import FormatError, ShapeError
from framework.core.lazy import LazyModule
from framework.export.artifact import ONNX, Artifact
from framework.inference.engine import TensorShape, check_inputs, describe

if TYPE_CHECKING:
    import jax.numpy as jnp
else:
    jnp = LazyModule("jax.numpy")


def find_onnx_file(artifact: Artifact) -> Path:
    """The ONNX file of an artifact.

    Raises:
        FormatError: the artifact has none.
    """
    if artifact.onnx_file is not None:
        return artifact.onnx_file
    raise FormatError(
        "the artifact has no ONNX file, which this engine runs",
        where=artifact.source,
        received="an artifact that was not saved"
        if artifact.folder is None
        else f"no {ONNX} beside its program",
        allowed="an artifact that was exported as ONNX too, or engine xla",
        fix="oar export -c … --format onnx",
    )


def declared_inputs(artifact: Artifact) -> dict[str, TensorShape] | None:
    """The inputs as the artifact's config has them: with names of sizes that other formats may not keep."""
    inputs = artifact.config.get("inputs")
    if not isinstance(inputs, dict):
        return None
    return {name: TensorShape(tuple(shape), _read_dtype(dtype)) for name, (shape, dtype) in inputs.items()}


def _read_dtype(name: str) -> np.dtype:
    """numpy has bfloat16 from jax."""
    return jnp.dtype(name) if name == "bfloat16" else np.dtype(name)


class OnnxEngine:
    """An engine whose package runs ONNX files of any size after one preparation.

    Args:
        file: The ONNX file.
        inputs: Shapes and dtypes by name, where it is known better than the file says; see `declared_inputs`.

    Attributes:
        inputs: Shape and dtype of each input.
        outputs: Shape and dtype of each output, by sorted names.
    """

    inputs: dict[str, TensorShape]
    outputs: dict[str, TensorShape]
    takes_any_shape = True

    @property
    def compile_count(self) -> int:
        """1: the file is prepared once, for every size."""
        return 1

    def run(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs by name. Safe in threads. Raises: RuntimeError, where the graph does not take these sizes."""
        raise NotImplementedError

    def __call__(self, inputs: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
        """Outputs by name.

        Raises:
            ShapeError: the inputs are not those of the program, by name, dtype or shape.
        """
        arrays = check_inputs(inputs, self.inputs)
        try:
            return self.run(arrays)
        except RuntimeError as error:
            raise ShapeError(
                "the program does not take these shapes",
                received=", ".join(f"{name} {array.shape}" for name, array in arrays.items())
                + f": {next(iter(str(error).splitlines()), '')}",
                allowed=describe(self.inputs),
            ) from error

    def start(self, inputs: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
        """As a call: these packages use all cores for one call, so nothing is gained by another at the same time."""
        return self(inputs)

    def prepare(self, shapes: Iterable[Mapping[str, tuple[int, ...]]]) -> None:
        """Nothing is done: no shape needs a program of its own."""
        return None

    def _declare(
        self,
        inputs: Mapping[str, TensorShape],
        outputs: Mapping[str, TensorShape],
        declared: Mapping[str, TensorShape] | None,
        file: Path,
    ) -> None:
        """Set inputs and outputs. Raises: FormatError, where the file has other inputs than are known."""
        self.inputs = (
            dict(inputs) if declared is None else {name: declared[name] for name in sorted(declared)}
        )
        self.outputs = {name: outputs[name] for name in sorted(outputs)}
        if {name: t.dtype for name, t in self.inputs.items()} != {
            name: t.dtype for name, t in inputs.items()
        }:
            raise FormatError(
                "the ONNX file has other inputs than the artifact",
                where=file,
                received=describe(inputs),
                allowed=describe(self.inputs),
                fix="export the artifact again, with its ONNX file",
            )
