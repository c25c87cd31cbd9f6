"""Training steps of Oar against torch, Paddle and PaddleOCR, and of Oar's own precisions.

A step is forward, backward and the update, on one batch that is already in memory; Oar's is the engine's own. Every
competitor is a process of its own, and they take turns: one step each, `--rounds` times. Beside the median of the
wall time stands that of the CPU time of the process, which is the fairer one where a machine is shared. A ratio above
1 says that Oar is faster. Peers that are not installed are skipped with a message.

train      images a second by Momentum: torchvision's network in channels_last and paddle.vision's, both eagerly.
           bfloat16 is autocast (O1) in all, `bfloat16-O2` is Oar's O2 against the same peers
nlp        sequences a second of a classifier on BERT-base, half of the texts shorter and padded, by AdamW: torch
           eagerly, with its fused attention. Oar's inference is the engine that serves an exported model; the outputs
           of both are compared on the same weights
ocr_train  a PP-OCR detector (2 images of 320 x 320) and recogniser (8 lines of 48 x 320 with 10 symbols each) by
           Adam, with all that upstream's configs train, in float32: a checkout of PaddleOCR 3, eagerly under Paddle
           2.6.2. `--memory N` trains the smallest recogniser on synthetic lines in three buckets and prints the
           resident memory
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tools.bench.peers import REPO, Run, Worker, arguments, compare, pin, resident, serve

Ready = tuple[Run, dict[str, Any]]


def engine_step(model: Any, task: Any, optimizer: Any, data: dict[str, Any], **options: Any) -> Run:
    """The engine's own step on one batch; returns the loss."""
    import jax

    from framework import nn
    from framework.engine.experiment import TrainOptions
    from framework.engine.step import init_state, train_step

    settings, optimizer = TrainOptions(iters=1, **options), optimizer.resolve(1)
    groups = optimizer.param_groups(model)
    graphdef, params, buffers = nn.split(model.train())
    state = init_state(params, buffers, groups, optimizer, settings)
    device = jax.local_devices()[0]
    step = train_step(graphdef, task, optimizer, optimizer.schedule, groups, settings, device)
    arrays = {name: jax.numpy.asarray(value) for name, value in data.items()}

    def run() -> float:
        nonlocal state
        state, log = step(state, arrays)
        jax.block_until_ready(state)
        return float(log["loss"])

    return run


def quiet() -> None:
    """Before jax is used: the time of compiling is reported, too."""
    os.environ["OAR_COMPILATION_CACHE"] = "off"
    from framework.inference import keep_memory

    keep_memory()


def torch_step(net: Any, optimizer: Any, low: bool, loss: Run) -> Run:
    import torch

    def run() -> float:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            value = loss()
        value.backward()
        optimizer.step()
        return float(value.detach())

    return run


def paddle_step(optimizer: Any, loss: Run) -> Run:
    def run() -> float:
        value = loss()
        value.backward()
        optimizer.step()
        optimizer.clear_grad()
        return float(value)

    return run


# -- images ----------------------------------------------------------------------------------------------------------

MOMENTUM, WEIGHT_DECAY, NUM_CLASSES = 0.9, 1e-4, 1000
RATE = 0.01


