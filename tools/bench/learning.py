"""What a recipe learns in Oar and in torch: the same architecture, samples, schedule and length.

torch gets the batches of the config's own loaders, so augmentation and order are the same; its loop, network, loss
and optimizer are torch's. Each side draws its first weights itself: kernels from He's normal distribution of the
fan-in.

learning               classifiers over several seeds: the accuracy after the last epoch, CPU seconds of the whole
                       run, the compiling included, and CPU milliseconds of a training step with its data, without the
                       first epoch
segmentation_learning  PP-LiteSeg in torch alone: mIoU to set beside ours (--eval_split test)
"""

from __future__ import annotations

import itertools
import logging
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from framework.config import load
from framework.engine.callbacks import Callback
from framework.engine.experiment import Experiment, bind_experiment
from framework.engine.trainer import Trainer
from framework.inference import keep_memory
from framework.optimizer import AdamW, Momentum
from framework.workflow.train import run as workflow
from segmentation.models.pp_liteseg import VARIANTS as LITESEGS
from tools.bench.peers import arguments, pin
from zoo.layers.variants import scaled_width
from zoo.vision.pp_lcnet import HEAD_WIDTH, STAGES, STEM_WIDTH, VARIANTS


def prepare(
    experiment: Experiment, model: nn.Module
) -> tuple[nn.Module, torch.optim.Optimizer, Callable[..., Any]]:
    """The model with drawn kernels, its optimizer, and what makes images [N, C, H, W] of a batch."""
    options, task, optim = experiment.train, experiment.task, experiment.optim
    if options.ema or optim.grad_clip or not isinstance(optim, Momentum | AdamW):
        raise SystemExit("torch's side knows Momentum and AdamW, without EMA or clipping")
    model = model.to(memory_format=torch.channels_last)
    for part in model.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight)
            if part.bias is not None and type(model) is PPLiteSeg:
                nn.init.zeros_(part.bias)
    sides: dict[bool, list] = {True: [], False: []}  # whether weight decay applies
    for parameter in model.parameters():
        sides[parameter.ndim > 1 or optim.decay_norm_and_bias].append(parameter)
    decay = optim.weight_decay or 0.0
    groups = [{"params": sides[True], "weight_decay": decay}, {"params": sides[False], "weight_decay": 0.0}]
    descent: torch.optim.Optimizer
    if isinstance(optim, Momentum):
        descent = torch.optim.SGD(groups, 1.0, optim.momentum, nesterov=optim.use_nesterov)
    else:
        descent = torch.optim.AdamW(groups, 1.0, (optim.beta1, optim.beta2), optim.epsilon)
    normalize: Any = task.normalize  # type: ignore[union-attr]
    mean, std = (torch.tensor(v).view(3, 1, 1) * 255 for v in (normalize.mean, normalize.std))
    return model, descent, lambda batch: (torch.from_numpy(batch["image"]).permute(0, 3, 1, 2) - mean) / std


def descend(descent: torch.optim.Optimizer, rate: float, loss: torch.Tensor) -> None:
    for group in descent.param_groups:
        group["lr"] = rate
    descent.zero_grad()
    loss.backward()
    descent.step()


# -- classifiers -----------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    accuracy: float
    seconds: float
    step_ms: float


class _Clock(Callback):
    """CPU time of the steps after the first epoch."""

    def __init__(self) -> None:
        self.spent, self.count, self.mark = 0.0, 0, None

    def on_log(self, trainer: Trainer, row: Any) -> None:
        self.log(row["epoch"] > 0, trainer.steps_per_epoch)

    def log(self, counts: bool, steps: int) -> None:
        """An epoch of training has ended; between this and `begin` there may be an evaluation."""
        if counts and self.mark is not None:
            self.spent, self.count = self.spent + time.process_time() - self.mark, self.count + steps
        self.mark = None

    def on_step(self, trainer: Any, step: int) -> None:
        if self.mark is None:
            self.mark = time.process_time()

    @property
    def step_ms(self) -> float:
        return 1000 * self.spent / max(1, self.count)


def ours(experiment: Experiment) -> Run:
    began, clock = time.process_time(), _Clock()
    trainer = workflow.make_trainer(experiment, None)
    trainer.options = replace(
        experiment.train, log_every=trainer.steps_per_epoch, eval_every=trainer.total_steps
    )
    trainer.callbacks = (clock,)
    scores = trainer.fit()
    return Run(next(iter(scores.values())), time.process_time() - began, clock.step_ms)


