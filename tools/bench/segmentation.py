"""Time of PP-LiteSeg at batch 1 against other runtimes on equal graphs, and of the whole tool on a video.

python tools/bench/segmentation.py [--variant t] [--size 512 1024] [--rounds 20]
python tools/bench/segmentation.py --video ../shared/data/videos/bikes.mp4 --model_dir DIR [--rounds 3]

Weights are drawn by name; normalisations are folded on both sides. "logits" gives them at the size of the image,
"labels" also the class of each pixel. All run in turn, so medians and ratios compare; the CPU time of the process
stands beside the wall time because machines are shared. OpenVINO runs where it is installed.

`--video` prints the frame rates of the program alone and of decoding, program, drawing and encoding together.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from pp_liteseg_onnx import pp_liteseg
from runtimes import Run, difference, others, race, video

from framework import nn
from framework.config import build
from framework.export import TensorSpec, lower_layer
from framework.inference import XLAEngine, keep_memory
from framework.interop.named_weights import named_weights
from framework.nn.reparam import fold_norms
from segmentation.models.pp_liteseg import VARIANTS, PPLiteSegConfig
from segmentation.test_time_augmentation import best_class


class Labels(nn.Layer):
    """The class of each pixel, as a task's inference gives it."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Any) -> Any:
        return best_class(self.model(image)[0])


def ours(model: Any, image: np.ndarray) -> dict[str, Run]:
    spec = {"image": TensorSpec(image.shape)}
    runs: dict[str, Run] = {}
    for precision in ("float32", "bfloat16"):
        for name, layer in (("logits", model), ("labels", Labels(model).eval())):
            after = lambda out: {"out": out[0] if isinstance(out, tuple) else out}  # noqa: E731
            engine = XLAEngine(*lower_layer(layer, spec, after=after, precision=precision))  # type: ignore[arg-type]
            runs[f"oar {precision} {name}"] = lambda engine=engine: list(engine({"image": image}).values())
    return runs


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--variant", choices=VARIANTS, default="t")
    parser.add_argument("--size", type=int, nargs=2, default=[512, 1024], metavar=("H", "W"))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--video", type=Path)
    parser.add_argument("--model_dir", type=Path, help="the artifact that looks at the video")
    args = parser.parse_args()
    keep_memory()
    if args.video:
        if args.model_dir is None:
            parser.error("--video needs --model_dir")
        video(args.video, args.model_dir, args.rounds, {})
        return 0
    size_hw: tuple[int, int] = tuple(args.size)
    model: Any = build(PPLiteSegConfig(args.variant))
    model.set_state_dict(named_weights(model.state_shapes()))
    fold_norms(model.eval())
    state = {name: np.asarray(value) for name, value in model.state_dict().items()}
    image = np.random.default_rng(0).standard_normal((1, *size_hw, 3)).astype(np.float32)
    runs = ours(model, image)
    for name in ("logits", "labels"):
        runs |= others(pp_liteseg(state, size_hw, name == "labels"), image, name)
    apart = difference(runs["oar float32 logits"](), runs["onnxruntime logits"]())
    print(f"PP-LiteSeg-{args.variant} at {args.size}, {os.cpu_count()} threads, logits differ by {apart:.0e}")
    race(runs, args.rounds, "onnxruntime labels")
    return 0


if __name__ == "__main__":
    sys.exit(main())
