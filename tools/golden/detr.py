"""Reference outputs and losses of RT-DETR and DINO, from PaddleDetection release/2.8.

    PYTHONPATH=<a checkout of PaddleDetection> python tools/golden/detr.py [case ...]        needs: paddlepaddle 2.6

The ppdet that pip has (2.6) is without RT-DETR. Every entry of the state dict is drawn from PaddleDetection's name for
it (framework/interop/named_weights.py). A case stores what watched sublayers give in eval, thinned, the detections,
and in training the parts of the loss, with the noise of the denoising queries put in, and the means of some gradients.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import paddle
from hrnet import thin

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from framework.interop.named_weights import named_weights

# Lane detection imports it, and nothing here needs it.
UNUSED = ("imgaug", *(f"imgaug.{name}" for name in ("augmenters", "augmentables", "augmentables.lines")))
sys.modules |= {name: mock.MagicMock() for name in (*UNUSED, "imgaug.augmentables.segmaps")}
ppdet = importlib.import_module("ppdet")
workspace = importlib.import_module("ppdet.core.workspace")

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "detr"
CONFIGS = Path(str(ppdet.__file__)).resolve().parents[1] / "configs"
# Steps from layer to layer that are as short as those of a trained model: long ones amplify rounding errors.
CALMED = ("sampling_offsets.weight", "layers.2.weight")
SLOTS = 12  # denoising queries of the small cases

RTDETR = ("neck.encoder.0", "neck.fpn_blocks.1", "neck.pan_blocks.1", "transformer.enc_output")
DINO = ("transformer.input_proj.3", "transformer.encoder", "transformer.enc_output")


class Case(NamedTuple):
    """`queries`, `layers` (of encoder and decoder), `depth` of the ResNet and the `classes` replace the config's.

    Cases with `queries` have the loss too.
    """

    config: str
    size_hw: tuple[int, int]
    watched: tuple[str, ...]
    queries: int | None = None
    layers: dict[str, int] | None = None
    depth: int | None = None
    classes: int | None = None


CASES = {
    "rt_detr_r18_small": Case("rtdetr/rtdetr_r18vd_6x_coco.yml", (64, 64), RTDETR, 20, {"decoder": 2}),
    # PP-DocLayout-L and PP-DocLayout_plus-L
    "rt_detr_l_640": Case("rtdetr/rtdetr_hgnetv2_l_6x_coco.yml", (640, 640), RTDETR, classes=23),
    "rt_detr_l_800": Case("rtdetr/rtdetr_hgnetv2_l_6x_coco.yml", (800, 800), RTDETR, classes=20),
    "rt_detr_r50": Case("rtdetr/rtdetr_r50vd_6x_coco.yml", (640, 640), RTDETR),
    "dino_small": Case(
        "dino/dino_r50_4scale_1x_coco.yml", (64, 96), DINO, 20, {"encoder": 1, "decoder": 2}, 18
    ),
    "dino_r50": Case("dino/dino_r50_4scale_1x_coco.yml", (800, 1333), DINO),
}
# cxcywh in 0 to 1 of the image, and labels: of three images, the second without objects
OBJECTS = (
    ([[0.3, 0.4, 0.2, 0.3], [0.7, 0.6, 0.5, 0.6], [0.5, 0.25, 0.1, 0.08]], [3, 17, 3]),
    ([], []),
    ([[0.55, 0.5, 0.6, 0.9]], [79]),
)
GRADIENTS = (
    "transformer.decoder.layers.0.cross_attn.sampling_offsets.weight",
    "transformer.dec_bbox_head.0.layers.2.weight",
    "transformer.denoising_class_embed.weight",
    "transformer.input_proj.0.conv.weight",
)


def build(case: Case) -> Any:
    config = workspace.load_config(str(CONFIGS / case.config))
    config["eval_size"] = None
    if case.classes:
        config["num_classes"] = case.classes
    transformer = config["DETR"]["transformer"]
    if case.queries:
        config[transformer]["num_queries"] = case.queries
    for part, number in (case.layers or {}).items():
        config[transformer][f"num_{part}_layers"] = number
    if case.depth:
        config["ResNet"]["depth"] = case.depth
    model: Any = workspace.create(config.architecture)
    weights = named_weights({name: tuple(value.shape) for name, value in model.state_dict().items()})
    for name in weights:
        if name.endswith(CALMED):
            weights[name] *= 0.1
    model.set_state_dict(weights)
    return model


def images(batch: int, size_hw: tuple[int, int]) -> Any:
    values = np.random.RandomState(5).standard_normal((batch, 3, *size_hw)).astype(np.float32)
    return paddle.to_tensor(values)


def predict(model: Any, case: Case) -> dict[str, np.ndarray]:
    model.eval()
    found: dict[str, Any] = {}
    decoder = model.transformer.decoder.layers
    watched = [*case.watched, f"transformer.decoder.layers.{len(decoder) - 1}"]
    layers = dict(model.named_sublayers())
    for name in watched:
        layers[name].register_forward_post_hook(
            lambda _, args, out, name=name: found.__setitem__(name, out.numpy())
        )
    x = images(1, case.size_hw)
    with paddle.no_grad():
        maps = model.backbone({"image": x})
        out = model.transformer(model.neck(maps) if model.with_neck else maps)
        size = paddle.to_tensor([case.size_hw], "float32")
        rows = model.post_process(model.detr_head(out, maps), size, paddle.ones([1, 2]), size)[0].numpy()
    for name, value in found.items():
        print(f"{name:40} {value.shape!s:22} std {value.std():.4f}")
    return {name: thin(value) for name, value in found.items()} | {"detections": rows[:100]}


@contextlib.contextmanager
def noise() -> Iterator[None]:
    """The arrays of tests/golden/test_detr.py in place of what paddle draws."""
    draw = np.random.RandomState(11)
    batch = len(OBJECTS)
    chance, labels = draw.rand(batch, SLOTS), draw.randint(0, 80, (batch, SLOTS))
    signs, shares = draw.randint(0, 2, (batch, SLOTS, 4)), draw.rand(batch, SLOTS, 4)

    def rand(shape: list[int]) -> Any:
        taken = chance[:, : shape[0] // batch].reshape(-1) if len(shape) == 1 else shares[:, : shape[1]]
        return paddle.to_tensor(taken.astype(np.float32))

    def randint_like(x: Any, low: int, high: int, dtype: Any = None) -> Any:
        if x.ndim == 1:  # of the queries that the first draw chose
            queries = 2 * 3 * (SLOTS // 2 // 3)
            return paddle.to_tensor(labels[:, :queries].reshape(-1)[x.numpy()].astype(np.int32))
        return paddle.to_tensor(signs[:, : x.shape[1]].astype(np.float32))

    with mock.patch.object(paddle, "rand", rand), mock.patch.object(paddle, "randint_like", randint_like):
        yield


def learn(model: Any, case: Case) -> dict[str, np.ndarray]:
    model.train()
    model.transformer.num_denoising = SLOTS // 2
    boxes = [paddle.to_tensor(np.reshape(box, (-1, 4)).astype(np.float32)) for box, _ in OBJECTS]
    labels = [paddle.to_tensor(np.reshape(label, (-1, 1)).astype(np.int32)) for _, label in OBJECTS]
    inputs = {"image": images(len(OBJECTS), case.size_hw), "gt_bbox": boxes, "gt_class": labels}
    maps = model.backbone(inputs)
    with noise():
        out = model.transformer(model.neck(maps) if model.with_neck else maps, None, inputs)
    losses = model.detr_head(out, maps, inputs)
    paddle.add_n(list(losses.values())).backward()
    found = {name: np.asarray(float(value)) for name, value in losses.items()}
    parameters = dict(model.named_parameters())
    for name in GRADIENTS:
        found[f"gradient {name}"] = np.abs(parameters[name].grad.numpy()).mean()
    print({name: float(value) for name, value in found.items()})
    return found


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or CASES:
        case = CASES[name]
        model = build(case)
        model.with_neck = getattr(model, "neck", None) is not None
        keys = "\n".join(
            f"{key} {'x'.join(map(str, value.shape))}" for key, value in sorted(model.state_dict().items())
        )
        stored = predict(model, case)
        if case.queries:
            stored |= {f"loss {key}": value for key, value in learn(model, case).items()}
        np.savez_compressed(OUT / f"{name}.npz", keys=np.array(keys.encode()), **stored)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
