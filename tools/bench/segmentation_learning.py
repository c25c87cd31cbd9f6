"""What a PP-LiteSeg recipe learns in torch, with the batches of the config's own loaders: mIoU to set beside ours.

python tools/bench/segmentation_learning.py -c configs/segmentation/pp_liteseg/pp_liteseg_stdc1_camvid_small.yml \
    --eval_split test

Loop, network, loss and optimizer are torch's; augmentation and order are ours. Kernels are drawn by torch from He's
normal distribution of the fan-in.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from framework.config import load
from framework.engine.experiment import bind_experiment
from framework.optimizer import AdamW, Momentum
from framework.workflow.train import run as workflow
from segmentation.models.pp_liteseg import VARIANTS


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
        size = VARIANTS[variant]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-c", "--config", required=True)
    parser.add_argument("--eval_split", help="evaluate on this split of the data set instead")
    parser.add_argument("-o", "--opt", nargs="+", default=[], metavar="key=value")
    args = parser.parse_args()
    experiment = bind_experiment(load(args.config, tuple(args.opt)))
    options, task, optim, data = experiment.train, experiment.task, experiment.optim, experiment.data
    assert data.train and data.eval and options.iters and task is not None
    if options.ema or optim.grad_clip or not isinstance(optim, Momentum | AdamW):
        raise SystemExit("torch's side knows Momentum and AdamW, without EMA or clipping")
    torch.manual_seed(options.seed)
    model = PPLiteSeg(experiment.model.variant, experiment.model.num_classes).to(
        memory_format=torch.channels_last
    )
    for part in model.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
    loader = workflow.make_loader(data.train, task, options.seed, train=True)
    schedule = optim.schedule.resolve(options.iters, len(loader))
    sides: dict[bool, list] = {True: [], False: []}  # whether weight decay applies
    for parameter in model.parameters():
        sides[parameter.ndim > 1 or optim.decay_norm_and_bias].append(parameter)
    groups = [
        {"params": sides[True], "weight_decay": optim.weight_decay or 0.0},
        {"params": sides[False], "weight_decay": 0.0},
    ]
    descent: torch.optim.Optimizer
    if isinstance(optim, Momentum):
        descent = torch.optim.SGD(groups, 1.0, optim.momentum, nesterov=optim.use_nesterov)
    else:
        descent = torch.optim.AdamW(groups, 1.0, (optim.beta1, optim.beta2), optim.epsilon)
    mean, std = (torch.tensor(v).view(3, 1, 1) * 255 for v in (task.normalize.mean, task.normalize.std))

    def images(batch: dict[str, np.ndarray]) -> torch.Tensor:
        return (torch.from_numpy(batch["image"]).permute(0, 3, 1, 2) - mean) / std

    step, epoch, began = 0, 0, time.process_time()
    while step < options.iters:
        for batch in loader.batches(epoch):
            for group in descent.param_groups:
                group["lr"] = schedule.at(step)
            labels = torch.from_numpy(batch.data["mask"]).long()
            outputs = model(images(batch.data))
            loss = sum(w.weight * loss_of(w.loss, x, labels) for w, x in zip(task.losses, outputs))
            assert isinstance(loss, torch.Tensor)
            descent.zero_grad()
            loss.backward()
            descent.step()
            step += 1
            if step % options.log_every == 0:
                print(
                    f"step {step}  loss {loss.item():.4f}  {time.process_time() - began:.0f} CPU s",
                    flush=True,
                )
            if step == options.iters:
                break
        epoch += 1
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


if __name__ == "__main__":
    main()
