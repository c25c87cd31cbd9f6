"""ResNet, ResNeXt and Wide ResNet. Sources: He et al. 2015, Xie et al. 2017, Zagoruyko and Komodakis 2016."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from framework.paddle import nn
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.vision.models.parts import model_function, zoo_table


class BasicBlock(nn.Layer):
    """Two convolutions of 3x3 and a shortcut."""

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Layer | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Callable[..., nn.Layer] | None = None,
    ) -> None:
        super().__init__()
        if dilation > 1:
            raise ShapeError("a BasicBlock is not dilated", where="BasicBlock", received=dilation)
        norm = norm_layer or nn.BatchNorm2D
        self.conv1 = nn.Conv2D(inplanes, planes, 3, stride, 1, bias_attr=False)
        self.bn1 = norm(planes)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2D(planes, planes, 3, padding=1, bias_attr=False)
        self.bn2 = norm(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class BottleneckBlock(nn.Layer):
    """1x1, 3x3 (with the stride) and 1x1 convolutions, and a shortcut."""

    expansion = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Layer | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Callable[..., nn.Layer] | None = None,
    ) -> None:
        super().__init__()
        norm = norm_layer or nn.BatchNorm2D
        width, outputs = int(planes * base_width / 64) * groups, planes * self.expansion
        self.conv1 = nn.Conv2D(inplanes, width, 1, bias_attr=False)
        self.bn1 = norm(width)
        self.conv2 = nn.Conv2D(
            width, width, 3, stride, dilation, groups=groups, dilation=dilation, bias_attr=False
        )
        self.bn2 = norm(width)
        self.conv3 = nn.Conv2D(width, outputs, 1, bias_attr=False)
        self.bn3 = norm(outputs)
        self.relu = nn.ReLU()
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Layer):
    """Four stages of blocks; images [N, 3, H, W] -> [N, num_classes].

    Args:
        block: BasicBlock, BottleneckBlock, or a class like them.
        width: of a group, of 64 (wide: 128; ResNeXt: 4).
    """

    def __init__(
        self,
        block: Any,
        depth: int = 50,
        width: int = 64,
        num_classes: int = 1000,
        with_pool: bool = True,
        groups: int = 1,
    ) -> None:
        super().__init__()
        sizes = zoo_table("ResNet")
        if f"resnet{depth}" not in sizes:
            raise ShapeError("unknown depth", where="ResNet", received=depth, allowed="18, 34, 50, 101, 152")
        self.groups, self.base_width = groups, width
        self.num_classes, self.with_pool = num_classes, with_pool
        self.inplanes, self.dilation = 64, 1
        self.conv1 = nn.Conv2D(3, 64, 7, 2, 3, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2D(3, 2, 1)
        for stage, count in enumerate(sizes[f"resnet{depth}"].depths):
            blocks = self._make_layer(block, 64 << stage, count, 1 if stage == 0 else 2)
            setattr(self, f"layer{stage + 1}", blocks)
        if with_pool:
            self.avgpool = nn.AdaptiveAvgPool2D((1, 1))
        if num_classes > 0:
            self.fc = nn.Linear(512 * block.expansion, num_classes)

    def _make_layer(self, block: Any, planes: int, blocks: int, stride: int = 1) -> nn.Sequential:
        outputs = planes * block.expansion
        downsample = None
        if stride != 1 or self.inplanes != outputs:
            downsample = nn.Sequential(
                nn.Conv2D(self.inplanes, outputs, 1, stride, bias_attr=False), nn.BatchNorm2D(outputs)
            )
        made = [block(self.inplanes, planes, stride, downsample, self.groups, self.base_width)]
        self.inplanes = outputs
        for _ in range(1, blocks):
            made.append(block(outputs, planes, groups=self.groups, base_width=self.base_width))
        return nn.Sequential(*made)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        if self.with_pool:
            x = self.avgpool(x)
        return self.fc(x.flatten(1)) if self.num_classes > 0 else x


def _resnet(name: str, depth: int, entry: str | None = None, **form: int) -> Callable[..., ResNet]:
    block = BasicBlock if depth < 50 else BottleneckBlock
    return model_function(name, functools.partial(ResNet, block, depth, **form), entry)


resnet18 = _resnet("resnet18", 18, "resnet18_vision_imagenet")
resnet34 = _resnet("resnet34", 34, "resnet34_vision_imagenet")
resnet50 = _resnet("resnet50", 50, "resnet50_vision_imagenet")
resnet101 = _resnet("resnet101", 101, "resnet101_vision_imagenet")
resnet152 = _resnet("resnet152", 152, "resnet152_vision_imagenet")
resnext50_32x4d = _resnet("resnext50_32x4d", 50, groups=32, width=4)
resnext50_64x4d = _resnet("resnext50_64x4d", 50, groups=64, width=4)
resnext101_32x4d = _resnet("resnext101_32x4d", 101, groups=32, width=4)
resnext101_64x4d = _resnet("resnext101_64x4d", 101, groups=64, width=4)
resnext152_32x4d = _resnet("resnext152_32x4d", 152, groups=32, width=4)
resnext152_64x4d = _resnet("resnext152_64x4d", 152, groups=64, width=4)
wide_resnet50_2 = _resnet("wide_resnet50_2", 50, width=128)
wide_resnet101_2 = _resnet("wide_resnet101_2", 101, width=128)
