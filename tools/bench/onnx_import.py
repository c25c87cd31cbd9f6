"""The official PP-OCRv6 small detector: imported from its ONNX file, as our own model, and in ONNX Runtime.

python tools/bench/onnx_import.py [--size 640] [--rounds 15]       needs rapidocr (the file) and onnxruntime

All run in turn in float32; medians in milliseconds and the ratio to the imported one.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import jax
import numpy as np
from runtimes import difference, others, race

from framework.export import TensorSpec, lower_layer
from framework.inference.engine import XLAEngine
from framework.interop.programs import onnx
from framework.nn.layer import Layer
from framework.workflow.domain.weights import load_weights_into
from ocr.models.dbnet import DBNet, DBNetConfig


def first(out: object) -> jax.Array:
    """The map of probabilities, with which the outputs of our model begin."""
    return jax.tree.leaves(out)[0]


def compiled(layer: Layer, image: np.ndarray) -> Callable[[], list[np.ndarray]]:
    """The layer as a program with a free batch, compiled for the image."""
    spec = TensorSpec(("n", *image.shape[1:]))
    program = lower_layer(layer, {"image": spec}, after=lambda out: {"map": first(out)}, platforms=("cpu",))
    engine = XLAEngine(*program)
    return lambda: list(engine({"image": image}).values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=640)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    found = importlib.util.find_spec("rapidocr")
    if found is None or found.origin is None:
        raise SystemExit("error: rapidocr is not installed; its wheel carries the file")
    path = Path(found.origin).parent / "models" / "PP-OCRv6_det_small.onnx"
    image = np.random.default_rng(0).uniform(-1, 1, (1, options.size, options.size, 3)).astype(np.float32)
    own = load_weights_into(DBNet(DBNetConfig("PP-OCRv6_small_det", deploy=True)), path)
    runs = {
        "imported": compiled(onnx.load(path), np.ascontiguousarray(image.transpose(0, 3, 1, 2))),
        "own model": compiled(own, image),
        **others(path.read_bytes(), image),
    }
    for name in runs:
        print(
            f"largest difference of {name} to the imported: {difference(runs[name](), runs['imported']()):.1e}"
        )
    race(runs, options.rounds, "imported")


if __name__ == "__main__":
    main()
