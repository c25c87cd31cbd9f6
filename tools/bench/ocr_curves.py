"""Losses of the first steps of a training against PaddleOCR's code: same weights, same batches, same schedule.

python tools/bench/ocr_curves.py --paddle_python PYTHON --paddleocr CHECKOUT [--models rec det] [--steps 20]

The checkout is PaddleOCR 3, which runs eagerly under paddlepaddle 2.6.2. PP-OCRv4 mobile's detector and recogniser are
trained as their configs say: Adam with L2 decay, dice loss and threshold map, CTC and NRTR. The rate rises from 0 to
the config's over `--warmup` steps (250: two epochs of ICDAR 2015's 1,000 images in batches of 8); with 0 it is all of
it from the first step. Weights follow from names (framework/io/named_weights.py), batches are drawn by our synthetic
data sets and differ from step to step, dropout is off on both sides. Float32.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO))

VARIANTS = {"rec": "PP-OCRv4_mobile_rec", "det": "PP-OCRv4_mobile_det"}
DECAY = {"rec": 3e-5, "det": 5e-5}
RATE = 1e-3
SYMBOLS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:-/&"
LENGTH = 25
BASE = {"rec": "text_recognition.yml", "det": "text_detection.yml"}
TEXT = {
    "rec": f"""
model: {{type: TextRecognizer, variant: PP-OCRv4_mobile_rec, num_classes: null, guided: true}}
task: {{characters: {{symbols: "{SYMBOLS}"}}}}
data:
  train:
    dataset: {{_inherited_: false, type: SyntheticTextLines, count: 2000, characters: "{SYMBOLS}", length: [2, 20]}}
    transforms: [{{type: ResizeLine, height: 48, max_width: 320, pad: true}}]
    buckets: null
    batch_size: 16
    num_workers: 1
  eval: null
""",
    "det": """
model: {type: DBNet, variant: PP-OCRv4_mobile_det, deploy: false}
data:
  train:
    dataset: {_inherited_: false, type: SyntheticPages, count: 2000}
    transforms: [{type: RandomTextCrop, size_hw: [320, 320]}]
    batch_size: 8
    num_workers: 1
  eval: null
