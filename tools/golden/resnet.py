"""Reference outputs of ResNet, ResNet-vd and CSPResNet from PaddleClas, paddle.vision, PaddleSeg and PaddleDetection.

    python tools/golden/resnet.py [case ...]    needs: paddlepaddle 2.6, paddleclas 2.6, paddleseg 2.8, paddledet 2.6

Every entry of the state dict is drawn from its own name (framework/interop/named_weights.py); the outputs of stages,
NCHW, are thinned to a few values under our names. The reference's names and shapes are in the file too.
Written to tests/golden/data/resnet/<case>.npz.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import paddle

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from framework.interop.named_weights import named_weights  # noqa: E402

OUT = ROOT / "tests" / "golden" / "data" / "resnet"
KEPT = 160  # values of each stage
SHAPE = (1, 3, 75, 101)  # odd at every stride


def clas(name: str) -> tuple[Any, dict[str, str]]:
    from paddleclas.ppcls.arch.backbone.legendary_models import resnet

    model = getattr(resnet, name)()
    ends = np.cumsum(model.block_depth) - 1
    return model, {"stem": "stem", **{f"blocks.{i}": f"blocks.{i}" for i in ends}, "fc": "fc"}


def vision(name: str, depths: tuple[int, ...]) -> tuple[Any, dict[str, str]]:
    model = getattr(paddle.vision.models, name)()
    ends = np.cumsum(depths) - 1
    return model, {**{f"blocks.{end}": f"layer{i}" for i, end in enumerate(ends, start=1)}, "fc": "fc"}


def seg(name: str, **options: Any) -> tuple[Any, dict[str, str]]:
    from paddleseg.models.backbones import resnet_vd

    model = getattr(resnet_vd, name)(**options)
    ends = [(stage, len(blocks) - 1) for stage, blocks in enumerate(model.stage_list)]
    numbers = np.cumsum([len(blocks) for blocks in model.stage_list]) - 1
    return model, {f"blocks.{n}": f"bb_{stage}_{i}" for n, (stage, i) in zip(numbers, ends)}


def det(depth: int, variant: str, depths: tuple[int, ...]) -> tuple[Any, dict[str, str]]:
    from ppdet.modeling.backbones.resnet import ResNet

    ends = np.cumsum(depths) - 1
    model = ResNet(depth=depth, variant=variant, freeze_at=-1, freeze_norm=False)
    return model, {f"blocks.{end}": f"res{i}" for i, end in enumerate(ends, start=2)}


def csp(depth: float, width: float, **options: Any) -> tuple[Any, dict[str, str]]:
    from ppdet.modeling.backbones.cspresnet import CSPResNet

    model = CSPResNet(depth_mult=depth, width_mult=width, use_large_stem=True, **options)
    return model, {name: name for name in ("stem", "stages.0", "stages.1", "stages.2", "stages.3")}


CASES: dict[str, Callable[[], tuple[Any, dict[str, str]]]] = {
    "resnet18": lambda: clas("ResNet18"),
    "resnet18_vd": lambda: clas("ResNet18_vd"),
    "resnet50": lambda: clas("ResNet50"),
    "resnet50_vd": lambda: clas("ResNet50_vd"),
    "resnet18_vision": lambda: vision("resnet18", (2, 2, 2, 2)),
    "resnext50_32x4d": lambda: vision("resnext50_32x4d", (3, 4, 6, 3)),
    "resnet50_vd_os8": lambda: seg("ResNet50_vd", output_stride=8, multi_grid=(1, 2, 4)),
    "resnet18_vd_os16": lambda: seg("ResNet18_vd", output_stride=16),
    "resnet50_det": lambda: det(50, "b", (3, 4, 6, 3)),
    "resnet101_vd_det": lambda: det(101, "d", (3, 4, 23, 3)),
    "csp_resnet_s": lambda: csp(0.33, 0.5, use_alpha=True),
}


def thin(array: np.ndarray) -> np.ndarray:
    flat = array.reshape(-1)
    return flat[:: -(-flat.size // KEPT)].astype(np.float32)


def reference(case: str) -> None:
    model, watched = CASES[case]()
    model.eval()
    state = model.state_dict()
    shapes = {name: tuple(value.shape) for name, value in state.items()}
    for name, value in named_weights(shapes).items():
        state[name].set_value(value)
    owners, stages = dict(model.named_sublayers()), {}
    for ours, theirs in watched.items():
        keep = lambda _, args, out, ours=ours: stages.__setitem__(ours, out.numpy())  # noqa: E731
        owners[theirs].register_forward_post_hook(keep)
    image = paddle.to_tensor(np.random.RandomState(7).standard_normal(SHAPE).astype(np.float32))
    with paddle.no_grad():
        model({"image": image} if type(model).__module__.startswith("ppdet") else image)
    for name, out in stages.items():
        print(f"{case:18} {name:10} {out.shape!s:20} mean |x| {np.abs(out).mean():.4f}, max {out.max():.4f}")
    count = sum(int(np.prod(s)) for n, s in shapes.items() if not n.endswith(("._mean", "._variance")))
    print(f"{case:18} {len(shapes)} entries, {count:,} parameters")
    keys = "\n".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in sorted(shapes.items()))
    OUT.mkdir(parents=True, exist_ok=True)
    thinned = {name: thin(out) for name, out in stages.items()}
    np.savez_compressed(OUT / f"{case}.npz", keys=np.array(keys.encode()), **thinned)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or CASES:
        reference(chosen)
