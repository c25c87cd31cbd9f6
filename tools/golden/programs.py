"""Small programs that Paddle exports, with inputs and its outputs, and what programs of tests/e2e report on Paddle.

paddle_graphs: layers. paddle_control: control flow, and the last steps of detectors. Under paddlepaddle 2.6.2
both write ProgramDesc, under 3.2.2 PIR.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import paddle  # type: ignore[import-not-found]
import paddle.nn.functional as F  # type: ignore[import-not-found]
from paddle import nn  # type: ignore[import-not-found]
from paddle.base.layer_helper import LayerHelper  # type: ignore[import-not-found]
from paddle.vision import ops  # type: ignore[import-not-found]

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "golden" / "data"
PROGRAMS = ROOT / "tests" / "e2e" / "paddle_programs"
PIR = paddle.__version__.startswith("3")
Arrays = dict[str, np.ndarray]


class TextLine(nn.Layer):
    """A recogniser of text lines: convolutions, then recurrence over the width."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2D(3, 8, 3, 2, 1), nn.BatchNorm2D(8)
        self.depthwise, self.act = nn.Conv2D(8, 8, 3, 1, 1, groups=8), nn.Hardswish()
        self.pool = nn.MaxPool2D(2, 2)
        self.lstm = nn.LSTM(32, 12, num_layers=2, direction="bidirect")
        self.gru, self.fc = nn.GRU(24, 10), nn.Linear(10, 7)

    def forward(self, x):
        x = self.pool(self.act(self.depthwise(self.act(self.norm(self.conv(x))))))
        x = x.reshape([0, x.shape[1] * x.shape[2], -1]).transpose([0, 2, 1])
        x, _ = self.lstm(x)
        x, _ = self.gru(x)
        return F.softmax(self.fc(x), -1)


class Encoder(nn.Layer):
    """A text encoder with a mask, and several kinds of outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, 0.1, "gelu"), 2)
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        y = self.words(x) + paddle.arange(x.shape[1], dtype="float32").unsqueeze(-1) * 0.01
        mask = (x == 0).astype("float32").unsqueeze([1, 2]) * -1e4
        y = self.norm(self.encoder(y, mask))
        return y[:, 0], paddle.argmax(y, -1), y.mean(1), paddle.topk(y, 3)[0]


class Pyramid(nn.Layer):
    """Feature maps of several sizes: resizing, padding, pooling, splitting and joining."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2D(3, 8, 3, 2, 1), nn.Conv2D(8, 16, 3, 2, 1)
        self.lateral, self.up = nn.Conv2D(16, 8, 1), nn.Conv2DTranspose(8, 4, 2, 2)
        self.squeeze, self.gate = nn.AdaptiveAvgPool2D(1), nn.Conv2D(8, 8, 1)
        self.groups, self.instance = nn.GroupNorm(2, 8), nn.InstanceNorm2D(4)

    def forward(self, x):
        high = F.relu(self.first(x))
        low = F.interpolate(self.lateral(F.relu6(self.second(high))), scale_factor=2, mode="nearest")
        y = self.groups(low + high)
        y = y * F.hardsigmoid(self.gate(self.squeeze(y)))
        full = F.interpolate(y, size=x.shape[2:], mode="bilinear")
        pooled = F.avg_pool2d(F.pad(self.instance(self.up(y)), [1, 1, 2, 0]), 3, 2, 1, ceil_mode=True)
        parts = paddle.concat(paddle.split(pooled, 2, axis=1)[::-1], 1)
        stacked = paddle.clip(paddle.stack([parts[:, 0], parts[:, 1] * 2], 1), -1, 1)
        return F.sigmoid(full), pooled, stacked, paddle.flatten(paddle.squeeze(self.squeeze(y), [2, 3]), 0)


