"""A written ONNX file against the program that it is of: the same arrays through ONNX Runtime and through XLA."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import jax
import numpy as np
from jax import export

from framework.core.compilation import quick_compile_options
from framework.core.disk import disk_errors
from framework.core.errors import FormatError, MissingExtraError, ShapeError
from framework.core.whole_folder import fresh_folder
from framework.export.formats.onnx.graph import Size, is_symbolic, linear_form
from framework.export.formats.onnx.model import (
    MOST_BYTES,
    OPSET,
    Function,
    export_onnx,
    move_files,
    write_onnx,
)
from framework.export.formats.onnx.ranked import (
    LEAST_SCALE,
    LEAST_SCORE,
    RANKED,
    TOLERANCE,
    NamedArrays,
    Program,
    Weights,
    exchanged,
    own_exchange,
    ranked_outputs,
    unmatched_rows,
)
from framework.export.program import ArrayDict, symbolic_arguments
from framework.export.specs import TensorSpec
from framework.nn.functional.lowering import platform_scope

Sizes = dict[str, int]
Draw = Callable[[str, tuple[int, ...], NamedArrays, np.random.Generator], "np.ndarray | None"]
MOST_FLIPS = 1e-3  # share of the whole numbers of an output, such as classes, that rounding may turn
MOST_ROWS = (
    0.05  # share of them that rounding may exchange: scores that are almost equal, boxes at the threshold
)
_MOST_EXCHANGED = 0.6  # share of rows, however many the program itself exchanges
_log = logging.getLogger("oar")
_BOUND = re.compile(r"\s*(\w+)\s*([<>]=)\s*(\d+)\s*")


@dataclass(frozen=True)
class Difference:
    """How far an output of the file is from the program's: of floats relative to the largest, else a share."""

    output: str
    shapes: dict[str, tuple[int, ...]]
    value: float
    allowed: float | None = None
    """The most; None: that of its kind."""

    @property
    def is_rows(self) -> bool:
        """Whether the value is a share of ranked rows."""
        return self.output.endswith("(rows)")

    @property
    def text(self) -> str:
        sizes = ", ".join(f"{name} {list(shape)}" for name, shape in self.shapes.items())
        return f"{self.output} differs by {self.value:.2g} for {sizes}"


def import_onnxruntime() -> ModuleType:
    """The package. Raises: MissingExtraError."""
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtraError("onnxruntime", "onnx", "comparing an ONNX file with its program") from None
    return onnxruntime


def export_file(
    fn: Function,
    weights: Mapping[str, jax.Array | np.ndarray],
    inputs: Mapping[str, TensorSpec],
    path: str | Path,
    *,
    constraints: Sequence[str] = (),
    opset: int = OPSET,
    metadata: Mapping[str, str] | None = None,
    draw: Draw | None = None,
    most_bytes: int = MOST_BYTES,
    examples: Callable[[], Iterable[NamedArrays]] | None = None,
    refuse: bool = True,
) -> list[Path]:
    """Write `fn(weights, inputs) -> outputs` as ONNX, compared with the function in ONNX Runtime before; -> the files.

    Args:
        draw: Gives the arrays of some inputs for the comparison, None for the others: (name, shape, the arrays of the
            inputs before it, generator).
        examples: Inputs of the data, one sample each. Where ranked rows of drawn inputs differ, those of these decide.
        refuse: Whether a file that differs is not written; else the log says how far it does.
        Others: as `export_onnx` and `write_onnx`.

    Raises:
        FormatError: an output is not the program's; nothing is written then. Others: as `export_onnx`.
    """
    import_onnxruntime()
    model = export_onnx(fn, weights, inputs, constraints=constraints, opset=opset, metadata=metadata)
    path = Path(path)
    with disk_errors(path, model.ByteSize()):
        path.parent.mkdir(parents=True, exist_ok=True)
        with fresh_folder(path) as fresh:
            written = write_onnx(model, fresh / path.name, most_bytes)
            del model
            run = onnxruntime_runner(written[-1])
            differences = compare(
                written[-1], fn, weights, inputs, constraints=constraints, draw=draw, run=run
            )
            if any(one.is_rows and not is_close(one) for one in differences):
                drawn = [example_inputs(inputs, sizes, draw) for sizes in trial_sizes(inputs, constraints)]
                feeds = list(examples()) if examples is not None else []
                rows = compare_rows(fn, weights, feeds or drawn, run)
                differences = [one for one in differences if not one.is_rows] + rows
            worst = max(differences, key=lambda one: one.value / _limit(one))
            if not is_close(worst):
                if refuse:
                    raise FormatError(
                        "the ONNX file would not compute what the program computes, so it was not written",
                        where=path,
                        received=worst.text,
                        allowed=f"{TOLERANCE:g} of the largest value; of whole numbers {MOST_FLIPS:g} of all",
                        fix="report it with the configuration; --no-onnx_check writes it all the same; the artifact "
                        "without ONNX is not affected",
                    )
                _log.warning(
                    f"{path.name}: {worst.text}; it is written all the same, as --no-onnx_check says"
                )
            return move_files(written, path.parent)


