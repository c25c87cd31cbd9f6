"""What functions of Paddle and PaddleOCR give: nn, vision.ops, vision.transforms, losses; and Paddle's signatures."""

from __future__ import annotations

import inspect
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tools.golden.cases import Case, OpCase, derived, functional_cases, op_cases
from tools.golden.models import beside
from tools.golden.network import Arrays, find, flatten, import_paddle, load_file

DATA = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data"


def files(name: str, cases: list[str]) -> Iterator[tuple[Path, Any]]:
    if name == "functional":
        every = functional_cases()
        for group in cases or sorted({case.group for case in every if not case.group.endswith("_v3")}):
            stored = [record(case) for case in every if case.group == group]
            yield DATA / "functional" / f"{group}.npz", {k: v for arrays in stored for k, v in arrays.items()}
    elif name == "vision_ops":
        stored = [record_op(case) for case in op_cases()]
        yield DATA / "vision_ops.npz", {k: v for arrays in stored for k, v in arrays.items()}
    elif name == "signatures":
        yield DATA / "signatures.json", signatures()
    else:
        yield DATA / f"{name}.npz", vision_transforms() if name == "vision_transforms" else ocr_losses()


def paddle() -> Any:
    return import_paddle()


def F() -> Any:
    return paddle().nn.functional


def channels_first(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(array, -1, 1)) if array.ndim > 2 else array


def channels_last(array: np.ndarray) -> np.ndarray:
    return np.moveaxis(array, 1, -1) if array.ndim > 2 else array


def build_layer(case: Case) -> Any:
    *wrappers, name = case.op.split(":")[1:]
    layer = getattr(paddle().nn, name)(**case.options)
    for wrapper in wrappers:
        layer = getattr(paddle().nn.utils, wrapper)(layer)
    values = {key: derived(case.name, key, tuple(v.shape), 0.5) for key, v in layer.state_dict().items()}
    aliases = {key: value for key, value in values.items() if not key[0].isdigit()}
    for key, value in aliases.items():
        if key.endswith(("_variance", "weight_g")):
            value[...] = np.abs(value) + 0.5
    state = layer.state_dict()
    for key, value in aliases.items():
        state[key].set_value(value)
    return layer


def run_layer(case: Case, inputs: dict[str, Any]) -> list[Any]:
    layer = build_layer(case)
    inputs = dict(inputs)
    first = inputs.pop("x")
    if case.op.endswith("BatchNorm2D"):
        out = layer(first)
        return [out, layer._mean, layer._variance]
    out = layer(first, *(inputs.pop(k) for k in ("key", "value", "memory", "tgt") if k in inputs), **inputs)
    return flatten(out)


def run(case: Case, inputs: dict[str, Any]) -> list[Any]:
    """The outputs of one case, images still channels-first."""
    options = dict(case.options)
    if case.op.startswith("layer:"):
        return run_layer(case, inputs)
    if case.op == "batch_norm":
        mean, variance = inputs["running_mean"].clone(), inputs["running_var"].clone()
        y = F().batch_norm(inputs["x"], mean, variance, inputs["weight"], inputs["bias"], **options)
        return [y, mean, variance]
    if case.op == "affine_grid":
        n, h, w, c = options.pop("out_shape")
        return [F().affine_grid(inputs["theta"], [n, c, h, w], **options)]
    if case.op == "unfold":
        return [F().unfold(inputs["x"], **options).transpose([0, 2, 1])]
    if case.op == "fold":
        return [F().fold(inputs["x"].transpose([0, 2, 1]), **options)]
    if case.op == "ctc_loss":
        out = F().ctc_loss(**inputs, **options)
        return [out.reshape([-1]) if options.get("reduction") == "none" else out]
    if case.op == "cross_entropy" and options.get("label_smoothing") and options.get("reduction") == "none":
        return [F().cross_entropy(**inputs, **options)[:, 0]]  # ours keeps the label's shape
    if case.op == "group_norm":
        numbers = options.get("epsilon", 1e-5), options["num_groups"], "NCHW"
        return [paddle()._C_ops.group_norm(inputs["x"], inputs["weight"], inputs["bias"], *numbers)]
    if case.op == "rnnt_loss":  # its kernel for the CPU takes log-probabilities, that for a GPU logits
        inputs["input"] = F().log_softmax(inputs["input"])
    if case.op == "hsigmoid_loss":  # counts log 2 for every step that a path is shorter than the longest
        out = F().hsigmoid_loss(**inputs, **options)
        paths = inputs["path_table"].numpy() if "path_table" in inputs else None
        leaves = inputs["label"].numpy()[:, 0] + options["num_classes"]
        lengths = [int(n).bit_length() - 1 for n in leaves] if paths is None else (paths >= 0).sum(1)
        longest = paths.shape[1] if paths is not None else (2 * options["num_classes"] - 1).bit_length() - 1
        unused = longest - np.asarray(lengths, "float32")
        return [out - paddle().to_tensor(unused[:, None] * np.float32(np.log(2)))]
    if case.op in ("pad", "interpolate"):
        options["data_format"] = {3: "NCL" if case.op == "pad" else "NCW", 4: "NCHW", 5: "NCDHW"}[
            inputs["x"].ndim
        ]
    if case.op == "prelu":
        return [F().prelu(inputs["x"], inputs["weight"])]
    positional = [inputs.pop(k) for k in list(inputs) if k in ("x", "x1", "x2")]
    out = getattr(F(), case.op)(*positional, **inputs, **options)
    return list(out) if isinstance(out, (list, tuple)) else [out]