class Branches(nn.Layer):
    """Conditions that values decide: one inside another, and one that only assigns in one case."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 4), nn.Linear(6, 4)

    def forward(self, x):
        count = paddle.zeros([1])
        if x.mean() > 0:
            y = self.a(x)
            if y.max() > 1:
                y = y * 0.5
                count = count + 1
        else:
            y = F.relu(self.b(x))
        if y.sum() > 2:
            count = count + 10
        if x.shape[0] > 2:
            y = y + 1
        return y, count


class Decoder(nn.Layer):
    """Recurrent decoding that collects a list: the structure of PP-Structure's tables is decoded so."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.scores = nn.GRUCell(8 + 5, 6), nn.Linear(6, 5)
        self.places = nn.Linear(6, 4)

    def forward(self, features):
        hidden = paddle.zeros((features.shape[0], 6))
        token = paddle.zeros([features.shape[0]], dtype="int32")
        steps = paddle.to_tensor(40)
        scores, places = [], []
        i = paddle.to_tensor(0)
        while i < steps + 1:
            context = features.mean(1)
            hidden, _ = self.cell(paddle.concat([context, F.one_hot(token, 5)], 1), hidden)
            score = self.scores(hidden)
            token = score.argmax(axis=1, dtype="int32")
            scores.append(score)
            places.append(F.sigmoid(self.places(hidden)))
            i += 1
        return F.softmax(paddle.stack(scores, 1)), paddle.stack(places, axis=1)


class Greedy(nn.Layer):
    """Decoding until an end symbol, into an array of the greatest length, as translation and formulas are decoded."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.cell, self.out = nn.Embedding(9, 6), nn.LSTMCell(6, 7), nn.Linear(7, 9)

    def forward(self, x):
        hidden, cell = paddle.tanh(x), paddle.zeros_like(x)
        token = paddle.full([x.shape[0]], 1, dtype="int64")
        found = paddle.zeros([x.shape[0], 12], dtype="int64")
        done = paddle.zeros([x.shape[0]], dtype="bool")
        step = paddle.zeros([1], dtype="int64")
        while paddle.logical_and(step < 12, paddle.logical_not(done.all())):
            y, (hidden, cell) = self.cell(self.words(token), (hidden, cell))
            token = self.out(y).argmax(-1)
            token = paddle.where(done, paddle.zeros_like(token), token)
            found[:, step] = token.unsqueeze(-1)
            done = paddle.logical_or(done, token == 4)
            step = step + 1
        return found, step


def suppress(boxes, scores, **settings):
    """multiclass_nms3, for which paddle.vision has no function."""
    attrs = {
        "background_label": -1,
        "score_threshold": 0.1,
        "nms_top_k": 30,
        "nms_threshold": 0.5,
        "keep_top_k": 12,
        "nms_eta": 1.0,
        "normalized": True,
    } | settings
    if PIR:
        order = (
            "score_threshold nms_top_k keep_top_k nms_threshold normalized nms_eta background_label".split()  # noqa: SIM905
        )
        return paddle._C_ops.multiclass_nms3(boxes, scores, None, *(attrs[name] for name in order))
    helper = LayerHelper("multiclass_nms3")
    out = helper.create_variable_for_type_inference("float32")
    index, number = (helper.create_variable_for_type_inference("int32") for _ in range(2))
    helper.append_op(
        type="multiclass_nms3",
        inputs={"BBoxes": boxes, "Scores": scores},
        outputs={"Out": out, "Index": index, "NmsRoisNum": number},
        attrs=attrs,
    )
    return out, index, number


class Dense(nn.Layer):
    """The last steps of PP-YOLOE and PicoDet: distances to boxes, scaled to the image, then suppression."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.score, self.reach = (
            nn.Conv2D(3, 8, 3, 4, 1),
            nn.Conv2D(8, 3, 1),
            nn.Conv2D(8, 4 * 5, 1),
        )

    def forward(self, image, scale_factor):
        x = F.silu(self.stem(image))
        n, (h, w) = x.shape[0], x.shape[2:]
        scores = F.sigmoid(self.score(x) * 4).reshape([n, 3, h * w])
        reach = self.reach(x).reshape([-1, 4, 5, h * w]).transpose([0, 2, 3, 1])
        reach = (F.softmax(reach, axis=1) * paddle.arange(5, dtype="float32").reshape([1, 5, 1, 1])).sum(1)
        ys, xs = paddle.meshgrid(paddle.arange(h), paddle.arange(w))
        points = (paddle.stack([xs, ys], -1).astype("float32") + 0.5).reshape([-1, 2])
        low, high = paddle.split(reach, 2, -1)
        boxes = paddle.concat([points - low, points + high], -1) * 4
        y, x = paddle.split(scale_factor, 2, -1)
        boxes = boxes / paddle.concat([x, y, x, y], -1).reshape([-1, 1, 4])
        out, _, number = suppress(boxes, scores)
        return out, number


