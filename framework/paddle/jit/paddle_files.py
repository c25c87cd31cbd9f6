"""Models that Paddle itself saved (`.pdmodel` or `.json`, and `.pdiparams`), for `jit.load` and
`static.load_inference_model`."""

from __future__ import annotations

from pathlib import Path

from framework.interop import load_program
from framework.interop.graph.paddle import build_paddle_layer
from framework.interop.source import Source
from framework.paddle._kernel.bridges import WrappedLayer
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.jit.spec import InputSpec

_PROGRAMS, _PARAMETERS = (".pdmodel", ".json"), ".pdiparams"


def find_files(prefix: str | Path) -> tuple[Path, Path | None] | None:
    """(the program, its parameters or None where it has none) of a model that Paddle saved; None: there is none."""
    for ending in _PROGRAMS:
        program = Path(f"{prefix}{ending}")
        if program.is_file():
            parameters = Path(f"{prefix}{_PARAMETERS}")
            return program, parameters if parameters.is_file() else None
    return None


class PaddleProgramLayer(WrappedLayer):
    """A layer whose forward is a program that Paddle saved, in the program's layout and with its names of parameters,
    which can be trained; running statistics and dropout stay as they were saved.

    Raises:
        FormatError: a file is damaged or missing, or the program has operators that are not known.
    """

    def __init__(self, program: Path | Source, parameters: Path | Source | None) -> None:
        graph = build_paddle_layer(load_program(program, parameters))
        self.output_names = [one.name for one in graph.outputs]
        self._specs = [
            InputSpec(
                [size if isinstance(size, int) else -1 for size in one.shape or ()], str(one.dtype), one.name
            )
            for one in graph.inputs
        ]
        super().__init__(graph, "NHWC")
        self.eval()

    def forward(self, *inputs: object) -> Tensor | list[Tensor]:
        """One output, or a list of several."""
        result = super().forward(*inputs)
        return list(result) if isinstance(result, tuple) else result  # type: ignore[return-value]

    def input_spec(self) -> list[InputSpec]:
        """The inputs as they were declared."""
        return self._specs
