"""Reference outputs of MiT, Swin, ViT and DeiT, from PaddleSeg, PaddleClas and timm.

    python tools/golden/vision_transformers.py mit_b0 …        needs: paddlepaddle 2.6, paddleclas 2.6, paddleseg 2.8
    python tools/golden/vision_transformers.py timm_swin_tiny  needs: torch, timm 1.0

Every entry of the state dict is drawn from our name for it (framework/interop/named_weights.py). Each watched output,
maps as NCHW, is thinned to a few values; the reference's names and shapes, in Paddle's layouts, are stored with them.
Written to tests/golden/data/vision_transformers/<case>.npz.
"""

from __future__ import annotations

import re
import sys
import zlib  # noqa: F401  loaded before paddle, whose libraries bring one that crashes Python's
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from framework.interop.named_weights import named_weights  # noqa: E402

OUT = ROOT / "tests" / "golden" / "data" / "vision_transformers"
KEPT = 160  # values of each output
SIZES = {  # (height, width) of the images
    "mit_b0": (70, 101),
    "swin_tiny": (260, 300),
    "timm_swin_tiny": (224, 224),
    # timm pads behind the shift, so that only sizes which divide into windows are comparable.
    "timm_swin_tiny_wide": (224, 448),
}


def thin(array: np.ndarray) -> np.ndarray:
    flat = array.reshape(-1)
    return flat[:: -(-flat.size // KEPT)].astype(np.float32)


def as_map(tokens: np.ndarray, height_width: tuple[int, int], stride: int) -> np.ndarray:
    """[N, H * W, C] -> [N, C, H, W]."""
    h, w = (-(-side // stride) for side in height_width)
    return tokens.reshape(len(tokens), h, w, -1).transpose(0, 3, 1, 2)


def write(case: str, shapes: dict[str, tuple[int, ...]], found: dict[str, np.ndarray]) -> None:
    for name, out in found.items():
        print(f"{case:24} {name:22} {out.shape!s:20} max |x| {np.abs(out).max():.4f}, std {out.std():.4f}")
    keys = "\n".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in sorted(shapes.items()))
    OUT.mkdir(parents=True, exist_ok=True)
    thinned = {name: thin(out) for name, out in found.items()}
    np.savez_compressed(OUT / f"{case}.npz", keys=np.array(keys.encode()), **thinned)  # type: ignore[arg-type]


def image(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.RandomState(5).standard_normal(shape).astype(np.float32)


def paddle_model(case: str) -> tuple[Any, tuple[int, int], tuple[str, ...]]:
    """(model, size of the image, sublayers to watch)."""
    if case == "mit_b0":
        from paddleseg.models.backbones.mix_transformer import MixVisionTransformer_B0

        return MixVisionTransformer_B0(), SIZES[case], tuple(f"norm{i}" for i in range(1, 5))
    if case == "swin_tiny":
        from paddleclas.ppcls.arch.backbone.legendary_models import swin_transformer

        ends = tuple(f"layers.{i}.blocks.{end}" for i, end in enumerate((1, 1, 5, 1)))
        return swin_transformer.SwinTransformer_tiny_patch4_window7_224(), SIZES[case], (*ends, "head")
    from paddleclas.ppcls.arch.backbone.model_zoo import distilled_vision_transformer as deit
    from paddleclas.ppcls.arch.backbone.model_zoo import vision_transformer as vit

    build, last = {
        "deit_tiny": (deit.DeiT_tiny_patch16_224, 11),
        "deit_tiny_distilled": (deit.DeiT_tiny_distilled_patch16_224, 11),
        "vit_small_patch16": (vit.ViT_small_patch16_224, 7),
        "vit_base_patch16": (vit.ViT_base_patch16_224, 11),
        "vit_base_patch32_384": (vit.ViT_base_patch16_224, 11),
    }[case]
    # The 384 in the name of ViT_base_patch32_384 is fixed, so this size is made from another one.
    options = {"patch_size": 32} if case == "vit_base_patch32_384" else {}
    side = 64 if case.startswith("vit") else 80
    heads = ("head", "head_dist") if case.endswith("distilled") else ("head",)
    if options:
        model = vit.VisionTransformer(
            img_size=side, embed_dim=768, depth=12, num_heads=12, qkv_bias=True, epsilon=1e-6, **options
        )
    else:
        model = build(img_size=side)
    return model, (side, side), ("blocks.0", f"blocks.{last}", *heads)


def from_paddle(case: str) -> None:
    import paddle

    model, size, watched = paddle_model(case)
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    fixed = {name for name in shapes if name.endswith("relative_position_index")}
    model.set_state_dict(named_weights({n: s for n, s in shapes.items() if n not in fixed}))
    model.eval()
    found: dict[str, np.ndarray] = {}
    sublayers = dict(model.named_sublayers())
    for name in watched:
        keep = lambda _, args, out, name=name: found.__setitem__(name, out.numpy())  # noqa: E731
        sublayers[name].register_forward_post_hook(keep)
    with paddle.no_grad():
        out = model(paddle.to_tensor(image((2 if size[0] < 100 else 1, 3, *size))))
    if case.endswith("distilled"):
        found["logits"] = out.numpy()
    if case in ("mit_b0", "swin_tiny"):
        maps = [name for name in watched if name != "head"]
        found |= {name: as_map(found[name], size, 4 << i) for i, name in enumerate(maps)}
    write(case, shapes, found)


def from_timm(case: str) -> None:
    import torch

    # timm imports torchvision, whose operators may not fit the installed torch; none of them is used here.
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import timm

    size = SIZES[case]
    model = timm.create_model(
        "swin_tiny_patch4_window7_224", img_size=size, strict_img_size=size == (224, 224)
    )
    linear = {f"{name}.weight" for name, m in model.named_modules() if isinstance(m, torch.nn.Linear)}
    state = model.state_dict()
    shapes = {n: tuple(v.shape[::-1] if n in linear else v.shape) for n, v in state.items()}
    earlier = lambda match: f"layers.{int(match[1]) - 1}.downsample"  # noqa: E731
    ours = {n: re.sub(r"layers\.(\d)\.downsample", earlier, n).replace("head.fc.", "head.") for n in state}
    weights = named_weights({ours[n]: shape for n, shape in shapes.items()})
    for n in state:
        value = weights[ours[n]].T if n in linear else weights[ours[n]]
        state[n] = torch.from_numpy(np.ascontiguousarray(value))
    model.load_state_dict(state)
    model.eval()
    found: dict[str, np.ndarray] = {}
    watched = {f"layers.{i}": f"layers.{i}.blocks.{end}" for i, end in enumerate((1, 1, 5, 1))}
    for theirs, name in {**watched, "head.fc": "head"}.items():
        keep = lambda _, args, out, name=name: found.__setitem__(name, out.numpy())  # noqa: E731
        model.get_submodule(theirs).register_forward_hook(keep)
    with torch.no_grad():
        model(torch.from_numpy(image((1, 3, *size))))
    write(case, shapes, {n: out.transpose(0, 3, 1, 2) if out.ndim == 4 else out for n, out in found.items()})


if __name__ == "__main__":
    for chosen in sys.argv[1:]:
        (from_timm if chosen.startswith("timm") else from_paddle)(chosen)
