"""Reference outputs of the PP-OCRv3, v4 and v5 mobile networks, from the PyTorch port in the rapidocr package.

    python tools/golden/pp_ocr_older.py [variant ...]        needs: pip install rapidocr torch omegaconf

As tools/golden/pp_ocrv6.py does; written to tests/golden/data/pp_ocr_older/<variant>.npz. In two places the port is not
upstream, which is put right here: the fusing convolution of the encoder of v4 and v5 is 3x3 (upstream 1x3, and only so
the exported v5 recogniser has its 4,113,181 parameters), and the v3 recogniser has no MultiHead around its head.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import numpy as np
import rapidocr
import torch
import yaml
from pp_ocrv6 import fill, thin
from rapidocr.inference_engine.pytorch.networks.architectures.base_model import BaseModel

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "pp_ocr_older"
# The detector of PP-OCRv4 is that of v5.
VARIANTS = {
    "PP-OCRv3_mobile_rec": "ch_PP-OCRv4_rec_mobile",
    "PP-OCRv5_mobile_det": "ch_PP-OCRv5_det_mobile",
    "PP-OCRv4_mobile_rec": "ch_PP-OCRv4_rec_mobile",
    "PP-OCRv5_mobile_rec": "ch_PP-OCRv5_rec_mobile",
}
LCNET_STAGES = ("conv1", "blocks2", "blocks3", "blocks4", "blocks5", "blocks6")
ENHANCE_STAGES = ("conv1", "block_list")


def build(variant: str) -> BaseModel:
    folder = Path(rapidocr.__file__).parent / "inference_engine" / "pytorch" / "networks"
    configs = yaml.safe_load((folder / "arch_config.yaml").read_text(encoding="utf-8"))
    config = copy.deepcopy(configs[VARIANTS[variant]])
    if variant == "PP-OCRv3_mobile_rec":
        config["Backbone"] = configs["latin_PP-OCRv3_rec_mobile"]["Backbone"]
        config["Head"]["head_list"][0]["CTCHead"]["Neck"].update(dims=64, kernel_size=[3, 3])
    model = BaseModel(config).eval()
    if variant in ("PP-OCRv4_mobile_rec", "PP-OCRv5_mobile_rec"):
        fusing = model.get_submodule("head.ctc_encoder.encoder.conv4")
        fusing.conv = torch.nn.Conv2d(960, 60, (1, 3), padding=(0, 1), bias=False)
    return model


def reference(variant: str) -> None:
    model = build(variant)
    shapes = fill(model)
    detects = variant.endswith("det")
    backbone = ENHANCE_STAGES if variant == "PP-OCRv3_mobile_rec" else LCNET_STAGES
    stages: dict[str, np.ndarray] = {}
    watched = ["neck", "head.binarize.conv3"] if detects else ["head.ctc_encoder", "head.ctc_head.fc"]
    for name in [*(f"backbone.{stage}" for stage in backbone), *watched]:
        hook = lambda _, args, out, name=name: stages.__setitem__(name, out.numpy())  # noqa: E731
        model.get_submodule(name).register_forward_hook(hook)
    shape = (1, 3, 64, 96) if detects else (2, 3, 48, 96)
    image = np.random.RandomState(5).standard_normal(shape).astype(np.float32)
    with torch.no_grad():
        model(torch.from_numpy(image))
    for name, out in stages.items():
        print(
            f"{variant:24} {name:20} {out.shape!s:20} mean |x| {np.abs(out).mean():.4f}, std {out.std():.4f}"
        )
    keys = "\n".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in sorted(shapes.items()))
    OUT.mkdir(parents=True, exist_ok=True)
    thinned = {name: thin(out) for name, out in stages.items()}
    np.savez_compressed(OUT / f"{variant}.npz", keys=np.array(keys.encode()), **thinned)  # type: ignore[arg-type]


if __name__ == "__main__":
    for chosen in sys.argv[1:] or VARIANTS:
        reference(chosen)
