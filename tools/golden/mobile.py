"""Reference outputs of the mobile backbones and PP-HGNetV2, from PaddleClas.

    python tools/golden/mobile.py [case ...]        needs: pip install paddlepaddle==2.6.2 paddleclas==2.6.0

Written to tests/golden/data/mobile/<case>.npz. Every entry of the state dict is drawn from its name
(framework/interop/named_weights.py), kernels times `gain`, so that the image arrives at the end of the network. Each
stage's output, NCHW, is thinned to a few values. The names and shapes of the state dict are in the file too.
PPLCNetV3 is in no release: its case takes the path of the file in PaddleClas's pull request 2894 (commit 78e6025),
`pplcnetv3_base=/path/pp_lcnet_v3.py`.
"""

from __future__ import annotations

import importlib.util
import sys
import zlib  # noqa: F401  before paddle, whose own copy of zlib breaks the image libraries
from pathlib import Path
from types import ModuleType
from typing import Any

import cv2  # noqa: F401
import numpy as np
import paddle
import PIL.Image  # noqa: F401
from paddleclas.ppcls.arch.backbone.legendary_models import (
    mobilenet_v1,
    mobilenet_v3,
    pp_hgnet_v2,
    pp_lcnet,
    pp_lcnet_v2,
)

REPO = Path(__file__).resolve().parents[2]
OUT = REPO / "tests" / "golden" / "data" / "mobile"
KEPT = 160  # values of each stage
LCNET = ("conv1", "blocks2", "blocks3", "blocks4", "blocks5", "blocks6", "last_conv", "fc")
STAGED = ("stem", "stages.0", "stages.1", "stages.2", "stages.3", "last_conv", "fc")
# case: (module, class of a size, gain, stages); one case of each structure
CASES: dict[str, tuple[ModuleType | None, str, float, tuple[str, ...]]] = {
    "mobilenetv1_x0_25": (
        mobilenet_v1,
        "MobileNetV1_x0_25",
        2.4,
        ("conv", "blocks.2", "blocks.4", "blocks.10", "blocks.12", "fc"),
    ),
    "mobilenetv3_small_x0_75": (
        mobilenet_v3,
        "MobileNetV3_small_x0_75",
        1.9,
        ("conv", "blocks.0", "blocks.2", "blocks.7", "blocks.10", "last_second_conv", "last_conv", "fc"),
    ),
    "mobilenetv3_large_x0_5": (
        mobilenet_v3,
        "MobileNetV3_large_x0_5",
        1.7,
        ("conv", "blocks.2", "blocks.5", "blocks.11", "blocks.14", "last_second_conv", "last_conv", "fc"),
    ),
    "pplcnet_x0_35": (pp_lcnet, "PPLCNet_x0_35", 2.7, LCNET),
    "pplcnetv2_small": (pp_lcnet_v2, "PPLCNetV2_small", 2.0, STAGED),
    "pplcnetv3_base": (None, "PPLCNetV3_base", 1.0, LCNET),
    "pphgnetv2_b0": (pp_hgnet_v2, "PPHGNetV2_B0", 1.7, STAGED),
    "pphgnetv2_b4": (pp_hgnet_v2, "PPHGNetV2_B4", 1.4, STAGED),
}


def load(path: Path, name: str) -> ModuleType:
    """A module by path: importing the package would need jax."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lcnet_v3(path: str) -> ModuleType:
    """The file of PaddleClas as a module of the installed package, whose relative imports it has."""
    from paddleclas.ppcls.utils import save_load

    save_load.load_dygraph_pretrain_from_url = None  # imported by the file, gone from the release
    return load(Path(path), f"{pp_lcnet.__package__}.pp_lcnet_v3")


def thin(array: np.ndarray) -> np.ndarray:
    flat = array.reshape(-1)
    return flat[:: -(-flat.size // KEPT)].astype(np.float32)


def reference(case: str, path: str) -> None:
    module, size, gain, watched = CASES[case]
    if module is None and not path:
        print(f"{case}: left out, it needs the path of its file")
        return
    model: Any = getattr(module or lcnet_v3(path), size)()
    model.eval()
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    weights = load(REPO / "framework" / "io" / "named_weights.py", "named_weights").named_weights(shapes)
    model.set_state_dict({name: gain * w if w.ndim == 4 else w for name, w in weights.items()})
    stages: dict[str, np.ndarray] = {}
    layers = dict(model.named_sublayers())
    for name in watched:
        keep = lambda layer, args, out, name=name: stages.__setitem__(name, out.numpy())  # noqa: E731
        layers[name].register_forward_post_hook(keep)
    # An odd size: padding and pooling at the borders count.
    image = np.random.RandomState(7).standard_normal((2, 3, 75, 97)).astype(np.float32)
    with paddle.no_grad():
        model(paddle.to_tensor(image))
    for name, out in stages.items():
        print(f"{case:24} {name:18} {out.shape!s:18} mean |x| {np.abs(out).mean():.4f}, std {out.std():.4f}")
    print(f"{case:24} logits differ by {np.abs(np.diff(stages['fc'], axis=0)).max():.4f}")
    keys = "\n".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in sorted(shapes.items()))
    OUT.mkdir(parents=True, exist_ok=True)
    thinned: dict[str, Any] = {name: thin(out) for name, out in stages.items()}
    np.savez_compressed(OUT / f"{case}.npz", keys=np.array(keys.encode()), gain=np.float32(gain), **thinned)


if __name__ == "__main__":
    for argument in sys.argv[1:] or CASES:
        reference(*argument.partition("=")[::2])