class Yolo(nn.Layer):
    """The last steps of YOLOv3: two maps decoded by yolo_box, then suppression with a background class."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.low = nn.Conv2D(3, 8, 3, 8, 1), nn.Conv2D(8, 8, 3, 2, 1)
        self.heads = nn.LayerList([nn.Conv2D(8, 2 * (5 + 3), 1), nn.Conv2D(8, 2 * (6 + 3), 1)])

    def forward(self, image, im_shape, scale_factor):
        x = F.leaky_relu(self.stem(image), 0.1)
        maps = [x, F.leaky_relu(self.low(x), 0.1)]
        size = paddle.cast(paddle.round(im_shape / scale_factor), "int32")
        boxes, scores = [], []
        for number, (head, x) in enumerate(zip(self.heads, maps)):
            settings = {"iou_aware": True, "iou_aware_factor": 0.4} if number else {}
            anchors = [10, 13, 33, 23] if number == 0 else [40, 30, 62, 45]
            box, score = ops.yolo_box(
                head(x) * 3, size, anchors, 3, 0.05, 8 * 2**number, scale_x_y=1.05, **settings
            )
            boxes.append(box)
            scores.append(paddle.transpose(score, [0, 2, 1]))
        boxes, scores = paddle.concat(boxes, 1), paddle.concat(scores, 2)
        out, index, number = suppress(
            boxes, scores, background_label=2, nms_eta=0.9, nms_threshold=0.6, normalized=False
        )
        return out, number, index


class Matrix(nn.Layer):
    """Matrix suppression, whose rows are looked up again, as SOLOv2 and PP-YOLOv2 do it."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, boxes, scores):
        boxes = boxes + self.fc(boxes) * 0.01
        settings = {"use_gaussian": True, "background_label": -1, "return_index": True}
        out, number, index = ops.matrix_nms(boxes, scores, 0.2, 0.1, 20, 9, **settings)
        return out, paddle.gather(boxes.reshape([-1, 4]), index.flatten()), number


class Boxes(nn.Layer):
    """Suppression, then steps of two-stage detectors: a box that stands in where there are none, scaling, clipping."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, boxes, scores, im_shape, scale_factor):
        boxes = boxes + self.fc(boxes) * 0.01
        found, _, number = suppress(boxes, scores, score_threshold=0.4)
        if number.sum() == 0:
            rows = paddle.to_tensor([[0.0, 0.0, 0.0, 0.0, 1.0, 1.0]])
        else:
            rows = found[: number[0]]
        origin = paddle.floor(im_shape / scale_factor + 0.5)
        y, x = paddle.split(scale_factor, 2, -1)
        scaled = rows[:, 2:] / paddle.concat([x, y, x, y], -1)
        corners = paddle.minimum(scaled, paddle.concat([origin[:, ::-1], origin[:, ::-1]], -1))
        keep = paddle.nonzero((corners[:, 2] > corners[:, 0]) & (rows[:, 1] > 0.45))
        return paddle.concat([rows[:, :2], corners], -1), keep


class Segmenter(nn.Layer):
    """PaddleSeg's exports: scores at the size of the image, then the best class."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2D(3, 6, 3, 4, 1), nn.Conv2D(6, 5, 1)

    def forward(self, x):
        y = self.head(F.relu(self.stem(x)))
        y = F.interpolate(y, paddle.shape(x)[2:], mode="bilinear", align_corners=False)
        return paddle.argmax(y, axis=1, dtype="int32"), F.softmax(y, axis=1).max(1)


