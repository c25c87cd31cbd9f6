"""Time of a training step of a PP-OCR detector and recogniser against PaddleOCR's code, and memory over steps.

python tools/bench/ocr_train.py --paddle_python PYTHON --paddleocr CHECKOUT [--network PP-OCRv6_small] [--rounds 7]
python tools/bench/ocr_train.py --memory 500

A step is forward, backward and the update by Adam, on one batch that is already in memory: the training form with all
that upstream's configs train (CTC and NRTR; all maps with dice and focal loss, and the auxiliary heads), float32. The
checkout is PaddleOCR 3 with the configs of that network, and runs eagerly under paddlepaddle 2.6.2. The recogniser has
8 lines of 48 x 320 with 10 symbols each, the detector 2 images of 320 x 320. Every competitor is a process of its own,
and they take turns; medians of wall and CPU time.

`--memory N` trains the smallest recogniser (tiny, 40 classes) through the Trainer on synthetic lines in three buckets,
and prints the resident memory of the process over the first and the last hundred of N steps.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

RATE, CLASSES, SYMBOLS, LENGTH = 1e-5, 18710, 10, 25


def batch(model):
    """Images [N, H, W, 3] uint8 and what the loss needs."""
    rng = np.random.default_rng(0)
    if model == "rec":
        target = np.zeros((8, LENGTH), np.int64)
        target[:, :SYMBOLS] = rng.integers(1, CLASSES, (8, SYMBOLS))
        return rng.integers(0, 255, (8, 48, 320, 3), dtype=np.uint8), {"target": target}
    text = np.zeros((2, 320, 320), np.float32)
    text[:, 40:60, 30:200] = text[:, 150:180, 60:300] = 1
    border = {"threshold": 0.3 + 0.4 * text, "threshold_mask": text}
    return rng.integers(0, 255, (2, 320, 320, 3), dtype=np.uint8), {
        "shrink": text,
        "shrink_mask": np.ones_like(text),
        **border,
    }


def oar(model, network, checkout):
    import jax

    from framework import nn
    from framework.config import build
    from framework.engine.experiment import TrainOptions
    from framework.engine.step import init_state, train_step
    from framework.inference import keep_memory
    from framework.optimizer import Adam
    from framework.vision.normalize import Normalize
    from ocr.models.dbnet import DBNetConfig
    from ocr.models.text_recognizer import TextRecognizerConfig
    from ocr.tasks.text import TextDetection, TextRecognition

    keep_memory()
    half = Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5), bgr=True)
    images, more = batch(model)
    if model == "rec":
        layer = build(TextRecognizerConfig(f"{network}_rec", guided=True, num_classes=CLASSES))
        task = TextRecognition(half)
        count = len(images)
        more = {
            "target": more["target"].astype(np.int32),
            "target_length": np.full(count, SYMBOLS, np.int32),
            "width": np.full(count, images.shape[2], np.int32),
            "counts": np.ones(count, np.float32),
        }
    else:
        main_loss = "dice_focal" if network.startswith("PP-OCRv6") else "dice"
        layer, task = build(DBNetConfig(f"{network}_det")), TextDetection(half, main_loss=main_loss)
    optimizer, options = Adam(RATE).resolve(1), TrainOptions(iters=1)
    groups = optimizer.param_groups(layer)
    graphdef, params, buffers = nn.split(layer.train())
    state = init_state(params, buffers, groups, optimizer, options)
    step = train_step(graphdef, task, optimizer, optimizer.schedule, groups, options, jax.local_devices()[0])
    data = {name: jax.numpy.asarray(value) for name, value in {"image": images, **more}.items()}

    def run():
        nonlocal state
        state, log = step(state, data)
        jax.block_until_ready(state)
        return float(log["loss"])

    return run, sum(value.size for value in params.values())


def paddle(model, network, checkout):
    sys.path.insert(0, checkout)
    import paddle
    import yaml
    from ppocr.losses import build_loss, rec_multi_loss
    from ppocr.losses.rec_ctc_loss import CTCLoss
    from ppocr.losses.rec_nrtr_loss import NRTRLoss
    from ppocr.modeling.architectures import build_model
    from ppocr.modeling.heads import rec_multi_head
    from ppocr.modeling.heads.rec_ctc_head import CTCHead

    # A checkout may have lost these imports.
    rec_multi_head.CTCHead, rec_multi_loss.CTCLoss, rec_multi_loss.NRTRLoss = CTCHead, CTCLoss, NRTRLoss
    paddle.set_device("cpu")
    path = Path(checkout) / "configs" / model / network.partition("_")[0] / f"{network}_{model}.yml"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    if model == "rec":
        classes = {"CTCLabelDecode": CLASSES, "NRTRLabelDecode": CLASSES + 3}
        config["Architecture"]["Head"]["out_channels_list"] = classes
    layer = build_model(config["Architecture"])
    layer.train()
    loss_of = build_loss(config["Loss"])
    optimizer = paddle.optimizer.Adam(RATE, parameters=layer.parameters())
    images, more = batch(model)
    x = paddle.to_tensor(((images[..., ::-1] / 255 - 0.5) / 0.5).astype(np.float32).transpose(0, 3, 1, 2))
    if model == "rec":
        count = len(images)
        guide = np.zeros((count, LENGTH), np.int64)
        guide[:, 0], guide[:, SYMBOLS + 1] = 2, 3
        guide[:, 1 : SYMBOLS + 1] = more["target"][:, :SYMBOLS] + 3
        lengths, ratios = np.full(count, SYMBOLS), np.ones(count, np.float32)
        labels = [x, *map(paddle.to_tensor, (more["target"], guide, lengths, ratios))]
    else:
        names = ("threshold", "threshold_mask", "shrink", "shrink_mask")
        labels = [x, *(paddle.to_tensor(more[name]) for name in names)]

    def run():
        loss = loss_of(layer(x, labels[1:]) if model == "rec" else layer(x), labels)["loss"]
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return float(loss)

    # Running statistics are among the parameters there.
    return run, sum(int(np.prod(p.shape)) for p in layer.parameters() if not p.stop_gradient)


def work(peer, model, network, checkout):
    """Answer every line of the standard input with one step."""
    answers, sys.stdout = sys.stdout, sys.stderr
    run, params = {"oar": oar, "paddle": paddle}[peer](model, network, checkout)
    started = time.perf_counter()
    loss = run()
    first = {"first": time.perf_counter() - started, "params": params, "loss": loss}
    print(json.dumps(first), file=answers, flush=True)
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        print(json.dumps(took), file=answers, flush=True)


def compare(model, args):
    workers, steps = {}, {}
    for peer, python in {"oar": sys.executable, "paddle": args.paddle_python}.items():
        if not python:
            print("  paddle skipped: give --paddle_python and --paddleocr")
            continue
        command = [python, str(Path(__file__).resolve()), "--worker", peer, model, "--network", args.network]
        env = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
        if peer == "paddle":
            command += ["--paddleocr", args.paddleocr]
            env.pop("PYTHONPATH", None)
        workers[peer] = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        line = workers[peer].stdout.readline()
        if not line:
            print(f"  {model} {peer} ended with {workers.pop(peer).wait()}")
            continue
        ready = json.loads(line)
        print(
            f"{model} {peer}: {ready['params']:,} parameters, first step {ready['first']:.1f} s, {ready['loss']:.3f}"
        )
        steps[peer] = []
    for number in range(args.rounds + 1):
        for peer, process in workers.items():
            process.stdin.write("\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            if number:
                steps[peer].append(answer)
    for process in workers.values():
        process.stdin.close()
        process.wait()
    found = {p: {k: statistics.median(s[k] for s in of) for k in ("wall", "cpu")} for p, of in steps.items()}
    for peer, took in found.items():
        ratio = ""
        if peer == "paddle":
            ratio = f"  oar takes {found['oar']['wall'] / took['wall']:.2f}x by wall, "
            ratio += f"{found['oar']['cpu'] / took['cpu']:.2f}x by cpu"
        print(
            f"  {model} {peer:<7} wall {took['wall'] * 1e3:6.0f} ms  cpu {took['cpu'] * 1e3:6.0f} ms{ratio}"
        )


def memory(steps):
    """Resident memory in MB after each step of a training of `steps`."""
    from framework.config import load
    from framework.engine.callbacks import Callback
    from framework.engine.experiment import bind_experiment
    from framework.workflow.train.run import make_trainer

    class Watch(Callback):
        def __init__(self):
            self.sizes = []

        def on_step(self, trainer, step):
            pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
            self.sizes.append(pages * os.sysconf("SC_PAGE_SIZE") / 2**20)

    base = Path(__file__).resolve().parents[2] / "configs" / "_base_" / "text_recognition.yml"
    text = f"""