def record(case: Case) -> dict[str, np.ndarray]:
    tensors = {}
    for name, value in case.inputs().items():
        if case.arrays[name].image:
            value = channels_first(value)
        tensors[name] = paddle().to_tensor(value, stop_gradient=not case.arrays[name].grad)
    leaves = dict(tensors)
    outputs = run(case, tensors)
    stored, total = {}, None
    for i, out in enumerate(outputs):
        value = out.numpy()
        last = channels_last(value) if case.image_out else value
        stored[f"{case.name}/out{i}"] = last
        if not out.stop_gradient and out.is_floating_point() and case.differentiated:
            cotangent = case.cotangent(i, last.shape)
            part = (
                out * paddle().to_tensor(channels_first(cotangent) if case.image_out else cotangent)
            ).sum()
            total = part if total is None else total + part
    if total is not None:
        total.backward()
        for name in case.differentiated:
            gradient = leaves[name].grad
            value = np.zeros(leaves[name].shape, np.float32) if gradient is None else gradient.numpy()
            stored[f"{case.name}/grad/{name}"] = channels_last(value) if case.arrays[name].image else value
    return {k: np.asarray(v, np.float32) for k, v in stored.items()}


# -- paddle.vision ---------------------------------------------------------------------------------------------------


def record_op(case: OpCase) -> Arrays:
    tensors = {
        key: paddle().to_tensor(
            channels_first(value) if key in case.maps else value, stop_gradient=key not in case.differentiated
        )
        for key, value in case.inputs().items()
    }
    options = case.options | ({"return_index": True} if case.op == "matrix_nms" else {})
    outs = flatten(find(f"paddle.vision.ops.{case.op}")(**tensors, **options))
    values = [channels_last(out.numpy()) if case.maps_out else out.numpy() for out in outs]
    stored = {f"{case.name}/{i}": value for i, value in enumerate(values)}
    if case.differentiated:
        cotangent = case.cotangent(values[0].shape)
        cotangent = channels_first(cotangent) if case.maps_out else cotangent
        (outs[0] * paddle().to_tensor(cotangent)).sum().backward()
        for key in set(case.differentiated) & tensors.keys():
            gradient = tensors[key].grad.numpy()
            stored[f"{case.name}/grad/{key}"] = channels_last(gradient) if key in case.maps else gradient
    return stored


# Odd sizes, one row, one column, one pixel, one channel with and without its axis.
SHAPES = {
    "odd": (17, 23, 3),
    "tall": (31, 14, 3),
    "row": (1, 9, 3),
    "column": (8, 1, 3),
    "pixel": (1, 1, 3),
    "gray": (13, 18, 1),
    "flat": (12, 15),
}
# no pixel's source lies on the border of two pixels: rounding would decide between them
_CORNERS = ([[0, 0], [22, 0], [22, 16], [0, 16]], [[2.3, 1.2], [20.4, 3.1], [20.7, 13.4], [1.1, 14.8]])