def theirs(experiment: Experiment) -> Run:
    began, clock = time.process_time(), _Clock()
    options, task = experiment.train, experiment.task
    assert experiment.data.train and experiment.data.eval and options.epochs
    if task.mixup or task.cutmix:
        raise SystemExit("torch's side knows no mixup and no cutmix")
    torch.manual_seed(options.seed)
    model, descent, images = prepare(experiment, network(experiment.model))
    loader = workflow.make_loader(experiment.data.train, task, options.seed, train=True)
    schedule = experiment.optim.schedule.resolve(options.epochs * len(loader), len(loader))
    step = 0
    for epoch in range(options.epochs):
        for batch in loader.batches(epoch):
            clock.on_step(None, step)
            labels = torch.from_numpy(batch.data["label"]).long()
            loss = F.cross_entropy(model(images(batch.data)), labels, label_smoothing=task.label_smoothing)
            descend(descent, schedule.at(step), loss)
            step += 1
        clock.log(epoch > 0, len(loader))
    model.eval()
    hits = count = 0
    with torch.no_grad():
        for batch in workflow.make_loader(experiment.data.eval, task, options.seed, train=False).batches(0):
            right = model(images(batch.data)).argmax(1).numpy() == batch.data["label"]
            hits, count = hits + right[batch.data["valid"]].sum(), count + batch.data["valid"].sum()
    return Run(hits / count, time.process_time() - began, clock.step_ms)


def network(config: Any) -> nn.Module:
    known = {"CifarResNetConfig": cifar_resnet, "PPLCNetConfig": pp_lcnet}
    kind = type(config).__name__
    if kind not in known:
        raise SystemExit(f"torch's side has no {kind}, only {', '.join(known)}")
    return known[kind](config)


def conv_bn(
    fan_in: int, fan_out: int, kernel: int, stride: int = 1, groups: int = 1, act: Any = None
) -> nn.Module:
    conv = nn.Conv2d(fan_in, fan_out, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(fan_out), act or nn.Identity())


class _Residual(nn.Module):
    def __init__(self, fan_in: int, fan_out: int, stride: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            conv_bn(fan_in, fan_out, 3, stride, act=nn.ReLU()), conv_bn(fan_out, fan_out, 3)
        )
        self.stride, self.half = stride, (fan_out - fan_in) // 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        short = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.half, self.half))
        return torch.relu(self.branch(x) + short)


def cifar_resnet(config: Any) -> nn.Module:
    depth = (int(config.variant.removeprefix("resnet")) - 2) // 6
    parts: list[nn.Module] = [conv_bn(3, 16, 3, act=nn.ReLU())]
    before = 16
    for stage, width in enumerate((16, 32, 64)):
        for number in range(depth):
            parts.append(_Residual(before, width, 2 if stage and not number else 1))
            before = width
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, config.num_classes))