def _limit(one: Difference) -> float:
    if one.allowed is not None:
        return one.allowed
    if one.is_rows:
        return MOST_ROWS
    return MOST_FLIPS if one.output.endswith("(whole numbers)") else TOLERANCE


def is_close(one: Difference) -> bool:
    """Whether a difference is one of rounding."""
    return one.value <= _limit(one)


def compare(
    file: Path,
    fn: Function,
    weights: Mapping[str, jax.Array | np.ndarray],
    inputs: Mapping[str, TensorSpec],
    *,
    constraints: Sequence[str] = (),
    draw: Draw | None = None,
    run: Callable[[NamedArrays], NamedArrays] | None = None,
) -> list[Difference]:
    """The differences of every output, on two sizes of every symbol. `run` is another engine than ONNX Runtime."""
    run = onnxruntime_runner(file) if run is None else run
    differences, program = [], _compiled(fn)
    arrays = {name: np.asarray(array) for name, array in weights.items()}
    for sizes in trial_sizes(inputs, constraints):
        feed = example_inputs(inputs, sizes, draw)
        shapes = {name: array.shape for name, array in feed.items()}
        differences += _differences(program(arrays, feed), run(feed), shapes)
    return differences


def compare_rows(
    fn: Function,
    weights: Mapping[str, jax.Array | np.ndarray],
    feeds: Sequence[NamedArrays],
    run: Callable[[NamedArrays], NamedArrays],
) -> list[Difference]:
    """The share of ranked rows that count and differ, for each of these inputs. Where it is more than rounding mostly
    exchanges, half as much again as the program itself exchanges is allowed; see `ranked.py`."""
    differences, program = [], _compiled(fn)
    arrays = {name: np.asarray(array) for name, array in weights.items()}
    for feed in feeds:
        expected, shapes = program(arrays, feed), {name: array.shape for name, array in feed.items()}
        name = f"{', '.join(ranked_outputs(expected))} (rows)"
        share, allowed = exchanged(expected, run(feed)), MOST_ROWS
        if share > allowed:
            allowed = max(allowed, 1.5 * own_exchange(program, arrays, feed, expected))
        differences.append(Difference(name, shapes, share, min(allowed, _MOST_EXCHANGED)))
    _log.info(
        f"ONNX: which of many equal boxes are the best is up to rounding; on {len(feeds)} images "
        f"{100 * max(one.value for one in differences):.1f} % of the rows with a score from {LEAST_SCORE} on differ"
    )
    return differences


def _compiled(fn: Function) -> Program:
    """The program of a function for the CPU, compiled once for each shape."""
    programs: dict[object, jax.stages.Compiled] = {}

    def run(weights: Weights, feed: NamedArrays) -> NamedArrays:
        arrays = {name: jax.numpy.asarray(array) for name, array in weights.items()}

        def fresh(weights: ArrayDict, inputs: ArrayDict) -> ArrayDict:
            return fn(weights, inputs)

        key = tuple((name, array.shape) for name, array in feed.items())
        with platform_scope("other"), jax.default_device(jax.devices("cpu")[0]):
            if key not in programs:
                lowered = jax.jit(fresh).lower(arrays, dict(feed))
                programs[key] = lowered.compile(compiler_options=quick_compile_options())
            return {name: np.asarray(array) for name, array in programs[key](arrays, dict(feed)).items()}

    return run


def _differences(
    expected: NamedArrays, got: NamedArrays, shapes: dict[str, tuple[int, ...]]
) -> list[Difference]:
    """Of every output; ranked rows that rounding puts into another order are compared as sets."""
    differences = {name: _difference(name, shapes, want, got[name]) for name, want in expected.items()}
    ranked = ranked_outputs(expected)
    if any(differences[name].value > _limit(differences[name]) for name in ranked) and all(
        expected[name].shape == got[name].shape for name in ranked
    ):
        share = unmatched_rows([expected[name] for name in ranked], [got[name] for name in ranked])
        rows = Difference(f"{', '.join(ranked)} (rows)", shapes, share)
        differences = {name: one for name, one in differences.items() if name not in ranked} | {RANKED: rows}
    return list(differences.values())