TRANSFORMS: list[tuple[str, str, tuple[Any, ...], dict[str, Any]]] = [
    *(("resize", name, (size,), {}) for name in SHAPES for size in ((7, 11), (40, 29), (1, 1))),
    *(("resize", name, (size,), {}) for name in ("odd", "tall", "gray", "flat") for size in (5, 13, 14, 30)),
    *(
        ("resize", "odd", ((9, 31),), {"interpolation": kind})
        for kind in ("nearest", "bicubic", "lanczos", "area", "box", "hamming")
    ),
    *(("hflip", name, (), {}) for name in SHAPES),
    *(("vflip", name, (), {}) for name in SHAPES),
    *(
        ("pad", name, (border,), {"padding_mode": mode})
        for name in ("odd", "gray", "flat")
        for border in (2, (1, 3), (0, 1, 2, 3))
        for mode in ("constant", "edge", "reflect", "symmetric")
    ),
    ("pad", "odd", (2,), {"fill": 130}),
    ("pad", "odd", ((3, 1),), {"fill": (10, 200, 30)}),
    ("pad", "flat", ((3, 1),), {"fill": 77}),
    *(
        ("center_crop", name, (size,), {})
        for name in ("odd", "tall", "gray")
        for size in (5, (6, 9), (13, 14))
    ),
    ("center_crop", "pixel", (1,), {}),
    *(("crop", name, (2, 3, 7, 5), {}) for name in ("odd", "tall", "gray")),
    *(
        ("adjust_brightness", name, (factor,), {})
        for name in ("odd", "gray", "flat")
        for factor in (0, 0.37, 1, 2.5)
    ),
    *(
        ("adjust_contrast", name, (factor,), {})
        for name in ("odd", "gray", "flat")
        for factor in (0, 0.37, 1, 2.5)
    ),
    *(("adjust_hue", name, (f,), {}) for name in ("odd", "pixel") for f in (-0.5, -0.21, 0, 0.1, 0.5)),
    *(
        ("to_grayscale", name, (), {"num_output_channels": n})
        for name in ("odd", "row", "pixel")
        for n in (1, 3)
    ),
    *(
        ("rotate", name, (angle,), {"expand": expand, "interpolation": kind})
        for name, kind in (("odd", "nearest"), ("tall", "bilinear"), ("gray", "bicubic"), ("flat", "nearest"))
        for angle in (-33.3, 0, 90, 180, 271)
        for expand in (False, True)
    ),
    ("rotate", "odd", (20,), {"center": (3, 5), "fill": (9, 99, 199)}),
    ("rotate", "odd", (20,), {"fill": 55}),
    ("rotate", "pixel", (45,), {"expand": True}),
    *(
        ("affine", name, (angle, (2, -3), scale, shear), {"interpolation": kind})
        for name in ("odd", "gray")
        for angle, scale, shear, kind in (
            (0, 1.0, 0.0, "nearest"),
            (25, 0.7, (10, -5), "nearest"),
            (-140, 1.6, [12.5, 0], "bilinear"),
        )
    ),
    ("affine", "odd", (15, [1, 1], 1.0, 3), {"fill": (9, 99, 199), "center": (3, 4)}),
    ("affine", "odd", (15, [1, 1], 1.0, (3,)), {"fill": 120}),
    *(
        ("perspective", name, _CORNERS, {"interpolation": kind, "fill": fill})
        for name, fill in (("odd", 0), ("odd", (1, 120, 33)), ("gray", 0))
        for kind in ("nearest", "bilinear", "bicubic")
    ),
    ("erase", "odd", (2, 3, 6, 5, 17), {}),
    ("erase", "odd", (2, 3, 60, 50, np.array([[[1, 2, 3]]])), {}),
    *(("to_tensor", name, (), {"data_format": kind}) for name in SHAPES for kind in ("HWC", "CHW")),
    ("normalize", "odd", ([120.0, 110.5, 99.9], [50.0, 60.0, 70.7]), {"data_format": "HWC"}),
    ("normalize", "odd", ([120.0, 110.5, 99.9], [50.0, 60.0, 70.7]), {"data_format": "HWC", "to_rgb": True}),
    ("normalize", "first", ([120.0, 110.5, 99.9], [50.0, 60.0, 70.7]), {"data_format": "CHW"}),
    ("normalize", "flat", ([127.5], [127.5]), {"data_format": "CHW"}),
    ("normalize", "gray", ([127.5], [127.5]), {"data_format": "HWC"}),
]
SHAPES["first"] = (3, 11, 7)


# Functions that treat floats from 0 to 1 in their own way: Paddle's third backend, of its Tensors.
OF_TENSORS = ("adjust_brightness", "adjust_contrast", "adjust_saturation", "adjust_hue")


def key(number: int, backend: str) -> str:
    """The name of a case's result in the file."""
    return f"{number}/{backend}"


def image(name: str) -> np.ndarray:
    """The uint8 image of that name."""
    return np.random.default_rng(zlib.crc32(name.encode())).integers(0, 256, SHAPES[name]).astype(np.uint8)


