"""`.ort`: an ONNX file as ONNX Runtime's packages for phones read it, with its operators chosen and its memory planned.

`required_operators.config` beside it lists the operators, for builds of ONNX Runtime that have these alone.
"""

from __future__ import annotations

import contextlib
import io
import logging
import shutil
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from framework.core.disk import scratch_folder
from framework.core.errors import FormatError
from framework.export.artifact import ORT, ORT_OPERATORS
from framework.export.formats.onnx.check import NamedArrays, import_onnxruntime, onnxruntime_runner
from framework.export.formats.onnx.ranked import LEAST_SCALE, TOLERANCE, ranked_outputs, unmatched_rows

_MOST_ROWS = 0.05  # of ranked rows that may change: sums in another order, and almost equal scores


def write_ort(file: Path, feeds: Sequence[NamedArrays] = ()) -> list[Path]:
    """Write the `.ort` and its list of operators beside an ONNX file; -> the two files.

    Args:
        feeds: Inputs on which both are run and compared.

    Raises:
        MissingExtraError: ONNX Runtime is not installed. FormatError: it cannot write the file, as one whose weights
            stand beside it, or the file gives something else than the ONNX file.
    """
    import_onnxruntime()
    from onnxruntime.tools.convert_onnx_models_to_ort import OptimizationStyle, convert_onnx_models_to_ort

    with scratch_folder("oar-ort-") as work:
        source, target = work / "source", work / "target"
        source.mkdir()
        target.mkdir()
        for path in (file, file.with_name(f"{file.name}.data")):
            if path.is_file():
                shutil.copyfile(path, source / path.name)
        try:
            with _quiet():
                convert_onnx_models_to_ort(source / file.name, target, [OptimizationStyle.Fixed])
        except Exception as error:  # its errors have no class of their own
            raise _refusal(file, str(error)) from error
        written = {path.suffix: path for path in target.iterdir()}
        if not {".ort", ".config"} <= written.keys():
            raise _refusal(
                file, f"files {', '.join(sorted(path.name for path in target.iterdir())) or 'none'}"
            )
        paths = [
            Path(shutil.copyfile(written[suffix], file.with_name(name)))
            for suffix, name in ((".ort", ORT), (".config", ORT_OPERATORS))
        ]
    _compare(file, paths[0], feeds)
    return paths


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the converter's lines, and without a warning of the files that it leaves to the collector."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore", ResourceWarning)
            yield
    finally:
        logging.disable(disabled)


def _compare(file: Path, converted: Path, feeds: Sequence[NamedArrays]) -> None:
    run, run_converted = onnxruntime_runner(file), onnxruntime_runner(converted)
    for feed in feeds:
        expected, outputs = run(feed), run_converted(feed)
        ranked = ranked_outputs(expected)
        for name, array in expected.items():
            if name not in ranked and not _is_close(array, outputs[name]):
                raise _refusal(file, f"another {name}")
        if (
            ranked
            and unmatched_rows([expected[name] for name in ranked], [outputs[name] for name in ranked])
            > _MOST_ROWS
        ):
            raise _refusal(file, f"other rows of {', '.join(ranked)}")


def _is_close(expected: np.ndarray, array: np.ndarray) -> bool:
    if expected.shape != array.shape:
        return False
    if expected.dtype.kind != "f":
        return not expected.size or float((expected != array).mean()) <= 1e-3
    scale = max(float(np.abs(expected).max(initial=0.0)), LEAST_SCALE)
    return bool(np.allclose(expected, array, rtol=0, atol=TOLERANCE * scale, equal_nan=True))


def _refusal(file: Path, received: str) -> FormatError:
    return FormatError(
        "ONNX Runtime's converter does not give this file as .ort",
        where=file,
        received=next(iter(received.splitlines()), "")[:300],
        allowed="an ONNX file with its weights in it, of operators that ONNX Runtime has",
        fix="--format onnx: ONNX Runtime's package for Android and iOS reads .onnx, too",
    )