def boxes_of(random: np.random.RandomState, images: int, count: int) -> np.ndarray:
    """[N, M, 4] boxes in groups that overlap."""
    centres = random.rand(images, 6, 1, 2) * 50 + random.randn(images, 6, count // 6, 2) * 2
    half = random.rand(images, 6, count // 6, 2) * 4 + 5
    return np.concatenate([centres - half, centres + half], -1).reshape(images, -1, 4).astype("float32")


def control_cases() -> dict[str, tuple[type[nn.Layer], list[Arrays]]]:
    """Name -> the network and its inputs, of several calls where values decide what runs."""
    random = np.random.RandomState(0)

    def normal(*shape: int) -> np.ndarray:
        return random.randn(*shape).astype("float32")

    def scores_of(classes: int, count: int) -> np.ndarray:
        return random.rand(2, classes, count).astype("float32")

    def images(*shape: int) -> np.ndarray:
        return np.round(normal(*shape) * 4) / 4  # few different values: the files stay small

    sizes = np.array([[40, 48], [40, 48]], "float32")
    scale = np.array([[0.5, 0.75], [1.25, 1.0]], "float32")
    one = {"im_shape": sizes[:1], "scale_factor": scale[:1]}
    boxes, scores = boxes_of(random, 1, 36), scores_of(2, 36)[:1]
    return {
        "branches": (
            Branches,
            [{"x": normal(2, 6) + 1}, {"x": normal(3, 6) - 1}, {"x": normal(3, 6) * 0.1 + 0.1}],
        ),
        "decoder": (Decoder, [{"features": normal(2, 3, 8)}]),
        "greedy": (Greedy, [{"x": normal(3, 7) * 2}, {"x": normal(2, 7) * 3}]),
        "dense": (Dense, [{"image": images(2, 3, 32, 40), "scale_factor": scale}]),
        "yolo": (Yolo, [{"image": images(2, 3, 32, 48), "im_shape": sizes, "scale_factor": scale}]),
        "matrix": (Matrix, [{"boxes": boxes_of(random, 2, 30), "scores": scores_of(3, 30)}]),
        "boxes": (
            Boxes,
            [{"boxes": boxes, "scores": scores, **one}, {"boxes": boxes, "scores": scores * 0.1, **one}],
        ),
        "segmenter": (Segmenter, [{"x": images(1, 3, 20, 28)}]),
    }


def specs(name: str, arrays: Arrays) -> list:
    """The inputs as the program declares them: the batch is open but where the network says otherwise."""
    batch = 1 if name == "boxes" else None
    found = []
    for key, array in arrays.items():
        shape = [batch, *array.shape[1:]]
        if name == "segmenter":
            shape[2:] = [None, None]
        found.append(paddle.static.InputSpec(shape, str(array.dtype), key))
    return found


def graph_cases() -> dict[str, tuple[type[nn.Layer], list[int | None], np.ndarray]]:
    random = np.random.RandomState(0)
    return {
        "text_line": (TextLine, [None, 3, 16, None], random.randn(2, 3, 16, 48).astype("float32")),
        "encoder": (Encoder, [None, None], random.randint(0, 50, (3, 9))),
        "pyramid": (Pyramid, [None, 3, None, None], random.randn(2, 3, 16, 24).astype("float32")),
    }


def saved(net: Any, spec: list, prefix: str) -> Arrays:
    """The bytes of the program and its parameters, written to files that begin with `prefix`."""
    paddle.jit.save(net, prefix, input_spec=spec) if spec else paddle.jit.save(net, prefix)
    ends = {"program": ".json" if PIR else ".pdmodel", "params": ".pdiparams"}
    return {name: np.frombuffer(Path(prefix + end).read_bytes(), np.uint8) for name, end in ends.items()}


def predicted(prefix: str, number: int, inputs: Arrays) -> Arrays:
    """The inputs of a call and what the program makes of them, in0.x, out0.0, …"""
    config = paddle.inference.Config(f"{prefix}.json" if PIR else f"{prefix}.pdmodel", f"{prefix}.pdiparams")
    config.disable_glog_info()
    config.disable_mkldnn()
    predictor = paddle.inference.create_predictor(config)
    arrays = {f"in{number}.{key}": array for key, array in inputs.items()}
    for key in predictor.get_input_names():
        predictor.get_input_handle(key).copy_from_cpu(inputs[key])
    predictor.run()
    for position, key in enumerate(predictor.get_output_names()):
        arrays[f"out{number}.{position}"] = predictor.get_output_handle(key).copy_to_cpu()
    return arrays


def files(name: str, cases: list[str]) -> Iterator[tuple[Path, Any]]:
    if name == "paddle_programs":
        yield DATA / "paddle_programs.json", reports(cases)
        return
    table: dict[str, Any] = graph_cases() if name == "paddle_graphs" else control_cases()
    for case in table:
        if cases and case not in cases:
            continue
        make, given, *x = table[case]
        paddle.seed(0 if x else 3)
        net = make()
        net.eval()
        if case == "greedy":  # so that some lines end before the greatest length
            net.out.bias.set_value(paddle.to_tensor([0, 0, 0, 0, 0.6, 0, 0, 0, 0], "float32"))
        with tempfile.TemporaryDirectory() as folder:
            prefix = f"{folder}/model"
            if x:
                out = net(paddle.to_tensor(x[0]))
                outs = out if isinstance(out, list | tuple) else [out]
                arrays = {"x": x[0], **{f"out{i}": out.numpy() for i, out in enumerate(outs)}}
                spec = [paddle.static.InputSpec(given, str(x[0].dtype), "x")]
                arrays |= saved(net, spec, prefix)
            else:
                static = paddle.jit.to_static(net, input_spec=specs(case, given[0]), full_graph=True)
                arrays = saved(static, [], prefix)
                for number, inputs in enumerate(given):
                    arrays |= predicted(prefix, number, inputs)
        yield DATA / f"{name}_{case}_{'pir' if PIR else 'pdmodel'}.npz", arrays


# -- programs of tests/e2e/paddle_programs ---------------------------------------------------------------------------


def run(names: list[str], noise: str) -> dict[str, dict[str, list[float]]]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.json")
        command = [sys.executable, str(PROGRAMS / "run.py"), "paddle", str(out), *names]
        subprocess.run(command, check=True, env={**os.environ, "PROGRAM_NOISE": noise})
        return json.loads(out.read_text(encoding="utf-8"))


def reports(names: list[str]) -> str:
    """Of each program `values`, {name: numbers}, and `spread`: how far Paddle's own numbers move when all first weights
    are changed by 1e-6 of themselves. A program with a large spread is chaotic, and another order of sums shows."""
    path = DATA / "paddle_programs.json"
    every = sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem not in ("run", "exchange"))
    names = names or every
    plain, moved = run(names, "0"), run(names, "1e-6")
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name in names:
        apart = (np.abs(np.subtract(moved[name][key], plain[name][key])).max() for key in plain[name])
        values = {key: [float(f"{x:.8g}") for x in numbers] for key, numbers in plain[name].items()}
        known[name] = {"spread": float(f"{float(max(apart)):.2g}"), "values": values}
    lines = (f'"{name}": {json.dumps(known[name])}' for name in sorted(known))
    return "{\n" + ",\n".join(lines) + "\n}\n"