_base_: {base}
model: {{type: TextRecognizer, variant: PP-OCRv6_tiny_rec, num_classes: null}}
task: {{characters: {{symbols: "abcdefghijklmnopqrstuvwxyz0123456789.,-"}}, max_text_length: 10}}
data:
  train:
    dataset:
      _inherited_: false
      type: SyntheticTextLines
      count: 2000
      characters: abcdefghijklmnopqrstuvwxyz0123456789.,-
      length: [2, 10]
    transforms: [{{type: ResizeLine, height: 48, max_width: 256}}]
    buckets: [128, 192, 256]
    batch_size: 8
    num_workers: 1
  eval: null
train: {{epochs: null, iters: {steps}, log_every: {max(steps // 5, 1)}, save_every: {steps}}}
"""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "memory.yml"
        config.write_text(text, encoding="utf-8")
        watch = Watch()
        make_trainer(bind_experiment(load(config)), None, callbacks=[watch]).fit()
    part = min(100, steps // 2)
    for name, sizes in (("first", watch.sizes[:part]), ("last", watch.sizes[-part:])):
        print(
            f"{name} {part} steps: {sizes[0]:.0f} to {sizes[-1]:.0f} MB, median {statistics.median(sizes):.0f}"
        )
    every = max(steps // 10, 1)
    print("MB at every tenth:", " ".join(f"{size:.0f}" for size in watch.sizes[::every]))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=["rec", "det"], choices=["rec", "det"])
    parser.add_argument("--network", default="PP-OCRv6_small", help="such as PP-OCRv5_mobile")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--paddle_python", help="interpreter of an environment that has paddlepaddle 2.6.2")
    parser.add_argument("--paddleocr", default="", help="checkout of PaddleOCR 3")
    parser.add_argument("--memory", type=int, metavar="STEPS")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(*args.worker, args.network, args.paddleocr)
    elif args.memory:
        memory(args.memory)
    else:
        for model in args.models:
            compare(model, args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
