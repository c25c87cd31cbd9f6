"""Our exported ONNX files against the official or reference ones, both in OpenVINO, in one run.

python tools/bench/exported.py [--models det rec picodet pp_yoloe pp_liteseg] [--precisions f32 bf16] [--rounds 20]
    [--threads 1] [--shared ../shared] [--engines]

det and rec are PP-OCRv6 small at 640x640 and 6x48x320 against the files of the rapidocr wheel (ours also normalises,
and gives the best class of each column). PicoDet-s is against its official file, PP-YOLOE+ s and PP-LiteSeg-T against
the graphs of pp_yoloe_onnx.py and pp_liteseg_onnx.py with the same drawn weights: "net" is the same work, "detect" also
makes boxes and suppresses them, which the files of others leave to their users. The CPU time of the process stands
beside the wall time, because machines are shared; ratios are those of medians, of runs in turn.

`--engines` runs our network on each of our engines instead: xla, which uses all cores whatever --threads says,
onnxruntime, and openvino in float32 and bfloat16.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import jax
import numpy as np
import rapidocr
from pp_liteseg_onnx import pp_liteseg
from runtimes import race

from framework import nn
from framework.config import build
from framework.export import TensorSpec, lower_layer
from framework.export.formats.onnx import export_onnx
from framework.export.program import layer_function
from framework.inference import Engine, XLAEngine
from framework.inference.engines.onnx_runtime import ONNXRuntimeEngine
from framework.inference.engines.openvino import OpenVINOEngine, import_openvino
from framework.interop.named_weights import named_weights
from framework.nn.reparam import fold_norms
from framework.workflow.export.export import export_config
from framework.workflow.export.onnx import OnnxOptions
from segmentation.models.pp_liteseg import PPLiteSegConfig


def _load_beside(name: str) -> Any:
    """Another bench: a file beside this one, which has the name of a package."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


MODELS, Labels = _load_beside("detection").MODELS, _load_beside("segmentation").Labels
RAPID = Path(rapidocr.__file__).parent / "models"
Shapes = dict[str, tuple[int, ...]]
Files = dict[str, tuple[Any, Shapes]]  # by name, the reference first: a path or bytes, and shapes of inputs


@dataclass(frozen=True)
class Network:
    """A network in the files of others and ours, the name of the one that is ours alone, and its program for XLA."""

    files: Files
    own: str
    program: Callable[[], Engine]


class Flat(nn.Layer):
    """A model by one of its methods, with outputs that have names."""

    def __init__(self, model: Any, method: str) -> None:
        super().__init__()
        self.model, self.method = model, method

    def forward(self, image: Any) -> dict[str, Any]:
        out = getattr(self.model, self.method)(image)
        return {f"{number:02}": leaf for number, leaf in enumerate(jax.tree.leaves(out))}


def exported(layer: nn.Layer, shape: tuple[int, ...]) -> bytes:
    specs = {"image": TensorSpec(shape)}
    return export_onnx(*layer_function(layer.eval(), specs), specs).SerializeToString()


def lowered(layer: nn.Layer, shape: tuple[int, ...]) -> Engine:
    return XLAEngine(*lower_layer(layer.eval(), {"image": TensorSpec(shape)}, after=lambda out: out))


def text_models(folder: Path) -> dict[str, Network]:
    artifact = export_config("pp_ocrv6_small", onnx=OnnxOptions())
    made = artifact.save(folder)

    def network(stage: str, file: str, theirs: tuple[int, ...], ours: Shapes) -> Network:
        one = artifact.stages[stage]
        return Network(
            {"official": (RAPID / file, {"x": theirs}), "ours": (made / stage / "model.onnx", ours)},
            "ours",
            lambda: XLAEngine(one.programs["float32"], one.weights),
        )

    sizes = {"image": (1, 640, 640, 3), "size": (1, 2)}
    widths = {"image": (6, 48, 320, 3), "width": (6,)}
    return {
        "det": network("detector", "PP-OCRv6_det_small.onnx", (1, 3, 640, 640), sizes),
        "rec": network("recognizer", "PP-OCRv6_rec_small.onnx", (6, 3, 48, 320), widths),
    }


