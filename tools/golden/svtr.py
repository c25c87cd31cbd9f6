"""Reference outputs of SVTR, with and without rectification, from PaddleOCR's own code.

    python tools/golden/svtr.py PADDLEOCR        needs: pip install paddlepaddle==2.6.2 "numpy<2"

PADDLEOCR is a checkout of PaddleOCR 3. Written to tests/golden/data/svtr/<case>.npz: names and shapes of the state
dict, `count`, its parameters and those of the backbone alone, and of all but the two large sizes the outputs of each
stage, thinned, and the logits. Weights are drawn from their names, so none are stored; the drawn bias of the control
points is halved and added to that of upstream's initialisation, so that they lie near the edges.
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
CLASSES = 37
# Of configs/rec/rec_svtrnet.yml; the paper's other sizes by its table 1. Last: of rec_svtrnet_ch.yml.
# name: widths, depths, heads, local blocks, out_channels, columns, size of the image
SIZES: dict[str, tuple[Any, ...]] = {
    "svtr_tiny": ([64, 128, 256], [3, 6, 3], [2, 4, 8], 6, 192, 25, [32, 100]),
    "svtr_small": ([96, 192, 256], [3, 6, 6], [3, 6, 8], 8, 192, 25, [32, 100]),
    "svtr_base": ([128, 256, 384], [3, 6, 9], [4, 8, 12], 8, 256, 40, [48, 160]),
    "svtr_large": ([192, 256, 512], [3, 9, 9], [6, 8, 16], 10, 384, 40, [48, 160]),
    "svtr_tiny_stn": ([64, 128, 256], [3, 6, 3], [2, 4, 8], 6, 192, 25, [32, 100]),
    "svtr_tiny_ch": ([64, 128, 256], [3, 6, 3], [2, 4, 8], 6, 96, 40, [32, 320]),
}
RUN = ("svtr_tiny", "svtr_small", "svtr_tiny_stn", "svtr_tiny_ch")
STAGES = (
    "backbone.patch_embed.proj",
    *(
        f"backbone.{name}"
        for name in ("blocks1.2", "sub_sample1.conv", "blocks2.2", "blocks2.5", "blocks3.2")
    ),
    "backbone.last_conv",
    "head.fc",
)
LAST_BIAS = "transform.stn_head.stn_fc2.bias"


class Network(paddle.nn.Layer):
    """As upstream's BaseModel, which imports every architecture."""

    def __init__(self, case: str) -> None:
        super().__init__()
        from ppocr.modeling.backbones.rec_svtrnet import SVTRNet
        from ppocr.modeling.heads.rec_ctc_head import CTCHead
        from ppocr.modeling.necks.rnn import SequenceEncoder
        from ppocr.modeling.transforms.stn import STN_ON

        widths, depths, heads, local, out_channels, columns, size = SIZES[case]
        if case == "svtr_tiny_stn":
            self.transform = STN_ON(3, [32, 64], size, 20, [0.05, 0.05], "none")
        self.backbone = SVTRNet(
            img_size=size,
            out_char_num=columns,
            out_channels=out_channels,
            embed_dim=widths,
            depth=depths,
            num_heads=heads,
            mixer=["Local"] * local + ["Global"] * (sum(depths) - local),
            local_mixer=[[7, 11]] * 3,
            patch_merging="Conv",
            last_stage=True,
            prenorm=False,
        )
        self.neck = SequenceEncoder(out_channels, encoder_type="reshape")
        self.head = CTCHead(out_channels, CLASSES)

    def forward(self, x: Any) -> Any:
        x = self.transform(x) if hasattr(self, "transform") else x
        return self.head(self.neck(self.backbone(x)))


def reference(case: str) -> None:
    model = Network(case)
    state = model.state_dict()
    shapes = {key: tuple(value.shape) for key, value in state.items()}
    counts = [
        sum(int(np.prod(p.shape)) for p in part.parameters() if not p.stop_gradient)
        for part in (model, model.backbone)
    ]
    print(f"{case:14} {counts[0]:,} parameters, the backbone {counts[1]:,}")
    found: dict[str, np.ndarray] = {}
    if case in RUN:
        weights = named_weights(shapes)
        rectifies = LAST_BIAS in weights
        if rectifies:
            weights[LAST_BIAS] = 0.5 * weights[LAST_BIAS] + state[LAST_BIAS].numpy()
        model.set_state_dict(weights)
        model.eval()
        sublayers = dict(model.named_sublayers())
        transform = ("transform.stn_head.stn_fc2", "transform") if rectifies else ()
        for stage in (*transform, *STAGES):
            keep = lambda layer, args, out, stage=stage: found.__setitem__(stage, out.numpy())  # noqa: E731
            sublayers[stage].register_forward_post_hook(keep)
        size_hw = SIZES[case][-1]
        images = shared.soft_images((64, 256)) if rectifies else shared.images({"size_hw": size_hw})
        with paddle.no_grad():
            model(paddle.to_tensor(images))
        for name, value in found.items():
            print(f"  {name:28} {value.shape!s:18} max |x| {np.abs(value).max():.4f}, std {value.std():.4f}")
    keys = "\n".join(f"{key} {'x'.join(map(str, shape))}" for key, shape in sorted(shapes.items()))
    folder = GOLDEN / "data" / "svtr"
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        folder / f"{case}.npz",
        keys=np.array(keys.encode()),
        count=np.array(counts),
        **{name: shared.thin(value) for name, value in found.items()},
    )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.path.insert(0, sys.argv[1])
    for chosen in SIZES:
        reference(chosen)
