"""Time of detectors at batch 1 against other runtimes on equal graphs, and of the whole tool on a video.

python tools/bench/detection.py [--shared ../shared] [--model picodet_s] [--rounds 20]
python tools/bench/detection.py --video ../shared/data/videos/car-detection.mp4 --model_dir DIR [--rounds 3]

PicoDet-s (ESNet) at 320 runs from its official ONNX file, PP-YOLOE+ s at 640 from weights drawn by name and the graph
of pp_yoloe_onnx.py; normalisations are folded on both sides. "network" is what the graph computes, "detect" also makes
boxes and suppresses; both are exported programs. All run in turn, so medians and ratios compare; the CPU time of the
process stands beside the wall time because machines are shared. OpenVINO runs where it is installed.

`--video` tracks through a video as tools/infer.py does and prints the frame rates of the program alone, on the same
batches, and of everything, with the resident memory in each quarter of the video.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import jax
import numpy as np
from pp_yoloe_onnx import pp_yoloe
from runtimes import Run, difference, others, race, video

from detection.models.picodet_esnet import PicoDetESNetConfig
from detection.models.pp_yoloe import REG_MAX, PPYOLOEConfig
from framework.config import build
from framework.export import TensorSpec, lower_layer
from framework.inference import XLAEngine, keep_memory
from framework.interop.named_weights import named_weights
from framework.workflow.domain.weights import load_weights_into

PROJECTION = "yolo_head.proj_conv.weight"


def picodet_s(shared: Path) -> tuple[Any, bytes, int]:
    """(model, ONNX graph, size) from the official file."""
    file = shared / "weights" / "picodet_s_320" / "picodet_s_320_coco_sim.onnx"
    return load_weights_into(build(PicoDetESNetConfig(deploy=True)), file), file.read_bytes(), 320


def pp_yoloe_plus_s(shared: Path) -> tuple[Any, bytes, int]:
    """(model, ONNX graph, size) of drawn weights, whose scores spread so that the suppression has work."""
    model = build(PPYOLOEConfig(deploy=True))
    state = named_weights(model.state_shapes())
    state[PROJECTION] = np.arange(REG_MAX + 1, dtype=np.float32).reshape(1, -1, 1, 1)
    for level in range(3):
        state[f"yolo_head.pred_cls.{level}.weight"] *= 10
        state[f"yolo_head.pred_cls.{level}.bias"] -= 6
    model.set_state_dict(state)
    return model, pp_yoloe(state, 640), 640


MODELS = {"picodet_s": picodet_s, "pp_yoloe_plus_s": pp_yoloe_plus_s}


def ours(model: Any, image: np.ndarray) -> dict[str, Run]:
    spec = {"image": TensorSpec(image.shape)}
    runs: dict[str, Run] = {}
    for precision in ("float32", "bfloat16"):
        for name, method in (("network", "forward"), ("detect", "detect")):
            after = lambda out: {f"{n:02}": leaf for n, leaf in enumerate(jax.tree.leaves(out))}  # noqa: E731
            engine = XLAEngine(*lower_layer(model, spec, after=after, precision=precision, method=method))  # type: ignore[arg-type]
            runs[f"oar {precision} {name}"] = lambda engine=engine: list(engine({"image": image}).values())
    return runs


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--model", choices=MODELS, action="append", help="default: all")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--video", type=Path)
    parser.add_argument("--model_dir", type=Path, help="the artifact that looks at the video")
    args = parser.parse_args()
    keep_memory()
    if args.video:
        if args.model_dir is None:
            parser.error("--video needs --model_dir")
        video(args.video, args.model_dir, args.rounds, {"tracker": "bytetrack"})
        return 0
    for name in args.model or MODELS:
        model, graph, size = MODELS[name](args.shared)
        image = np.random.default_rng(0).standard_normal((1, size, size, 3)).astype(np.float32)
        runs = {**ours(model.eval(), image), **others(graph, image)}
        apart = difference(runs["oar float32 network"](), runs["onnxruntime network"]())
        print(f"{name} at {size}, {os.cpu_count()} threads, outputs differ by {apart:.0e}")
        race(runs, args.rounds, "onnxruntime network")
    return 0


if __name__ == "__main__":
    sys.exit(main())