def onnxruntime_runner(file: Path) -> Callable[[NamedArrays], NamedArrays]:
    """Runs a file in ONNX Runtime on the CPU."""
    runtime = import_onnxruntime()
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    inputs = {one.name for one in session.get_inputs()}
    outputs = [one.name for one in session.get_outputs()]

    def run(feed: NamedArrays) -> NamedArrays:
        return dict(zip(outputs, session.run(None, {k: v for k, v in feed.items() if k in inputs})))

    return run


def _difference(
    name: str, shapes: dict[str, tuple[int, ...]], want: np.ndarray, got: np.ndarray
) -> Difference:
    if want.shape != got.shape:
        return Difference(f"{name} of shape {list(got.shape)} in place of {list(want.shape)}", shapes, np.inf)
    if want.dtype.kind != "f":
        return Difference(
            f"{name} (whole numbers)", shapes, float((want != got).mean()) if want.size else 0.0
        )
    finite = np.isfinite(want)
    if not want.size or (finite != np.isfinite(got)).any():
        return Difference(name, shapes, np.inf if want.size else 0.0)
    want, got = np.where(finite, want, 0).astype(np.float64), np.where(finite, got, 0).astype(np.float64)
    return Difference(name, shapes, float(np.abs(want - got).max() / max(np.abs(want).max(), LEAST_SCALE)))


# -- what is fed ------------------------------------------------------------------------------------------------------


def trial_sizes(inputs: Mapping[str, TensorSpec], constraints: Sequence[str] = ()) -> list[Sizes]:
    """Two values of every symbol, one list for each run; one run where there is none."""
    bounds = [m.groups() for text in constraints if (m := _BOUND.fullmatch(text))]
    least = {name: int(size) for name, sign, size in bounds if sign == ">="}
    most = {name: int(size) for name, sign, size in bounds if sign == "<="}
    small: Sizes = {}
    for spec in inputs.values():
        shape = export.symbolic_shape(",".join(map(str, spec.shape))) if spec.shape else ()
        for axis, size in enumerate(shape):
            if is_symbolic(size):
                text = str(spec.shape[axis]).replace(" ", "")
                factor = int(text.partition("*")[0]) if text.partition("*")[0].isdecimal() else 1
                for name in re.findall(r"[A-Za-z_]\w*", text):
                    first = 1 if axis == 0 else max(64 // factor, 1) if len(shape) == 4 else 12
                    first = max(1, min(first, most.get(name, first + 1) - 1))
                    small.setdefault(name, max(first, least.get(name, 1)))
    if not small:
        return [{}]
    # Not the same step for all, so that height and width, say, differ.
    large = {name: size + 1 + max(size // 4, 0) * (i % 2 + 1) for i, (name, size) in enumerate(small.items())}
    return [small, {name: min(size, most.get(name, size)) for name, size in large.items()}]


def example_inputs(
    inputs: Mapping[str, TensorSpec], sizes: Sizes, draw: Draw | None = None
) -> dict[str, np.ndarray]:
    """Arrays for every input, the same in every run."""
    rng = np.random.default_rng(0)
    examples: dict[str, np.ndarray] = {}
    for name, spec in inputs.items():
        (argument,) = symbolic_arguments({name: spec}).values()
        shape = tuple(evaluate(size, sizes) for size in argument.shape)
        drawn = None if draw is None else draw(name, shape, examples, rng)
        examples[name] = (
            _draw(np.dtype(spec.dtype), shape, rng) if drawn is None else drawn.astype(spec.dtype)
        )
    return examples


def evaluate(size: Size, sizes: Sizes) -> int:
    """A size, a number or such as 32*h, with the values of its symbols."""
    if not is_symbolic(size):
        return int(size)
    factor, name, offset = linear_form(str(size))
    if name is None:
        raise ShapeError(
            "the size of an input must be a symbol or a multiple of one",
            received=str(size),
            allowed='such as "n", "32*h" or "2*h + 1"',
        )
    return factor * sizes[name] + offset


def _draw(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.7
    return rng.integers(0, 256 if dtype == np.uint8 else 2, shape).astype(dtype)
