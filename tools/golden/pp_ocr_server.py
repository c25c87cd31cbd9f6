"""Reference outputs of the PP-OCRv4 and v5 server networks, and of DBNet and CRNN, from PaddleOCR's code.

    python tools/golden/pp_ocr_server.py PADDLEOCR [variant ...]        needs: pip install paddlepaddle==2.6.2 "numpy<2"

PADDLEOCR is a checkout of PaddleOCR 3. Written to tests/golden/data/pp_ocr_server/<variant>.npz. Every entry of the
state dict is drawn from its name (framework/interop/named_weights.py), the backbone's kernels times `gain`. Each
stage's output, NCHW, is thinned to a few values; `map` is a detector's output, `training` its three maps in training.
With them are names and shapes of the state dict, and `count`: values in it, those of layers that nothing calls,
parameters.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from reference import load

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
named_weights = load(GOLDEN.parents[1] / "framework" / "io" / "named_weights.py").named_weights
shared = load(GOLDEN / "thinning.py")
# variant: (module and name of the backbone, gain, classes of a recogniser)
VARIANTS: dict[str, tuple[str, str, float, int]] = {
    "PP-OCRv4_server_det": ("rec_hgnet", "PPHGNet_small", 1.2, 0),
    "PP-OCRv5_server_det": ("rec_pphgnetv2", "PPHGNetV2_B4", 1.3, 0),
    "DB_R50_vd": ("det_resnet_vd", "ResNet_vd", 1.0, 0),
    "DB++_R50": ("det_resnet", "ResNet", 1.0, 0),
    "CRNN_R34_vd": ("rec_resnet_vd", "ResNet", 1.0, 37),
    "CRNN_MV3": ("rec_mobilenet_v3", "MobileNetV3", 1.2, 37),
    "PP-OCRv4_server_rec": ("rec_hgnet", "PPHGNet_small", 1.2, 6625),
    "PP-OCRv5_server_rec": ("rec_pphgnetv2", "PPHGNetV2_B4", 1.3, 18385),
}
HGNET_STAGES = ("backbone.stem", *(f"backbone.stages.{i}" for i in range(4)))
STAGES = {
    "DB_R50_vd": ("backbone.conv1_3", *(f"backbone.bb_{i}_{n}" for i, n in enumerate((2, 3, 5, 2)))),
    "CRNN_R34_vd": ("backbone.conv1_3", *(f"backbone.bb_{i}_{n}" for i, n in enumerate((2, 3, 5, 2)))),
    "CRNN_MV3": ("backbone.conv1", *(f"backbone.blocks.{i}" for i in (3, 6, 12)), "backbone.conv2"),
    "DB++_R50": ("backbone.conv", *(f"backbone.res{i}" for i in ("2c", "3a", "3d", "4f", "5c"))),
}
# Keywords of the backbone, and the size of the LSTM.
CRNNS: dict[str, tuple[dict[str, Any], int]] = {
    "rec_resnet_vd": ({"layers": 34}, 256),
    "rec_mobilenet_v3": ({"model_name": "large", "scale": 0.5}, 96),
}
UNUSED = ("backbone.last_conv.", "backbone.fc.")


class Network(paddle.nn.Layer):
    """As upstream's BaseModel, which imports every architecture."""

    def __init__(self, module: str, name: str, num_classes: int) -> None:
        super().__init__()
        import importlib

        from ppocr.modeling.heads.det_db_head import DBHead, PFHeadLocal
        from ppocr.modeling.heads.rec_multi_head import MultiHead
        from ppocr.modeling.necks.db_fpn import DBFPN, LKPAN

        backbone = getattr(importlib.import_module(f"ppocr.modeling.backbones.{module}"), name)
        if module in CRNNS:
            from ppocr.modeling.heads.rec_ctc_head import CTCHead
            from ppocr.modeling.necks.rnn import SequenceEncoder

            options, hidden_size = CRNNS[module]
            self.backbone = backbone(**options)
            self.neck = SequenceEncoder(
                self.backbone.out_channels, encoder_type="rnn", hidden_size=hidden_size
            )
            self.head = CTCHead(self.neck.out_channels, num_classes, fc_decay=0)
        elif num_classes:
            self.backbone = backbone(**({"text_rec": True} if module == "rec_pphgnetv2" else {}))
            neck = dict(name="svtr", dims=120, depth=2, hidden_dims=120, kernel_size=[1, 3], use_guide=True)
            heads = [{"CTCHead": {"Neck": neck, "Head": {"fc_decay": 1e-5}}}]
            heads.append({"NRTRHead": {"nrtr_dim": 384, "max_text_length": 25}})
            # as tools/train.py counts them: 3 more classes for the decoder
            counts = {"CTCLabelDecode": num_classes, "NRTRLabelDecode": num_classes + 3}
            self.head = MultiHead(self.backbone.out_channels, counts, head_list=heads)
        elif "resnet" in module:
            plus = name == "ResNet"
            self.backbone = backbone(layers=50, dcn_stage=[False, plus, plus, plus])
            self.neck = DBFPN(self.backbone.out_channels, 256, use_asf=plus)
            self.head = DBHead(256, k=50)
        else:
            self.backbone = backbone(det=True)
            self.neck = LKPAN(self.backbone.out_channels, 256, intracl=True)
            self.head = PFHeadLocal(256, k=50, mode="large")

    def forward(self, x: Any) -> Any:
        x = self.backbone(x)
        return self.head(self.neck(x) if hasattr(self, "neck") else x)


