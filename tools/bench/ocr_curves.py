"""Losses of the first steps of a training against PaddleOCR's code: same weights, same batches, same schedule.

python tools/bench/ocr_curves.py --paddle_python PYTHON --paddleocr CHECKOUT [--models rec det] [--steps 20]

The checkout is PaddleOCR 3 with the configs of `--network`, and runs eagerly under paddlepaddle 2.6.2. Detector and
recogniser are trained as their configs say: Adam with L2 decay, dice loss and threshold map, CTC and NRTR. The rate
rises from 0 to the config's over `--warmup` steps (250: two epochs of ICDAR 2015's 1,000 images in batches of 8); with
0 it is all of it from the first step. `--optimizer` and `--epsilon` take the place of the config's. Weights follow from
names (framework/interop/named_weights.py), batches are drawn by our synthetic data sets and differ from step to step,
dropout is off on both sides. Float32.

The loss of a batch does not depend on the order of its examples, but for rounding. PaddleOCR therefore runs twice, the
second time with each batch in reverse order: how far it is from itself is what a difference has to be measured by. Adam
divides each gradient by its own size, so that where the gradient is zero but for rounding (a shift before a
normalisation, say) two runs step apart by the whole rate.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import yaml

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO))

SYMBOLS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:-/&"
LENGTH = 25
BASE = {"rec": "text_recognition.yml", "det": "text_detection.yml"}
TEXT = {
    "rec": f"""
model: {{type: TextRecognizer, variant: NETWORK_rec, num_classes: null, head: {{fc_decay: 1.0e-5}}, guided: true}}
task: {{characters: {{symbols: "{SYMBOLS}"}}}}
data:
  train:
    dataset: {{_inherited_: false, type: SyntheticTextLines, count: 2000, characters: "{SYMBOLS}", length: [2, 20]}}
    transforms: [{{type: ResizeLine, height: 48, max_width: 320, pad: true}}]
    buckets: null
    batch_size: BATCH
    num_workers: 1
  eval: null
""",
    "det": """
model: {type: DBNet, variant: NETWORK_det, deploy: false}
task: {main_loss: MAIN_LOSS}
data:
  train:
    dataset: {_inherited_: false, type: SyntheticPages, count: 2000}
    transforms: [{type: RandomTextCrop, size_hw: [320, 320]}]
    batch_size: BATCH
    num_workers: 1
  eval: null
""",
}


@dataclass(frozen=True)
class Case:
    """What is trained: `model` is "rec" or "det", `batch` counts its examples, `epsilon` is Adam's."""

    model: str
    network: str
    checkout: str
    warmup: int
    batch: int
    optimizer: str
    epsilon: float

    def upstream(self):
        """The config of PaddleOCR."""
        name = f"{self.network}_{self.model}.yml"
        path = Path(self.checkout) / "configs" / self.model / self.network.partition("_")[0] / name
        return yaml.safe_load(path.read_text(encoding="utf-8"))

    def rate_and_decay(self):
        optim = self.upstream()["Optimizer"]
        return float(optim["lr"]["learning_rate"]), float(optim["regularizer"]["factor"])

    def own_settings(self):
        """Arguments of the optimizer beside rate and decay, which both sides name alike."""
        return {"Adam": {"epsilon": self.epsilon}, "Momentum": {"momentum": 0.9}, "SGD": {}}[self.optimizer]


def bound(case):
    from framework.config import load
    from framework.engine.experiment import bind_experiment

    focal = case.upstream()["Loss"].get("main_loss_type") == "DiceFocalLoss"
    text = TEXT[case.model].replace("NETWORK", case.network).replace("BATCH", str(case.batch))
    text = text.replace("MAIN_LOSS", "dice_focal" if focal else "dice")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "curve.yml"
        base = REPO / "configs" / "_base_" / BASE[case.model]
        path.write_text(f"_base_: {base}\n{text}", encoding="utf-8")
        return bind_experiment(load(path))


def write_batches(case, path, steps):
    from framework.workflow.train.run import make_loader

    experiment = bound(case)
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


def oar(case, data):
    import jax

    from framework import nn
    from framework import optimizer as optimizers
    from framework.config import build
    from framework.engine.experiment import TrainOptions
    from framework.engine.step import init_state, train_step
    from framework.interop.named_weights import named_weights
    from framework.optimizer.lr import LinearWarmup
    from ocr.layers import svtr

    experiment = bound(case)
    task = experiment.task
    layer = build(task.adapt_model(experiment.model))
    layer.set_state_dict(named_weights({name: value.shape for name, value in layer.state_dict().items()}))
    for part in layer.sublayers():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    svtr.DROPOUT = 0.0  # of the attention's weights
    rate, decay = case.rate_and_decay()
    schedule = LinearWarmup(rate, case.warmup, 0.0, rate) if case.warmup else rate
    kind = getattr(optimizers, case.optimizer)
    optimizer = kind(schedule, weight_decay=decay, **case.own_settings()).resolve(len(data))
    options = TrainOptions(iters=len(data))
    groups = optimizer.param_groups(layer)
    graphdef, params, buffers = nn.split(layer.train())
    state = init_state(params, buffers, groups, optimizer, options)
    step = train_step(graphdef, task, optimizer, optimizer.schedule, groups, options, jax.local_devices()[0])
    losses = []
    for batch in data:
        state, log = step(state, {name: jax.numpy.asarray(value) for name, value in batch.items()})
        losses.append(float(log["loss"]))
    return losses