def detector(name: str, shared: Path) -> Network:
    model, graph, size = MODELS[name](shared)
    shape = (1, size, size, 3)
    methods = (("net", "forward"), ("detect", "detect"))
    ours = {what: (exported(Flat(model, method), shape), {}) for what, method in methods}
    return Network({"reference": (graph, {}), **ours}, "net", lambda: lowered(Flat(model, "forward"), shape))


def segmenter(size_hw: tuple[int, int] = (512, 1024)) -> Network:
    model: Any = build(PPLiteSegConfig("t"))
    model.set_state_dict(named_weights(model.state_shapes()))
    fold_norms(model.eval())
    state = {name: np.asarray(value) for name, value in model.state_dict().items()}
    layer, shape = Flat(Labels(model), "forward"), (1, *size_hw, 3)
    files = {"reference": (pp_liteseg(state, size_hw, True), {}), "labels": (exported(layer, shape), {})}
    return Network(files, "labels", lambda: lowered(layer, shape))


def on_engines(network: Network, folder: Path, threads: int) -> dict[str, Callable[[], Any]]:
    """A call of our network on each engine, with the same drawn inputs."""
    file, shapes = network.files[network.own]
    if isinstance(file, bytes):
        path = folder / "own.onnx"
        path.write_bytes(file)
        file = path
    engines = {
        "xla": network.program(),
        "onnxruntime": ONNXRuntimeEngine(file, threads=threads),
        "openvino": OpenVINOEngine(file, threads=threads),
        "openvino bf16": OpenVINOEngine(file, precision="bfloat16", threads=threads),
    }
    rng = np.random.default_rng(0)
    feed = {}
    for name, tensor in engines["onnxruntime"].inputs.items():
        shape = shapes.get(name) or tuple(tensor.shape)
        values = rng.integers(0, 255, shape) if tensor.dtype.kind in "iu" else rng.standard_normal(shape)
        feed[name] = values.astype(tensor.dtype)
    return {name: lambda engine=engine: engine(feed) for name, engine in engines.items()}


def opened(files: Files, precision: str, threads: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """A call of each file with drawn inputs."""
    core = import_openvino().Core()
    rng = np.random.default_rng(0)
    hints = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": threads,
    }
    for name, (file, shapes) in files.items():
        compiled = core.compile_model(core.read_model(file), "CPU", hints)
        feed = {}
        for port in compiled.inputs:
            shape = shapes.get(port.any_name) or tuple(port.shape)
            whole = np.dtype(port.element_type.to_dtype())
            values = rng.integers(0, 255, shape) if whole.kind in "iu" else rng.standard_normal(shape)
            feed[port.any_name] = values.astype(whole)
        request = compiled.create_infer_request()
        yield name, lambda request=request, feed=feed: request.infer(feed, share_inputs=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ("det", "rec", "picodet", "pp_yoloe", "pp_liteseg")
    parser.add_argument("--models", nargs="+", default=names, choices=names)
    parser.add_argument("--precisions", nargs="+", default=["f32", "bf16"], choices=["f32", "bf16"])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--engines", action="store_true", help="time our network on each of our engines")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = text_models(Path(folder)) if {"det", "rec"} & set(args.models) else {}
        for name in args.models:
            if name in text:
                network = text[name]
            elif name == "pp_liteseg":
                network = segmenter()
            else:
                network = detector({"picodet": "picodet_s", "pp_yoloe": "pp_yoloe_plus_s"}[name], args.shared)
            if args.engines:
                print(f"{name}, {args.threads} of {os.cpu_count()} threads")
                race(on_engines(network, Path(folder), args.threads), args.rounds, "xla")
                continue
            for precision in args.precisions:
                print(f"{name}, OpenVINO {precision}, {args.threads} threads")
                race(
                    dict(opened(network.files, precision, args.threads)),
                    args.rounds,
                    next(iter(network.files)),
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
