"""Small files of other frameworks for the tests of framework.interop.

Each run writes the files of the framework that its Python has; the frameworks do not live together in one place:

    <python with paddlepaddle 2.6.2>                     tools/golden/make_interop_fixtures.py tests/data/interop
    <python with paddlepaddle 3.2.2, paddle2onnx 2.1.0>  tools/golden/make_interop_fixtures.py tests/data/interop
    <python with torch>                                  tools/golden/make_interop_fixtures.py tests/data/interop

Every weight follows from its name (`values`), so the tests know what they must find.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import zlib
from pathlib import Path
from typing import Any

import numpy as np


def values(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """float32 in [-0.5, 0.5) that follow from the name alone; variances are made positive."""
    count = int(np.prod(shape))
    mixed = (zlib.crc32(name.encode("utf-8")) + np.arange(count, dtype=np.uint64) * 2654435761) % 2**32
    array = (mixed / 2**32 - 0.5).astype(np.float32).reshape(shape)
    return array + 1 if name.endswith("_variance") else array


def fill(layer: Any) -> None:
    """Give every parameter of a Paddle layer the values of its structured name."""
    layer.set_state_dict({name: values(name, tuple(p.shape)) for name, p in layer.state_dict().items()})


def small_layer(paddle: Any) -> Any:
    nn = paddle.nn

    class Small(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.bn, self.fc = nn.Conv2D(2, 3, 3), nn.BatchNorm2D(3), nn.Linear(3, 2)

        def forward(self, x: Any) -> Any:
            return self.fc(self.bn(self.conv(x)).mean([2, 3]))

    return Small()


def network(paddle: Any) -> Any:
    """One of each operation with weights that PP-OCR uses."""
    nn = paddle.nn

    class LearnableAffineBlock(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.scale, self.bias = self.create_parameter([1]), self.create_parameter([1])

        def forward(self, x: Any) -> Any:
            return self.scale * x + self.bias

    class Network(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.bn = nn.Conv2D(3, 4, 3, stride=2, padding=1, bias_attr=False), nn.BatchNorm2D(4)
            self.lab, self.depthwise = LearnableAffineBlock(), nn.Conv2D(4, 4, 3, padding=1, groups=4)
            self.up, self.one = nn.Conv2DTranspose(4, 2, 2, stride=2), nn.Conv2D(2, 1, 1)
            self.lstm = nn.LSTM(2, 3, num_layers=2, direction="bidirectional")
            self.norm, self.fc = nn.LayerNorm(6), nn.Linear(6, 5)
            self.hardswish, self.gelu = nn.Hardswish(), nn.GELU()
            self.sigmoid, self.softmax = nn.Sigmoid(), nn.Softmax()

        def forward(self, x):  # to_static of 2.6 reads this source anew: it sees neither closures nor `Any`
            x = self.lab(self.hardswish(self.bn(self.conv(x))))
            x = self.up(self.gelu(self.depthwise(x)))
            x = x * self.sigmoid(self.one(x))
            x, _ = self.lstm(x.mean(2).transpose([0, 2, 1]))
            return self.softmax(self.fc(self.norm(x)))

    return Network()


def save_network(paddle: Any, path: Path) -> None:
    model = network(paddle)
    model.eval()
    fill(model)
    paddle.jit.save(model, str(path), input_spec=[paddle.static.InputSpec([None, 3, 8, 8], "float32", "x")])


def paddle_2(paddle: Any, folder: Path) -> None:
    model = small_layer(paddle)
    fill(model)
    for protocol in (2, 4):
        paddle.save(model.state_dict(), str(folder / f"state_p{protocol}.pdparams"), protocol=protocol)
    paddle.save({"epoch": 3, "model": dict(model.state_dict())}, str(folder / "nested.pdparams"))
    paddle.save(
        {"w": paddle.to_tensor([1.0, -2.5, 3.0]).astype("bfloat16")}, str(folder / "bfloat16.pdparams")
    )

    schedule = paddle.optimizer.lr.StepDecay(0.5, step_size=2)
    optimizer = paddle.optimizer.Adam(schedule, parameters=model.fc.parameters())
    model.fc(paddle.ones([1, 3])).sum().backward()
    optimizer.step()
    schedule.step()
    paddle.save(optimizer.state_dict(), str(folder / "adam.pdopt"))

    save_network(paddle, folder / "network")
    (folder / "network.pdiparams.info").unlink()

    paddle.enable_static()
    program, start = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(program, start):
        weight = paddle.static.create_parameter([2, 2], "float32", name="static_weight")
    paddle.static.Executor(paddle.CPUPlace()).run(start)
    scope = paddle.static.global_scope()
    scope.find_var(weight.name).get_tensor().set(values("static_weight", (2, 2)), paddle.CPUPlace())
    # Inside another dict the tensors stay LoDTensors, which are written as calls of eval.
    paddle.save({"model": program.state_dict("param"), "epoch": 1}, str(folder / "static.pdparams"))


def paddle_3(paddle: Any, folder: Path) -> None:
    model = small_layer(paddle)
    fill(model)
    paddle.save(model.state_dict(), str(folder / "state_numpy2.pdparams"))
    save_network(paddle, folder / "network_pir")
    importlib.import_module("paddle2onnx").export(
        str(folder / "network_pir.json"),
        str(folder / "network_pir.pdiparams"),
        str(folder / "network.onnx"),
        opset_version=11,
    )


def torch_files(torch: Any, folder: Path) -> None:
    base = torch.from_numpy(values("base", (4, 6)))
    state = {
        "base": base,
        "transposed": base.t(),
        "column": base[:, 2],
        "parameter": torch.nn.Parameter(torch.from_numpy(values("parameter", (3,)))),
        "half": torch.tensor([1.0, -0.5], dtype=torch.float16),
        "bfloat16": torch.tensor([1.0, -2.5], dtype=torch.bfloat16),
        "steps": torch.tensor(7),
        "empty": torch.zeros(0, 3),
        "mask": torch.tensor([True, False]),
    }
    torch.save(state, folder / "state.pt")
    wrapped = {"epoch": 3, "best": torch.tensor(0.5), "state_dict": torch.nn.Linear(3, 2).state_dict()}
    for name, tensor in wrapped["state_dict"].items():
        tensor.copy_(torch.from_numpy(values(name, tuple(tensor.shape))))
    torch.save(wrapped, folder / "legacy.pth", _use_new_zipfile_serialization=False)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    if importlib.util.find_spec("paddle"):
        paddle = importlib.import_module("paddle")
        (paddle_2 if paddle.__version__.startswith("2.") else paddle_3)(paddle, folder)
    if importlib.util.find_spec("torch"):
        torch_files(importlib.import_module("torch"), folder)


if __name__ == "__main__":
    main()