def paddle(case, data):
    import importlib.util

    sys.path.insert(0, case.checkout)
    import paddle
    from ppocr.losses import build_loss
    from ppocr.modeling.architectures import build_model

    spec = importlib.util.spec_from_file_location(
        "named_weights", REPO / "framework" / "io" / "named_weights.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    paddle.set_device("cpu")
    config = case.upstream()
    if case.model == "rec":
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
    full, decay = case.rate_and_decay()
    kind, decay = getattr(paddle.optimizer, case.optimizer), paddle.regularizer.L2Decay(decay)
    optimizer = kind(full, parameters=network.parameters(), weight_decay=decay, **case.own_settings())
    half = np.array([0.5] * 3, np.float32)
    mean, std = (
        (half, half)
        if case.model == "rec"
        else (
            np.array([0.485, 0.456, 0.406], np.float32),
            np.array([0.229, 0.224, 0.225], np.float32),
        )
    )
    losses = []
    for step, batch in enumerate(data):
        image = (batch["image"][..., ::-1].astype(np.float32) / 255 - mean) / std
        if case.model == "rec":
            image *= (np.arange(image.shape[2]) < batch["width"][:, None])[:, None, :, None]  # padding is 0
        x = paddle.to_tensor(np.ascontiguousarray(image.transpose(0, 3, 1, 2)))
        if case.model == "rec":
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
        optimizer.set_lr(full * min(1.0, step / case.warmup) if case.warmup else full)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    return losses


def reversed_batches(data):
    return [{name: value[::-1] for name, value in batch.items()} for batch in data]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=["rec", "det"], choices=["rec", "det"])
    parser.add_argument("--network", default="PP-OCRv4_mobile", help="such as PP-OCRv6_small")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, help="examples of a step: 16 lines or 8 pages")
    parser.add_argument("--warmup", type=int, default=250)
    parser.add_argument("--optimizer", default="Adam", choices=["Adam", "Momentum", "SGD"])
    parser.add_argument("--epsilon", type=float, default=1e-8, help="of Adam")
    parser.add_argument("--paddle_python", required=True, help="interpreter that has paddlepaddle 2.6.2")
    parser.add_argument("--paddleocr", required=True, help="checkout of PaddleOCR 3")
    parser.add_argument("--worker", nargs=3, metavar=("PEER", "CASE", "FILE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        peer, case, file = args.worker
        answers, sys.stdout = sys.stdout, sys.stderr
        data = batches(file)
        run = oar if peer == "oar" else paddle
        losses = run(Case(**json.loads(case)), reversed_batches(data) if peer == "reversed" else data)
        print(json.dumps(losses), file=answers)
        return 0
    for model in args.models:
        batch = args.batch or {"rec": 16, "det": 8}[model]
        case = Case(model, args.network, args.paddleocr, args.warmup, batch, args.optimizer, args.epsilon)
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "batches.npz")
            write_batches(case, file, args.steps)
            curves = {}
            peers = {"oar": sys.executable, "paddle": args.paddle_python, "reversed": args.paddle_python}
            for peer, python in peers.items():
                command = [python, __file__, "--worker", peer, json.dumps(asdict(case)), file]
                command += ["--paddle_python", args.paddle_python, "--paddleocr", args.paddleocr]
                done = subprocess.run(
                    command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ}
                )
                curves[peer] = np.array(json.loads(done.stdout.splitlines()[-1]))
        theirs = curves["paddle"]
        apart = {peer: np.abs(curves[peer] - theirs) / np.abs(theirs) for peer in ("oar", "reversed")}
        for step, loss in enumerate(theirs):
            print(
                f"  {model} step {step:2} paddle {loss:9.5f}  oar {curves['oar'][step]:9.5f}, relative "
                f"{apart['oar'][step]:.1e}  paddle in reverse order {apart['reversed'][step]:.1e}"
            )
        for peer, name in {"oar": "oar", "reversed": "paddle in reverse order"}.items():
            print(
                f"{model}: {name} from paddle over {len(theirs)} steps: median {np.median(apart[peer]):.1e}, "
                f"worst {apart[peer].max():.1e}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
