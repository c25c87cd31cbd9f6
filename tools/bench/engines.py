"""Time of ONNX files through our engines against the packages' own calls, in one run.

python tools/bench/engines.py [--models det rec cls picodet …] [--rounds 30]

The files are those of the rapidocr wheel and of ../shared/weights. Each pair, our engine and the package alone with the
same settings, is called in turns; the last column is the ratio of the medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import onnxruntime
import rapidocr

from framework.inference.engines.onnx_runtime import ONNXRuntimeEngine
from framework.inference.engines.openvino import OpenVINOEngine, import_openvino

RAPID = Path(rapidocr.__file__).parent / "models"
SHARED = Path(os.environ.get("OAR_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "weights"
MODELS = {  # file, and the shape of its first input
    "det": (RAPID / "PP-OCRv6_det_small.onnx", (1, 3, 640, 640)),
    "rec": (RAPID / "PP-OCRv6_rec_small.onnx", (6, 3, 48, 320)),
    "cls": (RAPID / "ch_ppocr_mobile_v2.0_cls_mobile.onnx", (6, 3, 48, 192)),
    **{
        name: (path, ())
        for name in ("picodet_s_320", "nanodet_m_320", "yolox_nano", "resnet20_cifar10", "cgnet_camvid")
        for path in sorted((SHARED / name).glob("*.onnx"))[:1]
    },
}


def runs(path: Path, shape: tuple[int, ...]) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """For each engine our call and the package's."""
    rng = np.random.default_rng(0)
    found = {}
    for name, precision in (("onnxruntime", "float32"), ("openvino", "float32"), ("openvino", "bfloat16")):
        engine = (ONNXRuntimeEngine if name == "onnxruntime" else OpenVINOEngine)(path, precision=precision)
        inputs = {}
        for key, tensor in engine.inputs.items():
            sizes = shape if shape and not inputs else [n if isinstance(n, int) else 1 for n in tensor.shape]
            inputs[key] = rng.random(sizes).astype(tensor.dtype)
        if name == "onnxruntime":
            options = onnxruntime.SessionOptions()
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            raw = lambda session=session, x=inputs: session.run(None, x)  # noqa: E731
        else:
            hint = "bf16" if precision == "bfloat16" else "f32"
            settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": hint}
            compiled = import_openvino().Core().compile_model(str(path), "CPU", settings)
            raw = lambda compiled=compiled, x=inputs: compiled(x)  # noqa: E731
        found[f"{name} {precision}"] = (lambda engine=engine, x=inputs: engine(x), raw)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--rounds", type=int, default=30)
    args = parser.parse_args()
    for model in args.models:
        for name, pair in runs(*MODELS[model]).items():
            times: tuple[list[float], list[float]] = ([], [])
            for call in pair:
                call()
            for round in range(args.rounds):
                for which in (0, 1) if round % 2 else (1, 0):
                    started = time.perf_counter()
                    pair[which]()
                    times[which].append(time.perf_counter() - started)
            ours, theirs = map(statistics.median, times)
            print(
                f"{model:<18}{name:<22}{ours * 1e3:8.2f} ms  alone {theirs * 1e3:8.2f} ms  {ours / theirs:5.3f}"
                f"  fastest {min(times[0]) * 1e3:8.2f} {min(times[1]) * 1e3:8.2f}"
            )


if __name__ == "__main__":
    main()
