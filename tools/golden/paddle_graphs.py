"""tests/golden/data/paddle_graphs_*.npz: small programs that Paddle exported, with an input and Paddle's outputs.

python paddle_graphs.py            in an environment with paddlepaddle 2.6.2 (ProgramDesc) or 3.2.2 (PIR)
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import paddle  # type: ignore[import-not-found]
import paddle.nn.functional as F  # type: ignore[import-not-found]
from paddle import nn  # type: ignore[import-not-found]

DATA = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data"


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


def main() -> None:
    random = np.random.RandomState(0)
    cases = {
        "text_line": (TextLine, [None, 3, 16, None], random.randn(2, 3, 16, 48).astype("float32")),
        "encoder": (Encoder, [None, None], random.randint(0, 50, (3, 9))),
        "pyramid": (Pyramid, [None, 3, None, None], random.randn(2, 3, 16, 24).astype("float32")),
    }
    pir = paddle.__version__.startswith("3")
    for name, (make, shape, x) in cases.items():
        paddle.seed(0)
        net = make()
        net.eval()
        out = net(paddle.to_tensor(x))
        outs = out if isinstance(out, list | tuple) else [out]
        with tempfile.TemporaryDirectory() as folder:
            prefix = f"{folder}/model"
            paddle.jit.save(net, prefix, input_spec=[paddle.static.InputSpec(shape, str(x.dtype), "x")])
            program = Path(f"{prefix}.json" if pir else f"{prefix}.pdmodel").read_bytes()
            params = Path(f"{prefix}.pdiparams").read_bytes()
        arrays = {f"out{i}": out.numpy() for i, out in enumerate(outs)}
        blobs = {
            key: np.frombuffer(data, np.uint8) for key, data in (("program", program), ("params", params))
        }
        path = DATA / f"paddle_graphs_{name}_{'pir' if pir else 'pdmodel'}.npz"
        np.savez_compressed(path, x=x, **blobs, **arrays)
        print(path.name, path.stat().st_size // 1024, "KiB")


if __name__ == "__main__":
    main()
