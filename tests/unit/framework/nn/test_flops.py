"""`framework.flops` and the arguments of `framework.summary`; the numbers are those of paddle.flops 2.6.2."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest

import framework
from framework import nn
from framework.core.errors import ShapeError


def _net() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2D(3, 6, 3, stride=2, padding=1),
        nn.BatchNorm2D(6),
        nn.LeakyReLU(),
        nn.AvgPool2D(2),
        nn.Conv2DTranspose(6, 4, 2, stride=2, groups=2),
        nn.ReLU(),
        nn.Conv2D(4, 8, 3, groups=2, bias_attr=False),
        nn.AdaptiveAvgPool2D(2),
        nn.Flatten(),
        nn.Linear(32, 5),
    )


def test_flops_are_paddles(capsys: pytest.CaptureFixture[str]) -> None:
    net = _net()
    net[1].eval()
    assert framework.flops(net, [2, 20, 18, 3]) == 57016 and not capsys.readouterr().out
    assert framework.flops(net, [2, 20, 18, 3], print_detail=True) == 57016
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines[1:-1]] == (
        ["30,240", "2,160", "1,080", "240", "8,320", "0", "13,824", "832", "0", "320"]
    )
    assert lines[0].split() == ["layer", "type", "input", "output", "params", "FLOPs"]
    assert lines[-1] == "57,016 FLOPs, 541 parameters"  # Paddle counts the two statistics of BatchNorm, too
    assert net.training and not net[1].training and "total_ops" not in net[0].__dict__
    assert framework.flops(net, [None, 20, 18, 3]) * 2 == 57016
    assert framework.flops(nn.Linear(3, 4), [1, 3]) == 12


def test_own_counts() -> None:
    def as_in_paddle(m: Any, x: Any, y: Any) -> None:
        m.total_ops += int(x[0].size)

    size = [2, 20, 18, 3]
    assert framework.flops(_net(), size, custom_ops={nn.ReLU: as_in_paddle}) == 57656
    assert framework.flops(_net(), size, custom_ops={nn.ReLU: lambda m, x, y: y.size}) == 57656
    assert framework.flops(_net(), size, custom_ops={nn.Conv2D: lambda m, x, y: 0}) == 57016 - 30240 - 13824


class _TwoInputs(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.out = nn.Embedding(9, 4), nn.Linear(4, 2)

    def forward(self, ids: Any, scale: Any) -> Any:
        return self.out(self.embed(ids)) * scale


def test_summary_prints_and_takes_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    found = framework.summary(_TwoInputs(), [(None, 5), (1,)], dtypes=["int32", "float32"])
    assert capsys.readouterr().out == f"{found}\n" and "[1, 5, 2]" in str(found)
    assert found["total_params"] == found["trainable_params"] == 46
    with pytest.raises(KeyError):
        found["params"]
    ids, scale = jnp.zeros((2, 5), jnp.int32), jnp.ones(1)
    for given in ([ids, scale], {"scale": scale, "ids": ids}):
        assert framework.summary(_TwoInputs(), input=given).rows[-1].shapes == ((2, 5, 2),)
    assert framework.summary(nn.ReLU(), input=jnp.ones((3, 4))).rows[0].shapes == ((3, 4),)


@pytest.mark.parametrize("tool", [framework.flops, framework.summary])
def test_channels_first_sizes_are_named(tool: Any) -> None:
    with pytest.raises(
        ShapeError,
        match=r"(?s)received: \(1, 3, 64, 48\), which looks channels-first.*write \(1, 64, 48, 3\)",
    ):
        tool(_net(), (1, 3, 64, 48))
    with pytest.raises(ShapeError, match="conv2d: input, weight"):
        tool(_net(), (1, 64, 48, 4))