def reference(variant: str) -> None:
    module, name, gain, num_classes = VARIANTS[variant]
    model = Network(module, name, num_classes)
    model.eval()
    state = model.state_dict()
    # An LSTM has each parameter under two names.
    first: dict[int, str] = {}
    for key in sorted(state, key=lambda key: ".cell_" in key):
        first.setdefault(id(state[key]), key)
    shapes = {key: tuple(value.shape) for key, value in state.items() if first[id(value)] == key}
    weights = named_weights(shapes)
    backbone = {key: value for key, value in weights.items() if key.startswith("backbone.")}
    weights |= shared.amplify(backbone, {"gain": gain})
    model.set_state_dict({key: weights[first[id(value)]] for key, value in state.items()})
    found: dict[str, np.ndarray] = {}
    sublayers = dict(model.named_sublayers())
    last = "head.binarize.conv3" if variant in STAGES else "head.cbn_layer.last_1"
    watched = ("head.ctc_encoder", "head.ctc_head.fc") if num_classes else ("neck", last)
    height = 48
    if module in CRNNS:
        watched, height = ("neck", "head.fc"), 32
    for stage in (*STAGES.get(variant, HGNET_STAGES), *watched):
        keep = lambda layer, args, out, stage=stage: found.__setitem__(stage, out.numpy())  # noqa: E731
        sublayers[stage].register_forward_post_hook(keep)
    case = {"size_hw": (height, 96) if num_classes else (64, 96), "images": 2 if num_classes else 1}
    with paddle.no_grad():
        out = model(paddle.to_tensor(shared.images(case)))
    if not num_classes:
        found["map"] = out["maps"].numpy()
        model.head.training = True  # the head's own branch, with normalisations as in evaluation
        with paddle.no_grad():
            found["training"] = model(paddle.to_tensor(shared.images(case)))["maps"].numpy()
    for stage, value in found.items():
        print(
            f"{variant:20} {stage:22} {value.shape!s:18} max |x| {np.abs(value).max():.4f}, std {value.std():.4f}"
        )
    sizes = {key: int(np.prod(shape)) for key, shape in shapes.items()}
    count, unused = sum(sizes.values()), sum(size for key, size in sizes.items() if key.startswith(UNUSED))
    parameters = sum(int(np.prod(p.shape)) for p in model.parameters() if not p.stop_gradient)
    print(f"{variant:20} {count:,} values, {unused:,} of them unused, {parameters:,} parameters")
    keys = "\n".join(f"{key} {'x'.join(map(str, shape))}" for key, shape in sorted(shapes.items()))
    folder = GOLDEN / "data" / "pp_ocr_server"
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        folder / f"{variant}.npz",
        keys=np.array(keys.encode()),
        count=np.array([count, unused, parameters]),
        gain=np.float32(gain),
        **{stage: shared.thin(value) for stage, value in found.items()},
    )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.path.insert(0, sys.argv[1])
    for chosen in sys.argv[2:] or VARIANTS:
        reference(chosen)