def vision(peer: str, model: str, precision: str, size: int, pixels: int) -> Ready:
    rng = np.random.default_rng(0)
    images = rng.standard_normal((size, pixels, pixels, 3)).astype(np.float32)
    labels, low = rng.integers(0, NUM_CLASSES, size), precision != "float32"
    is_resnet = model == "resnet50"
    if peer == "oar":
        quiet()
        from framework.engine.task import Losses
        from framework.nn import functional as F
        from framework.optimizer import Momentum
        from zoo.vision.mobilenet_v3 import MobileNetV3, MobileNetV3Config
        from zoo.vision.resnet import ResNet, ResNetConfig

        class Classify:
            def loss(self, model: Any, batch: Any) -> Losses:
                return Losses(F.cross_entropy(model(batch["image"]), batch["label"]))

        large = MobileNetV3Config("mobilenetv3_large_x1_0")
        layer = ResNet(ResNetConfig("resnet50")) if is_resnet else MobileNetV3(large)
        optimizer = Momentum(RATE, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
        data = {"image": images, "label": labels.astype("int32")}
        amp = {"amp": precision.partition("-")[0], "amp_level": "O2" if precision.endswith("O2") else "O1"}
        return engine_step(layer, Classify(), optimizer, data, **amp), {}
    if peer == "torch":
        from tools.golden.network import import_torch

        torch = import_torch()
        models = sys.modules["torchvision"].models
        net = models.resnet50() if is_resnet else models.mobilenet_v3_large()
        net = net.train().to(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(net.parameters(), RATE, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
        x = torch.from_numpy(images).permute(0, 3, 1, 2).to(memory_format=torch.channels_last)
        y = torch.from_numpy(labels)
        return torch_step(net, optimizer, low, lambda: torch.nn.functional.cross_entropy(net(x), y)), {}
    import paddle

    paddle.set_device("cpu")
    models = paddle.vision.models
    net = models.resnet50() if is_resnet else models.mobilenet_v3_large(scale=1.0)
    optimizer = paddle.optimizer.Momentum(
        RATE, MOMENTUM, parameters=net.parameters(), weight_decay=WEIGHT_DECAY
    )
    x, y = paddle.to_tensor(images.transpose(0, 3, 1, 2)), paddle.to_tensor(labels)

    def loss() -> Any:
        with paddle.amp.auto_cast(enable=low, level="O1", dtype="bfloat16"):
            return paddle.nn.functional.cross_entropy(net(x), y)

    return paddle_step(optimizer, loss), {}


def train(argv: list[str]) -> None:
    parser = arguments(
        __doc__, models=("resnet50", "mobilenet_v3"), precisions=("float32", "bfloat16", "bfloat16-O2"),
        peers=("oar", "torch", "paddle"), rounds=7, batch_size=8, size=224, threads=2, paddle_python=None,
    )  # fmt: skip
    args = parser.parse_args(argv)
    pin(args.threads)
    for model in args.models:
        for precision in args.precisions:
            print(
                f"\n{model} {precision}, batch {args.batch_size}, {args.size}x{args.size}, {args.threads} threads"
            )
            words = ("vision", model, precision, str(args.batch_size), str(args.size))
            compare(_peers(args, words), args.rounds, args.batch_size, "images")


def _peers(args: Any, words: tuple[str, ...]) -> list[Worker]:
    pythons = dict.fromkeys(args.peers, sys.executable) | {"paddle": getattr(args, "paddle_python", None)}
    found = []
    for peer in args.peers:
        if not pythons[peer]:
            print(f"  {peer:<7} skipped: give its interpreter with --{peer}_python")
        else:
            subject, *rest = words
            found.append(Worker(peer, pythons[peer], __name__, subject, peer, *rest, threads=args.threads))
    return found


# -- texts -----------------------------------------------------------------------------------------------------------

VARIANT, WIDTH, DEPTH, HEADS, CLASSES = "bert-base-uncased", 768, 12, 12, 2


def text(peer: str, mode: str, precision: str, size: int, tokens: int) -> Ready:
    rng = np.random.default_rng(0)
    lengths = np.where(np.arange(size) % 2, rng.integers(tokens // 4, tokens, size), tokens)
    mask = np.arange(tokens) < lengths[:, None]
    ids = np.where(mask, rng.integers(1000, 30000, (size, tokens)), 0).astype(np.int32)
    label = rng.integers(0, CLASSES, size).astype(np.int32)
    return (text_oar if peer == "oar" else text_torch)(mode, precision, ids, mask, label), {}


def text_weights() -> tuple[Any, dict[str, np.ndarray]]:
    """The same for both, by Oar's names."""
    from framework.config import build
    from framework.interop.named_weights import named_weights
    from nlp.models.sequence_classification import SequenceClassifierConfig
    from zoo.text.bert import BertConfig

    model = build(SequenceClassifierConfig(BertConfig(VARIANT), CLASSES))
    return model, named_weights(model.state_shapes())


def text_oar(mode: str, precision: str, ids: np.ndarray, mask: np.ndarray, label: np.ndarray) -> Run:
    quiet()
    import jax

    from framework import nn
    from framework.core.dtypes import precision_scope
    from framework.inference import compile_options
    from framework.optimizer import AdamW
    from nlp.contracts import Tokens
    from nlp.tasks import SequenceClassification

    model, values = text_weights()
    model.set_state_dict(values)
    if mode == "training":
        data = {"input_ids": ids, "mask": mask, "label": label}
        return engine_step(
            model, SequenceClassification(), AdamW(2e-5, weight_decay=0.01), data, amp=precision
        )
    graphdef, params, buffers = nn.split(model.eval())

    def forward(params: Any, buffers: Any, ids: Any, mask: Any) -> Any:
        with precision_scope(precision):
            return nn.apply(graphdef, params, buffers, None, Tokens(ids, mask))[0]

    run = jax.jit(forward).lower(params, buffers, ids, mask)
    run = run.compile(compile_options(jax.local_devices()[0]))
    return lambda: jax.block_until_ready(run(params, buffers, ids, mask)).reshape(-1).tolist()


def text_torch(mode: str, precision: str, ids: np.ndarray, mask: np.ndarray, label: np.ndarray) -> Run:
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
            self.linear1, self.linear2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH, 1e-12), nn.LayerNorm(WIDTH, 1e-12)
            self.dropout = nn.Dropout(0.1)

        def forward(self, x: Any, mask: Any) -> Any:
            n, t, c = x.shape
            q, k, v = (
                part(x).view(n, t, HEADS, c // HEADS).transpose(1, 2) for part in (self.q, self.k, self.v)
            )
            mixed = F.scaled_dot_product_attention(q, k, v, mask, 0.1 if self.training else 0.0)
            x = self.norm1(x + self.dropout(self.out(mixed.transpose(1, 2).reshape(n, t, c))))
            return self.norm2(x + self.dropout(self.linear2(F.gelu(self.linear1(x)))))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.positions = nn.Embedding(30522, WIDTH), nn.Embedding(512, WIDTH)
            self.types, self.norm = nn.Embedding(2, WIDTH), nn.LayerNorm(WIDTH, 1e-12)
            self.layers = nn.ModuleList([Block() for _ in range(DEPTH)])
            self.pooler, self.classifier = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES)
            self.dropout = nn.Dropout(0.1)

        def forward(self, ids: Any, mask: Any) -> Any:
            x = self.words(ids) + self.positions.weight[: ids.shape[1]] + self.types.weight[0]
            x = self.dropout(self.norm(x))
            for layer in self.layers:
                x = layer(x, mask)
            return self.classifier(self.dropout(torch.tanh(self.pooler(x[:, 0]))))

    net = Net()
    names = {
        "bert.embeddings.word_embeddings": "words",
        "bert.embeddings.position_embeddings": "positions",
        "bert.embeddings.token_type_embeddings": "types",
        "bert.embeddings.layer_norm": "norm",
        "bert.encoder.": "",
        "bert.pooler.dense": "pooler",
        **{f"self_attn.{part}_proj": part for part in ("q", "k", "v", "out")},
    }
    state = {}
    for name, value in text_weights()[1].items():
        value = value.T if value.ndim == 2 and "embeddings" not in name else value
        for theirs, ours in names.items():
            name = name.replace(theirs, ours)
        state[name] = torch.from_numpy(value)
    net.load_state_dict(state)
    x, seen = torch.from_numpy(ids).long(), torch.from_numpy(mask)[:, None, None]
    y, low = torch.from_numpy(label).long(), precision == "bfloat16"
    if mode == "inference":
        net.eval()

        def infer() -> list[float]:
            with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=low):
                return net(x, seen).float().reshape(-1).tolist()

        return infer
    optimizer = torch.optim.AdamW(net.train().parameters(), 2e-5, weight_decay=0.01)
    return torch_step(net, optimizer, low, lambda: F.cross_entropy(net(x, seen), y))


def nlp(argv: list[str]) -> None:
    parser = arguments(
        __doc__, modes=("inference", "training"), precisions=("float32", "bfloat16"), peers=("oar", "torch"),
        rounds=5, batch_size=8, tokens=128, threads=2,
    )  # fmt: skip
    args = parser.parse_args(argv)
    pin(args.threads)
    for mode in args.modes:
        for precision in args.precisions:
            print(
                f"\n{mode} {precision}, batch {args.batch_size}, {args.tokens} tokens, {args.threads} threads"
            )
            workers = _peers(args, ("text", mode, precision, str(args.batch_size), str(args.tokens)))
            if mode == "inference" and len(workers) == 2 and not any("error" in w.ready for w in workers):
                first, second = (worker.ready["result"] for worker in workers)
                apart = max(abs(a - b) for a, b in zip(first, second)) / max(map(abs, first))
                print(f"  outputs are {apart:.1e} of the largest one apart")
            compare(workers, args.rounds, args.batch_size, "sequences")


# -- PP-OCR ----------------------------------------------------------------------------------------------------------

OCR_RATE, OCR_CLASSES, SYMBOLS, LENGTH = 1e-5, 18710, 10, 25


def ocr_batch(model: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Images [N, H, W, 3] uint8 and what the loss needs."""
    rng = np.random.default_rng(0)
    if model == "rec":
        target = np.zeros((8, LENGTH), np.int64)
        target[:, :SYMBOLS] = rng.integers(1, OCR_CLASSES, (8, SYMBOLS))
        return rng.integers(0, 255, (8, 48, 320, 3), dtype=np.uint8), {"target": target}
    shape = np.zeros((2, 320, 320), np.float32)
    shape[:, 40:60, 30:200] = shape[:, 150:180, 60:300] = 1
    border = {"threshold": 0.3 + 0.4 * shape, "threshold_mask": shape}
    maps = {"shrink": shape, "shrink_mask": np.ones_like(shape), **border}
    return rng.integers(0, 255, (2, 320, 320, 3), dtype=np.uint8), maps


def ocr(peer: str, model: str, network: str, checkout: str) -> Ready:
    images, more = ocr_batch(model)
    count = len(images)
    if peer == "oar":
        from framework.config import build
        from framework.inference import keep_memory
        from framework.optimizer import Adam
        from framework.vision.normalize import Normalize
        from ocr.models.dbnet import DBNetConfig
        from ocr.models.text_recognizer import TextRecognizerConfig
        from ocr.tasks.text import TextDetection, TextRecognition

        keep_memory()
        half = Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5), bgr=True)
        if model == "rec":
            layer = build(TextRecognizerConfig(f"{network}_rec", guided=True, num_classes=OCR_CLASSES))
            task: Any = TextRecognition(half)
            more = {
                "target": more["target"].astype(np.int32),
                "target_length": np.full(count, SYMBOLS, np.int32),
                "width": np.full(count, images.shape[2], np.int32),
                "counts": np.ones(count, np.float32),
            }
        else:
            main_loss = "dice_focal" if network.startswith("PP-OCRv6") else "dice"
            layer, task = build(DBNetConfig(f"{network}_det")), TextDetection(half, main_loss=main_loss)
        params = sum(value.size for value in layer.parameters())
        return engine_step(layer, task, Adam(OCR_RATE), {"image": images, **more}), {"params": params}
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
        classes = {"CTCLabelDecode": OCR_CLASSES, "NRTRLabelDecode": OCR_CLASSES + 3}
        config["Architecture"]["Head"]["out_channels_list"] = classes
    layer, loss_of = build_model(config["Architecture"]), build_loss(config["Loss"])
    layer.train()
    optimizer = paddle.optimizer.Adam(OCR_RATE, parameters=layer.parameters())
    x = paddle.to_tensor(((images[..., ::-1] / 255 - 0.5) / 0.5).astype(np.float32).transpose(0, 3, 1, 2))
    if model == "rec":
        guide = np.zeros((count, LENGTH), np.int64)
        guide[:, 0], guide[:, SYMBOLS + 1] = 2, 3
        guide[:, 1 : SYMBOLS + 1] = more["target"][:, :SYMBOLS] + 3
        lengths, ratios = np.full(count, SYMBOLS), np.ones(count, np.float32)
        labels = [x, *map(paddle.to_tensor, (more["target"], guide, lengths, ratios))]
    else:
        names = ("threshold", "threshold_mask", "shrink", "shrink_mask")
        labels = [x, *(paddle.to_tensor(more[name]) for name in names)]
    run = paddle_step(
        optimizer, lambda: loss_of(layer(x, labels[1:]) if model == "rec" else layer(x), labels)["loss"]
    )
    # Running statistics are among the parameters there.
    return run, {"params": sum(int(np.prod(p.shape)) for p in layer.parameters() if not p.stop_gradient)}


def ocr_train(argv: list[str]) -> None:
    parser = arguments(
        __doc__, models=("rec", "det"), network="PP-OCRv6_small", rounds=7, threads=2, paddle_python=None,
        paddleocr="", memory=0,
    )  # fmt: skip
    args = parser.parse_args(argv)
    if args.memory:
        memory(args.memory)
        return
    for model in args.models:
        workers = [
            Worker(
                "oar", sys.executable, __name__, "ocr", "oar", model, args.network, "", threads=args.threads
            )
        ]
        if args.paddle_python:
            words = ("ocr", "paddle", model, args.network, args.paddleocr)
            path = {"PYTHONPATH": args.paddleocr}
            workers.append(
                Worker("paddle", args.paddle_python, __name__, *words, threads=args.threads, **path)
            )
        else:
            print("  paddle skipped: give --paddle_python and --paddleocr")
        for worker in workers:
            if "error" not in worker.ready:
                print(
                    f"{model} {worker.name}: {worker.ready['params']:,} parameters, loss {worker.ready['result']:.3f}"
                )
        compare(workers, args.rounds, 1, "steps")


def memory(steps: int) -> None:
    """Resident memory in MB after each step of a training of `steps`."""
    from framework.config import load
    from framework.engine.callbacks import Callback
    from framework.engine.experiment import bind_experiment
    from framework.workflow.train.run import make_trainer

    sizes: list[float] = []

    class Watch(Callback):
        def on_step(self, trainer: Any, step: int) -> None:
            sizes.append(resident())

    text = f"""
_base_: {REPO / "configs" / "_base_" / "text_recognition.yml"}
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
        make_trainer(bind_experiment(load(config)), None, callbacks=[Watch()]).fit()
    part = min(100, steps // 2)
    for name, some in (("first", sizes[:part]), ("last", sizes[-part:])):
        print(
            f"{name} {part} steps: {some[0]:.0f} to {some[-1]:.0f} MB, median {statistics.median(some):.0f}"
        )
    print("MB at every tenth:", " ".join(f"{size:.0f}" for size in sizes[:: max(steps // 10, 1)]))


if __name__ == "__main__":  # a competitor, see `Worker`
    subject, *words = sys.argv[1:]
    starts = {"vision": vision, "text": text, "ocr": ocr}
    serve(lambda: starts[subject](*(int(word) if word.isdigit() else word for word in words)))
