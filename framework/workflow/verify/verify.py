"""One model on every runtime: results of the same files compared with those of XLA, times and sizes."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from framework.core.disk import scratch_folder
from framework.core.errors import ConfigError, InputError, OarError
from framework.core.types import JSON
from framework.export import Artifact, load_artifact
from framework.export.formats.tflite.packages import can_write_tflite
from framework.vision import image as vision_image
from framework.workflow.domain.comparison import ANY_RESULT, Comparison, ResultComparison
from framework.workflow.domain.config_file import ConfigFile, open_config
from framework.workflow.domain.domain import Domain, find_domain
from framework.workflow.domain.options import make_options
from framework.workflow.domain.predictor import ImagePredictor
from framework.workflow.domain.result import Result
from framework.workflow.export.mobile import export_tflite
from framework.workflow.export.onnx import OnnxOptions, can_write_onnx
from framework.workflow.export.tflite import TfliteOptions
from framework.workflow.verify.runtimes import (
    LOCAL,
    REFERENCE,
    RUNTIMES,
    SERVER,
    VerifyRuntime,
    file_size,
    reason,
)
from framework.workflow.verify.server import ServedModel

Predict = Callable[[Path], Result]


@dataclass(frozen=True)
class RuntimeRow:
    """What one runtime gave.

    Attributes:
        comparison: With XLA, of all files; None where it did not run.
        milliseconds: The median of an image, from the file to the result.
        engine_milliseconds: Of that in the programs.
        size: Bytes of its files.
        note: Why it did not run.
        dtype: Of its weights. What of others than float32 matters is their score on labelled data, to which they are
            held when they are written; the table says so beside their differences.
    """

    runtime: str
    comparison: Comparison | None = None
    milliseconds: float = 0.0
    engine_milliseconds: float = 0.0
    size: int = 0
    note: str = ""
    dtype: str = "float32"


@dataclass(frozen=True)
class DeployReport:
    """The table of `oar verify-deploy`.

    Attributes:
        counts: What is counted as equal.
        least: The share of it that has to be equal.
        examples: Of the ranges of an int8 `.tflite` that was written for this; None: there is none.
    """

    model: str
    images: int
    counts: str
    least: float
    rows: tuple[RuntimeRow, ...]
    examples: int | None = None

    @property
    def is_equal(self) -> bool:
        """Whether every runtime that ran gives what XLA gives."""
        return all(row.comparison is None or row.comparison.share >= self.least for row in self.rows)

    def describe(self) -> str:
        """The table as lines of text."""
        head = f"{self.model}, {self.images} images; equal to {REFERENCE}: {self.counts}, {self.least:.1%} or more"
        if self.examples is not None:
            head += f"; ranges of int8 of at most {self.examples} examples"
        lines = [
            head,
            f"{'runtime':<12} {'equal':>16} {'share':>8} {'ms':>9} {'engine':>9} {'MB':>8}  largest difference",
        ]
        for row in self.rows:
            if row.comparison is None:
                lines.append(f"{row.runtime:<12} not run: {row.note}")
                continue
            worst = ", ".join(f"{value:.2g} {name}" for name, value in row.comparison.differences.items())
            equal = f"{row.comparison.equal} / {row.comparison.total}"
            failed = "" if row.comparison.share >= self.least else "  DIFFERS"
            if failed and row.dtype != "float32":
                failed += f" ({row.dtype}: held to its score, or agreement, when it was written)"
            lines.append(
                f"{row.runtime:<12} {equal:>16} {row.comparison.share:>8.2%} {row.milliseconds:>9.1f} "
                f"{row.engine_milliseconds:>9.1f} {row.size / 1e6:>8.2f}  {worst or '-'}{failed}"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, JSON]:
        """Plain data for JSON."""
        return {
            "model": self.model,
            "images": self.images,
            "counts": self.counts,
            "least": self.least,
            "equal": self.is_equal,
            "examples": self.examples,
            "runtimes": [
                {
                    **{key: value for key, value in dataclasses.asdict(row).items() if key != "comparison"},
                    "equal": None if row.comparison is None else row.comparison.equal,
                    "total": None if row.comparison is None else row.comparison.total,
                    "differences": None if row.comparison is None else dict(row.comparison.differences),
                }
                for row in self.rows
            ],
        }


def verify_deploy(
    model: str,
    images: Path,
    runtimes: Sequence[str] = RUNTIMES,
    options: TfliteOptions | None = None,
    most_images: int | None = None,
    settings: Sequence[str] = (),
    trust: bool = False,
) -> DeployReport:
    """Run a model on the images of a folder on each runtime, and compare with XLA, which is always run.

    Args:
        model: An artifact's folder, whose files are run as they are; or the name of a configuration or its file, which
            is exported to all formats into a temporary folder.
        options: Of the `.tflite` of a configuration.
        most_images: Of the folder, spread over it.
        settings: Overrides of a configuration, as `-o` of the tools.
        trust: Whether code that an artifact's config names may run.

    Raises:
        InputError: no images, an unknown runtime, a model of texts. Others: as `export_config` and `load_artifact`.
    """
    if unknown := [name for name in runtimes if name not in RUNTIMES]:
        raise InputError(
            "unknown runtime", where="--runtimes", received=", ".join(unknown), allowed=", ".join(RUNTIMES)
        )
    files = vision_image.list_images(images, recursive=True)
    if not files:
        raise InputError("there is nothing to run the model on", where=images, received="no image")
    if most_images is not None and most_images < len(files):
        files = files[:: len(files) // most_images][:most_images]
    with scratch_folder("oar-verify-") as work:
        folder, dtype, examples = Path(model), "float32", None
        if not folder.is_dir():
            options = options or TfliteOptions()
            dtype = options.dtype
            examples = options.examples if dtype == "int8" and "litert" in runtimes else None
            folder = _export(open_config(model, settings), work / "artifact", runtimes, options)
        elif settings:
            raise ConfigError(
                "an artifact's programs are made, its settings cannot be changed any more",
                where=folder,
                received=", ".join(settings),
                fix="name the configuration in its place",
            )
        artifact = load_artifact(folder, trust=trust)
        domain = find_domain(str(artifact.config.get("domain")))
        comparison = domain.capability(ResultComparison) or ANY_RESULT
        expected: list[Result] = []
        rows = []
        for name in (REFERENCE, *(one for one in runtimes if one != REFERENCE)):
            row = _run(name, artifact, folder, domain, files, expected, comparison)
            rows.append(dataclasses.replace(row, dtype=dtype) if name == "litert" else row)
        return DeployReport(model, len(files), comparison.counts, comparison.least, tuple(rows), examples)


def _export(config: ConfigFile, folder: Path, runtimes: Sequence[str], options: TfliteOptions | None) -> Path:
    """The artifact of a configuration with the files of these runtimes, as far as their packages are installed."""
    onnx = None
    if can_write_onnx() and {"onnxruntime", "openvino", "wasm", "ort"} & set(runtimes):
        onnx = OnnxOptions(ort="ort" in runtimes)
    tflite = (options or TfliteOptions()) if "litert" in runtimes and can_write_tflite() else None
    return export_tflite(config, tflite, onnx=onnx).save(folder)


def _run(
    name: str,
    artifact: Artifact,
    folder: Path,
    domain: Domain,
    files: Sequence[Path],
    expected: list[Result],
    comparison: ResultComparison,
) -> RuntimeRow:
    """The row of one runtime; that of the reference fills `expected`."""
    seconds: list[float] = []
    server = None
    try:
        if name == SERVER:
            predict = server = ServedModel(folder)
            comparison = ANY_RESULT  # of an answer there is the JSON alone
        else:
            predict = _open(name, artifact, domain, seconds)
        predict(files[0])  # what is compiled or read at first is no part of the times
        seconds.clear()
        results, times = [], []
        for file in files:
            start = time.perf_counter()
            results.append(predict(file))
            times.append(time.perf_counter() - start)
    except OarError as error:
        if name == REFERENCE:
            raise
        return RuntimeRow(name, note=reason(error))
    finally:
        if server is not None:
            server.close()
    if name == REFERENCE:
        expected.extend(results)
    total = Comparison()
    for one, other in zip(expected, results):
        total += comparison.compare(one, other)
    size = file_size(artifact, REFERENCE if name == SERVER else name)
    return RuntimeRow(name, total, 1e3 * statistics.median(times), 1e3 * sum(seconds) / len(files), size)


def _open(name: str, artifact: Artifact, domain: Domain, seconds: list[float]) -> Predict:
    assert name in LOCAL
    runtime = VerifyRuntime(device="cpu", precision="float32", name=name, seconds=seconds)
    predictor = domain.open(artifact, make_options(domain.options, {}, f"the domain {domain.name}"), runtime)
    if not isinstance(predictor, ImagePredictor):
        raise InputError(
            "this model reads no images",
            where=artifact.source,
            received=f"the domain {domain.name}",
            allowed="models of images",
        )
    return lambda file: next(iter(predictor.predict_stream(iter([predictor.read(file)]))))