class _Gate(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = (nn.Conv2d(channels, channels // 4, 1), nn.ReLU(), nn.Conv2d(channels // 4, channels, 1))
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), *inner, nn.Hardsigmoid())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gate(x)


def pp_lcnet(config: Any) -> nn.Module:
    scale, act = VARIANTS[config.variant].scale, nn.Hardswish()
    before = scaled_width(STEM_WIDTH, scale)
    parts: list[nn.Module] = [conv_bn(3, before, 3, 2, act=act)]
    for stage, blocks in enumerate(STAGES.values()):
        for number, block in enumerate(blocks):
            width, stride = scaled_width(block.width, scale), 2 if stage and not number else 1
            parts.append(conv_bn(before, before, block.kernel_size, stride, before, act))
            parts += [_Gate(before)] * block.squeeze
            parts.append(conv_bn(before, width, 1, act=act))
            before = width
    head = (nn.AdaptiveAvgPool2d(1), nn.Conv2d(before, HEAD_WIDTH, 1, bias=False), act, nn.Flatten())
    return nn.Sequential(*parts, *head, nn.Dropout(0.2), nn.Linear(HEAD_WIDTH, config.num_classes))


def learning(argv: list[str]) -> None:
    parser = arguments(__doc__, threads=1)
    parser.add_argument("-c", "--config", required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("-o", "--opt", nargs="+", default=[], metavar="key=value")
    args = parser.parse_args(argv)
    logging.getLogger("oar").setLevel(logging.WARNING)
    keep_memory()
    torch.set_num_threads(args.threads)
    pin(args.threads)
    runs: dict[str, list[Run]] = {"Oar": [], "torch": []}
    print(f"{'':6} {'seed':>4} {'accuracy':>9} {'CPU s':>8} {'CPU ms a step':>14}")
    for seed in args.seeds:
        experiment = bind_experiment(load(args.config, (*args.opt, f"train.seed={seed}")))
        for name, run in (("Oar", ours), ("torch", theirs)):
            runs[name].append(run(experiment))
            accuracy, seconds, step = runs[name][-1]
            print(f"{name:6} {seed:4} {accuracy:9.2%} {seconds:8.1f} {step:14.1f}", flush=True)
    for name, found in runs.items():
        accuracy, seconds, step = (statistics.mean(column) for column in zip(*found))
        spread = statistics.stdev(run.accuracy for run in found) if len(found) > 1 else 0.0
        print(
            f"{name:6} mean {accuracy:9.2%} {seconds:8.1f} {step:14.1f}   deviation of accuracy {spread:.2%}"
        )


# -- PP-LiteSeg --------------------------------------------------------------------------------------------------------


def conv(
    fan_in: int, fan_out: int, kernel: int, stride: int = 1, relu: bool = True, bias: bool = False
) -> nn.Module:
    parts: list[nn.Module] = [
        nn.Conv2d(fan_in, fan_out, kernel, stride, kernel // 2, bias=bias),
        nn.BatchNorm2d(fan_out),
    ]
    return nn.Sequential(*parts, nn.ReLU()) if relu else nn.Sequential(*parts)


def resized(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return F.interpolate(x, like.shape[2:], mode="bilinear", align_corners=False)


class Dense(nn.Module):
    """STDC's block: four convolutions, each half as wide, side by side."""

    def __init__(self, fan_in: int, fan_out: int, stride: int) -> None:
        super().__init__()
        self.first = conv(fan_in, fan_out // 2, 1)
        self.down, self.skip = nn.Identity(), nn.Identity()
        if stride == 2:
            half = fan_out // 2
            depthwise = nn.Conv2d(half, half, 3, 2, 1, groups=half, bias=False)
            self.down = nn.Sequential(depthwise, nn.BatchNorm2d(half))
            self.skip = nn.AvgPool2d(3, 2, 1, count_include_pad=False)
        widths = (fan_out // 2, fan_out // 4, fan_out // 8, fan_out // 8)
        self.rest = nn.ModuleList([conv(a, b, 3) for a, b in itertools.pairwise(widths)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        found, y = [self.skip(x)], self.down(x)
        for layer in self.rest:
            y = layer(y)
            found.append(y)
        return torch.cat(found, 1)


class Fusion(nn.Module):
    def __init__(self, fan_x: int, fan_y: int, fan_out: int) -> None:
        super().__init__()
        self.x, self.out = conv(fan_x, fan_y, 3), conv(fan_y, fan_out, 3)
        self.weight = nn.Sequential(conv(4, 2, 3), conv(2, 1, 3, relu=False))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = self.x(x)
        y = resized(y, x)
        seen = [part for z in (x, y) for part in (z.mean(1, keepdim=True), z.amax(1, keepdim=True))]
        weight = torch.sigmoid(self.weight(torch.cat(seen, 1)))
        return self.out(x * weight + y * (1 - weight))


class PPLiteSeg(nn.Module):
    def __init__(self, variant: str, classes: int) -> None:
        super().__init__()
        size = LITESEGS[variant]
        blocks = {"stdc1": (2, 2, 2), "stdc2": (4, 5, 3)}[size.backbone.variant]
        base, context = size.backbone.width, size.context_width
        self.stem = nn.Sequential(conv(3, base // 2, 3, 2), conv(base // 2, base, 3, 2))
        widths = (base * 4, base * 8, base * 16)
        self.stages = nn.ModuleList()
        before = base
        for width, count in zip(widths, blocks):
            layers = [Dense(before if n == 0 else width, width, 2 if n == 0 else 1) for n in range(count)]
            self.stages.append(nn.Sequential(*layers))
            before = width
        self.pools = nn.ModuleList(
            [nn.Sequential(nn.AdaptiveAvgPool2d(n), conv(before, context, 1, bias=True)) for n in (1, 2, 4)]
        )
        self.pooled = conv(context, context, 3, bias=True)
        coarser = (*size.fusion_widths[1:], context)
        self.fusions = nn.ModuleList([Fusion(*w) for w in zip(widths, coarser, size.fusion_widths)])
        self.heads = nn.ModuleList(
            [
                nn.Sequential(conv(a, b, 3), nn.Conv2d(b, classes, 1, bias=False))
                for a, b in zip(size.fusion_widths, size.head_widths)
            ]
        )

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        image, maps = x, []
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        y = self.pooled(torch.stack([resized(pool(x), x) for pool in self.pools]).sum(0))
        fused = []
        for finer, fusion in zip(maps[::-1], reversed(self.fusions)):
            y = fusion(finer, y)
            fused.append(y)
        fused = fused[::-1] if self.training else fused[:1:-1]
        return [resized(head(z), image) for head, z in zip(self.heads, fused)]


def loss_of(config: Any, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """CrossEntropy and OhemCrossEntropy of segmentation/losses.py."""
    if type(config).__name__ == "CrossEntropy" and config.hardest == 1:
        weight = None if config.weight is None else torch.tensor(config.weight)
        return F.cross_entropy(logits, labels, weight, ignore_index=config.ignore_index)
    each = F.cross_entropy(logits, labels, ignore_index=config.ignore_index, reduction="none").flatten()
    known = labels.flatten() != config.ignore_index
    if type(config).__name__ == "OhemCrossEntropy":
        each, known = each[known], known[known]
        with torch.no_grad():
            kept = min(config.min_kept, len(each))
            least = each.kthvalue(len(each) - kept + 1).values if kept else each.new_zeros(())
            limit = torch.minimum(least, each.new_tensor(-np.log(config.thresh)))
        known = each >= limit
    else:
        raise SystemExit("torch's side knows CrossEntropy and OhemCrossEntropy")
    return each[known].sum() / known.sum().clamp(min=1)


def segmentation_learning(argv: list[str]) -> None:
    parser = arguments(__doc__, eval_split=None)
    parser.add_argument("-c", "--config", required=True)
    parser.add_argument("-o", "--opt", nargs="+", default=[], metavar="key=value")
    args = parser.parse_args(argv)
    experiment = bind_experiment(load(args.config, tuple(args.opt)))
    options, task, data = experiment.train, experiment.task, experiment.data
    assert data.train and data.eval and options.iters and task is not None
    torch.manual_seed(options.seed)
    net = PPLiteSeg(experiment.model.variant, experiment.model.num_classes)
    model, descent, images = prepare(experiment, net)
    loader = workflow.make_loader(data.train, task, options.seed, train=True)
    schedule, began = experiment.optim.schedule.resolve(options.iters, len(loader)), time.process_time()
    batches = (batch for epoch in itertools.count() for batch in loader.batches(epoch))
    for step, batch in zip(range(options.iters), batches):
        labels = torch.from_numpy(batch.data["mask"]).long()
        outputs = model(images(batch.data))
        loss = sum(w.weight * loss_of(w.loss, x, labels) for w, x in zip(task.losses, outputs))
        assert isinstance(loss, torch.Tensor)
        descend(descent, schedule.at(step), loss)
        if (step + 1) % options.log_every == 0:
            spent = time.process_time() - began
            print(f"step {step + 1}  loss {loss.item():.4f}  {spent:.0f} CPU s", flush=True)
    feed = data.eval
    if args.eval_split:
        feed = replace(feed, dataset=replace(feed.dataset, split=args.eval_split))
    metric = task.metric.start(feed.dataset.class_names)
    model.eval()
    with torch.no_grad():
        for batch in workflow.make_loader(feed, task, options.seed, train=False).batches(0):
            kept = batch.data["valid"]
            labels = model(images(batch.data))[0].argmax(1).numpy()[kept]
            metric.update({"labels": labels}, {"mask": batch.data["mask"][kept]})
    print("  ".join(f"{name} {value:.4f}" for name, value in metric.result().items()))