""",
}


def bound(model):
    from framework.config import load
    from framework.engine.experiment import bind_experiment

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "curve.yml"
        path.write_text(
            f"_base_: {REPO / 'configs' / '_base_' / BASE[model]}\n{TEXT[model]}", encoding="utf-8"
        )
        return bind_experiment(load(path))


def write_batches(model, path, steps):
    from framework.workflow.train import make_loader

    experiment = bound(model)
    loader = make_loader(experiment.data.train, experiment.task, seed=0, train=True)
    found = {}
    for step, batch in zip(range(steps), loader):
        for name, value in batch.items():
            value = np.asarray(value)
            if value.dtype.kind in "fiub":
                found[f"{step}/{name}"] = value
    np.savez(path, **found)


def batches(path):
    with np.load(path) as file:
        steps = 1 + max(int(name.partition("/")[0]) for name in file.files)
        return [
            {n.partition("/")[2]: file[n] for n in file.files if n.startswith(f"{s}/")} for s in range(steps)
        ]


def rates(warmup, steps):
    return [RATE * min(1.0, step / warmup) if warmup else RATE for step in range(steps)]


def oar(model, data, warmup, checkout):
    import jax

    from framework import nn
    from framework.config import build
    from framework.engine.experiment import TrainOptions
    from framework.engine.step import init_state, train_step
    from framework.io.named_weights import named_weights
    from framework.optimizer import Adam
    from framework.optimizer.lr import LinearWarmup
    from ocr.layers import svtr

    experiment = bound(model)
    task = experiment.task
    layer = build(task.adapt_model(experiment.model))
    layer.set_state_dict(named_weights({name: value.shape for name, value in layer.state_dict().items()}))
    for part in layer.sublayers():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    svtr.DROPOUT = 0.0  # of the attention's weights
    rate = LinearWarmup(RATE, warmup, 0.0, RATE) if warmup else RATE
    optimizer, options = (
        Adam(rate, weight_decay=DECAY[model]).resolve(len(data)),
        TrainOptions(iters=len(data)),
    )
    groups = optimizer.param_groups(layer)
    graphdef, params, buffers = nn.split(layer.train())
    state = init_state(params, buffers, groups, optimizer, options)
    step = train_step(graphdef, task, optimizer, optimizer.schedule, groups, options, jax.local_devices()[0])
    losses = []
    for batch in data:
        state, log = step(state, {name: jax.numpy.asarray(value) for name, value in batch.items()})
        losses.append(float(log["loss"]))
    return losses


def paddle(model, data, warmup, checkout):
    import importlib.util

    sys.path.insert(0, checkout)
    import paddle
    import yaml
    from ppocr.losses import build_loss
    from ppocr.modeling.architectures import build_model

    spec = importlib.util.spec_from_file_location(
        "named_weights", REPO / "framework" / "io" / "named_weights.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    paddle.set_device("cpu")
    path = Path(checkout) / "configs" / model / "PP-OCRv4" / f"{VARIANTS[model]}.yml"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    if model == "rec":
        classes = len(SYMBOLS) + 2  # the blank and the space
        counts = {"CTCLabelDecode": classes, "NRTRLabelDecode": classes + 3}
        config["Architecture"]["Head"]["out_channels_list"] = counts
    network = build_model(config["Architecture"])
    shapes = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    network.set_state_dict(module.named_weights(shapes))
    for layer in network.sublayers():
        if isinstance(layer, paddle.nn.Dropout):
            layer.p = 0.0
    network.train()
    loss_of = build_loss(config["Loss"])
    optimizer = paddle.optimizer.Adam(
        RATE, parameters=network.parameters(), weight_decay=paddle.regularizer.L2Decay(DECAY[model])
    )
    half = np.array([0.5] * 3, np.float32)
    mean, std = (
        (half, half)
        if model == "rec"
        else (
            np.array([0.485, 0.456, 0.406], np.float32),
            np.array([0.229, 0.224, 0.225], np.float32),
        )
    )
    losses = []
    for batch, rate in zip(data, rates(warmup, len(data))):
        image = (batch["image"][..., ::-1].astype(np.float32) / 255 - mean) / std
        if model == "rec":
            image *= (np.arange(image.shape[2]) < batch["width"][:, None])[:, None, :, None]  # padding is 0
        x = paddle.to_tensor(np.ascontiguousarray(image.transpose(0, 3, 1, 2)))
        if model == "rec":
            lengths = batch["target_length"].astype(np.int64)
            guide = np.zeros((len(lengths), LENGTH), np.int64)
            for row, (length, target) in enumerate(zip(lengths, batch["target"])):
                guide[row, 0], guide[row, length + 1] = 2, 3
                guide[row, 1 : length + 1] = target[:length] + 3
            ratios = np.ones(len(lengths), np.float32)
            labels = [x, *map(paddle.to_tensor, (batch["target"].astype(np.int64), guide, lengths, ratios))]
            loss = loss_of(network(x, labels[1:]), labels)["loss"]
        else:
            names = ("threshold", "threshold_mask", "shrink", "shrink_mask")
            labels = [x, *(paddle.to_tensor(batch[name].astype(np.float32)) for name in names)]
            loss = loss_of(network(x), labels)["loss"]
        optimizer.set_lr(float(rate))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    return losses


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=["rec", "det"], choices=["rec", "det"])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=250)
    parser.add_argument("--paddle_python", required=True, help="interpreter that has paddlepaddle 2.6.2")
    parser.add_argument("--paddleocr", required=True, help="checkout of PaddleOCR 3")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        peer, model, file = args.worker
        answers, sys.stdout = sys.stdout, sys.stderr
        run = {"oar": oar, "paddle": paddle}[peer]
        print(json.dumps(run(model, batches(file), args.warmup, args.paddleocr)), file=answers)
        return 0
    for model in args.models:
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "batches.npz")
            write_batches(model, file, args.steps)
            curves = {}
            for peer, python in {"oar": sys.executable, "paddle": args.paddle_python}.items():
                command = [python, __file__, "--worker", peer, model, file, "--warmup", str(args.warmup)]
                command += ["--paddle_python", args.paddle_python, "--paddleocr", args.paddleocr]
                done = subprocess.run(
                    command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ}
                )
                curves[peer] = np.array(json.loads(done.stdout.splitlines()[-1]))
        apart = np.abs(curves["oar"] - curves["paddle"]) / np.abs(curves["paddle"])
        for step, (ours, theirs, distance) in enumerate(zip(curves["oar"], curves["paddle"], apart)):
            print(f"  {model} step {step:2} oar {ours:9.5f}  paddle {theirs:9.5f}  relative {distance:.1e}")
        print(
            f"{model}: {len(apart)} steps, relative difference median {np.median(apart):.1e}, worst {apart.max():.1e}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
