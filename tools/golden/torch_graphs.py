"""The networks that torch's exporters write as ONNX, see graphs.py."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import torch
from torch import nn


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, channels // 4, 1), nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        share = torch.relu(self.down(nn.functional.adaptive_avg_pool2d(x, 1)))
        return x * nn.functional.hardsigmoid(self.up(share))


class Inverted(nn.Module):
    def __init__(self, channels: int, wide: int, out: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False),
            nn.BatchNorm2d(wide),
            nn.Hardswish(),
            nn.Conv2d(wide, wide, kernel, stride, kernel // 2, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            nn.Hardswish(),
            SqueezeExcite(wide),
            nn.Conv2d(wide, out, 1, bias=False),
            nn.BatchNorm2d(out),
        )
        self.adds = stride == 1 and channels == out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x) if self.adds else self.layers(x)


class MobileNet(nn.Module):
    """MobileNetV3's blocks, a transposed convolution and a bilinear resize to the input's size."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish())
        self.body = nn.Sequential(
            Inverted(8, 16, 8, 3, 1), Inverted(8, 24, 12, 5, 2), Inverted(12, 24, 12, 5, 1)
        )
        self.up = nn.ConvTranspose2d(12, 6, 2, 2)
        self.head = nn.Linear(12, 10)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.body(self.stem(x))
        mask = nn.functional.interpolate(self.up(y), size=x.shape[2:], mode="bilinear", align_corners=False)
        return self.head(y.mean((2, 3))), mask


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.encoder(self.embed(tokens))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 12, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(24, 10, bidirectional=True, batch_first=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, (hidden, _) = self.lstm(x)
        return self.gru(y)[0], hidden


class SwinBlock(nn.Module):
    """Attention in shifted windows of 4x4 with a relative position bias."""

    def __init__(self, width: int, heads: int, shift: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.bias = nn.Parameter(torch.randn(49, heads) * 0.1)
        at = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
        apart = (at[:, :, None] - at[:, None] + 3).permute(1, 2, 0)
        self.register_buffer("index", (apart[..., 0] * 7 + apart[..., 1]).flatten())
        self.heads, self.shift = heads, shift

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, h, w, c = x.shape
        y = self.norm1(x)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = y.view(n, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
        q, k, v = self.qkv(y).reshape(-1, 16, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        bias = self.bias[self.index].view(16, 16, self.heads).permute(2, 0, 1)
        scores = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1) + bias
        y = self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, 16, c))
        y = y.view(n, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
        x = x + (torch.roll(y, (self.shift, self.shift), (1, 2)) if self.shift else y)
        return x + self.mlp(self.norm2(x))


class Swin(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.blocks = nn.Sequential(SwinBlock(16, 2, 0), SwinBlock(16, 2, 2))
        self.merge = nn.Linear(64, 24, bias=False)
        self.norm = nn.LayerNorm(24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.blocks(self.patches(x).permute(0, 2, 3, 1))
        corners = [y[:, 0::2, 0::2], y[:, 1::2, 0::2], y[:, 0::2, 1::2], y[:, 1::2, 1::2]]
        return self.norm(self.merge(torch.cat(corners, -1))).permute(0, 3, 1, 2)


class Detr(nn.Module):
    """A small backbone, an encoder and a decoder with learned queries, classes and boxes."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
            nn.Conv2d(8, 16, 3, 2, 1),
        )
        self.transformer = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)
        self.queries = nn.Parameter(torch.randn(6, 16))
        self.rows, self.columns = nn.Parameter(torch.rand(20, 8)), nn.Parameter(torch.rand(20, 8))
        self.classes, self.boxes = nn.Linear(16, 5), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.backbone(x)
        h, w = y.shape[2:]
        places = torch.cat(
            [self.columns[:w].unsqueeze(0).repeat(h, 1, 1), self.rows[:h].unsqueeze(1).repeat(1, w, 1)], -1
        ).flatten(0, 1)
        y = y.flatten(2).permute(0, 2, 1) + places
        out = self.transformer(y, self.queries.unsqueeze(0).repeat(x.shape[0], 1, 1))
        return self.classes(out), self.boxes(out).sigmoid()


def cases() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    generator = torch.Generator().manual_seed(5)
    image = torch.randn(2, 3, 32, 32, generator=generator)
    return {
        "mobilenet": (MobileNet(), image),
        "transformer": (Transformer(), torch.randint(0, 50, (2, 9), generator=generator)),
        "recurrent": (Recurrent(), torch.randn(2, 7, 8, generator=generator)),
        "swin": (Swin(), image),
        "detr": (Detr(), image),
    }


def exported() -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """(name and kind, model, input and outputs) of every network by TorchScript ("script") and torch.export
    ("dynamo")."""
    torch.manual_seed(3)
    for name, (model, x) in cases().items():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                nn.init.xavier_normal_(parameter)
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.normal_(module.running_mean, 0.0, 0.2)
                nn.init.uniform_(module.running_var, 0.5, 1.5)
        model.eval()
        with torch.no_grad():
            outputs = model(x)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        for kind in ("script", "dynamo"):
            buffer = io.BytesIO()
            if kind == "dynamo":
                torch.onnx.export(model, (x,), dynamo=True, external_data=False).save(buffer)
            else:
                axes = {"x": {0: "batch"}}
                torch.onnx.export(
                    model, (x,), buffer, dynamo=False, input_names=["x"], dynamic_axes=axes, opset_version=17
                )
            arrays = {f"out{i}": out.numpy() for i, out in enumerate(outputs)}
            yield (
                f"{name}_{kind}",
                {"model": np.frombuffer(buffer.getvalue(), np.uint8), "x": x.numpy(), **arrays},
            )