def vision_transforms() -> Arrays:
    """Each case on an array and, but for channels-first ones, on a PIL image; OF_TENSORS on Tensors, too.

    Where Paddle raises, nothing is stored; where it loses the axis of one channel, the axis is put back. On PIL images
    it does not look at the `fill` of affine and perspective and puts an axis before grey images in normalize: left out.
    """
    from PIL import Image

    functional, stored = find("paddle.vision.transforms.functional"), {}
    for number, (function, name, args, options) in enumerate(TRANSFORMS):
        pixels, run = image(name), getattr(functional, function)
        backends: dict[str, Any] = {"array": pixels}
        if name != "first":
            grey = pixels.ndim == 3 and pixels.shape[2] == 1
            backends["pil"] = Image.fromarray(pixels[..., 0] if grey else pixels)
        if (options.get("fill") and function in ("affine", "perspective")) or (function, name) == (
            "normalize",
            "gray",
        ):
            backends.pop("pil", None)
        if function == "adjust_saturation":  # it is random
            del backends["array"]
        for backend, value in backends.items():
            try:
                out = np.asarray(run(value, *args, **options))
            except Exception as error:
                print(
                    f"{function} {name} {args} {options} on {backend}: {type(error).__name__}: {error}"[:200]
                )
                continue
            stored[key(number, backend)] = (
                out[..., None] if backend == "array" and out.ndim < pixels.ndim else out
            )
        if function in OF_TENSORS and pixels.ndim == 3:
            tensor = paddle().to_tensor(pixels.transpose(2, 0, 1).astype(np.float32) / np.float32(255))
            stored[key(number, "tensor")] = run(tensor, *args).numpy().transpose(1, 2, 0)
    return stored


# -- signatures, losses of recognisers -------------------------------------------------------------------------------


def signatures() -> str:
    """The arguments and defaults of Paddle's layers, functions and optimizers, as JSON."""
    found: dict[str, list[list[str | None]]] = {}
    for module in ("nn", "nn.functional", "nn.initializer", "optimizer", "optimizer.lr", "metric"):
        owner = find(f"paddle.{module}")
        for name in sorted(n for n in dir(owner) if not n.startswith("_")):
            value = getattr(owner, name)
            if callable(value) and not inspect.ismodule(value):
                found[f"{module}.{name}"] = [
                    [p.name, None if p.default is p.empty else repr(p.default)]
                    for p in inspect.signature(value).parameters.values()
                    if p.kind is not p.VAR_POSITIONAL and p.kind is not p.VAR_KEYWORD
                ]
    rows = (f"{json.dumps(name)}: {json.dumps(arguments)}" for name, arguments in found.items())
    return "{\n" + ",\n".join(rows) + "\n}\n"


def ocr_losses() -> Arrays:
    """Inputs and values of PaddleOCR's losses of recognisers: PARSeq, centres, mutual learning."""
    classes, start, padding = 9, 9, 10
    rng, tensor = np.random.default_rng(0), paddle().to_tensor
    parts = {
        name: load_file(beside(f"ppocr/losses/{name}.py"), name)
        for name in ("rec_parseq_loss", "center_loss", "basic_loss")
    }
    tokens = np.array(
        [[start, 3, 4, 0, padding, padding], [start, 1, 8, 8, 2, 0], [start, 5, 0, *[padding] * 3]]
    )
    logits = rng.standard_normal((4, 3, 5, classes)).astype(np.float32) * 2
    flat = [tensor(one.reshape(-1, classes)) for one in logits]
    largest = paddle().max
    paddle().max = lambda x: largest(x).reshape([1])  # whose result has no dimension any more
    targets = [None, tensor(tokens), tensor(np.array([2, 4, 1]))]
    outputs = {"logits_list": flat, "pad_id": padding, "eos_id": 0}
    value = parts["rec_parseq_loss"].ParseQLoss()(outputs, targets)["loss"]
    found = {"parseq.tokens": tokens, "parseq.logits": logits, "parseq.loss": value.numpy()}
    features = rng.standard_normal((2, 4, 3)).astype(np.float32)
    scores = rng.standard_normal((2, 4, classes)).astype(np.float32)
    center = parts["center_loss"].CenterLoss(classes, 3)
    value = center([tensor(features), tensor(scores)], None)["loss_center"]
    found |= {"center.features": features, "center.scores": scores, "center.loss": value.numpy()}
    found |= {"center.centers": center.centers.numpy()}
    first, second = (rng.standard_normal((2, 4, classes)).astype(np.float32) * 2 for _ in range(2))
    value = parts["basic_loss"].DMLLoss(act="softmax", use_log=True)(tensor(first), tensor(second))
    found |= {"mutual.first": first, "mutual.second": second, "mutual.loss": value.numpy()}
    one, other = (rng.uniform(0, 1, (2, 6, 5)).astype(np.float32) for _ in range(2))
    value = parts["basic_loss"].DMLLoss()(tensor(one), tensor(other))  # a value for each image
    found |= {"maps.first": one, "maps.second": other, "maps.loss": value.numpy()}
    return {name: np.asarray(array) for name, array in found.items()}
