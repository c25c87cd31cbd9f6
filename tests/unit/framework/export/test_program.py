from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ShapeError, TraceError
from framework.export import PLATFORMS, TensorSpec, lower_layer, lower_program, size_fits
from framework.nn.functional import linear


def call(program, weights, **inputs):
    return {name: np.asarray(value) for name, value in program.call(weights, inputs).items()}


def test_a_symbolic_size_is_one_program_for_many_shapes():
    program = lower_program(
        lambda w, i: {"y": i["x"].mean((1, 2)) * w["scale"]},
        {"scale": np.full(3, 2, np.float32)},
        {"x": TensorSpec(("n", "8*h", "8*w", 3))},
        ("cpu",),
    )
    for shape in ((1, 8, 16, 3), (3, 24, 8, 3)):
        y = call(program, {"scale": np.full(3, 2, np.float32)}, x=np.ones(shape, np.float32))["y"]
        np.testing.assert_array_equal(y, np.full((shape[0], 3), 2))
    assert program.platforms == ("cpu",)


def test_inputs_share_a_size_of_one_name():
    program = lower_program(
        lambda w, i: {"y": i["a"] + i["b"]}, {}, {"a": TensorSpec(("n",)), "b": TensorSpec(("n",))}, ("cpu",)
    )
    ones = np.ones(3, np.float32)
    np.testing.assert_array_equal(call(program, {}, a=ones, b=ones)["y"], [2, 2, 2])
    with pytest.raises(ValueError, match="polymorphic shape"):
        call(program, {}, a=ones, b=np.ones(4, np.float32))


def test_constraints_answer_questions_about_sizes():
    def at_least_four(weights, inputs):
        x = inputs["x"]
        return {"y": x[:4] if x.shape[0] >= 4 else x}

    spec = {"x": TensorSpec(("n",))}
    program = lower_program(at_least_four, {}, spec, ("cpu",), constraints=("n >= 4",))
    assert call(program, {}, x=np.zeros(6, np.float32))["y"].shape == (4,)
    with pytest.raises(TraceError, match=r"test_program\.py:\d+: return .*not the same for all inputs"):
        lower_program(at_least_four, {}, spec, ("cpu",))
    with pytest.raises(ShapeError, match=r"not a constraint on symbolic sizes\n.*\n  allowed: \"w >= 16\""):
        lower_program(at_least_four, {}, spec, ("cpu",), constraints=("many",))


def test_a_program_for_all_platforms_holds_the_form_of_the_cpu_and_the_plain_one():
    layer = nn.Conv2D(4, 4, 3, padding=1, groups=4)
    several, _ = lower_layer(layer, {"x": TensorSpec((1, 6, 6, 4))})
    assert several.platforms == PLATFORMS
    assert "stablehlo.convolution" in several.mlir_module()
    cpu, _ = lower_layer(layer, {"x": TensorSpec((1, 6, 6, 4))}, platforms=("cpu",))
    assert "stablehlo.convolution" not in cpu.mlir_module()  # depthwise is multiply-adds there
    other, _ = lower_layer(layer, {"x": TensorSpec((1, 6, 6, 4))}, platforms=("cuda",))
    assert other.platforms == ("cuda",) and "stablehlo.convolution" in other.mlir_module()


def test_bfloat16_is_another_program_over_the_same_weights():
    layer = nn.Linear(64, 64)
    programs = {}
    for precision in ("float32", "bfloat16"):
        programs[precision], weights = lower_layer(
            layer, {"x": TensorSpec(("n", 64))}, platforms=("cpu",), precision=precision
        )
        assert {n: (w.shape, w.dtype) for n, w in weights.items()} == {
            "weight": ((64, 64), np.float32),
            "bias": ((64,), np.float32),
        }
    assert "bf16" not in programs["float32"].mlir_module()
    assert "bf16" in programs["bfloat16"].mlir_module()
    x = np.random.default_rng(0).standard_normal((2, 64)).astype(np.float32)
    full, low = (call(p, weights, x=x)["output"] for p in programs.values())
    assert low.dtype == np.float32 and 0 < np.abs(full - low).max() < 0.1
    np.testing.assert_allclose(full, np.asarray(layer.eval()(jnp.asarray(x))), rtol=1e-5, atol=1e-5)


def test_one_function_lowered_twice_is_traced_twice():
    def fn(weights, inputs):
        return {"y": linear(inputs["x"], weights["w"])}

    weights, spec = {"w": np.ones((8, 8), np.float32)}, {"x": TensorSpec((1, 8))}
    full, low = (lower_program(fn, weights, spec, ("cpu",), p) for p in ("float32", "bfloat16"))
    assert "bf16" not in full.mlir_module() and "bf16" in low.mlir_module()


def test_weights_are_arguments_and_not_part_of_the_program():
    layer = nn.Linear(512, 512)
    program, weights = lower_layer(layer, {"x": TensorSpec(("n", 512))}, platforms=("cpu",))
    assert weights["weight"].nbytes == 1 << 20
    assert len(program.serialize()) < 50_000


class Convolutions(nn.Layer):
    """Of every form that lowering.py knows."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2D(3, 8, 3, stride=2, padding=1)
        self.depthwise = nn.Conv2D(8, 8, 5, padding=2, groups=8)
        self.grouped = nn.Conv2D(8, 12, 3, padding=1, groups=4)
        self.point = nn.Conv2D(12, 6, 1)
        self.full = nn.Conv2D(6, 6, (3, 1), stride=2, padding=(1, 0))
        self.up = nn.Conv2DTranspose(6, 4, 2, stride=2)

    def forward(self, x):
        x = self.point(self.grouped(self.depthwise(self.stem(x))))
        return self.up(self.full(x))


@pytest.mark.parametrize("layer", [Convolutions(), nn.Conv2D(3, 4, 3)], ids=["several", "itself"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_kernels_are_stored_as_convolutions_read_them(layer, precision):
    x = np.random.default_rng(0).standard_normal((2, 23, 17, 3)).astype(np.float32)
    spec = {"x": TensorSpec(("n", *x.shape[1:]))}
    program, weights = lower_layer(layer, spec, platforms=("cpu",), precision=precision)
    for name, parameter in layer.named_parameters():
        kernel = len(parameter.shape) == 4 and not name.startswith("up.")
        shape = tuple(parameter.shape[axis] for axis in (2, 3, 1, 0)) if kernel else parameter.shape
        assert weights[name].shape == shape, name
    want = np.asarray(layer.eval()(jnp.asarray(x)))
    tolerance = 1e-5 if precision == "float32" else 3e-2
    np.testing.assert_allclose(call(program, weights, x=x)["output"], want, rtol=0, atol=tolerance)


def test_kernels_are_not_transposed_in_a_call():
    layer = nn.Sequential(
        nn.Conv2D(32, 48, 3, padding=1),
        nn.Conv2D(48, 48, 5, padding=2, groups=48),
        nn.Conv2D(48, 64, 1),
        nn.Conv2D(64, 32, 3, stride=2, groups=2),
    )
    program, weights = lower_layer(layer, {"x": TensorSpec((1, 16, 16, 32))}, platforms=("cpu",))
    x = {"x": np.zeros((1, 16, 16, 32), np.float32)}
    compiled = jax.jit(program.call).lower(weights, x).compile().as_text()
    assert re.search(r" (transpose|copy)\(", compiled) is None


class Minus(nn.Layer):
    def forward(self, a, b):
        return a - b

    def halves(self, a, b):
        return a[:1], b[1:]


def test_inputs_come_in_their_own_order_and_not_by_name():
    program, _ = lower_layer(Minus(), {"z": TensorSpec((2,)), "a": TensorSpec((2,))}, platforms=("cpu",))
    out = call(program, {}, z=np.full(2, 5, np.float32), a=np.full(2, 3, np.float32))
    np.testing.assert_array_equal(out["output"], [2, 2])


def test_before_after_and_another_method():
    program, _ = lower_layer(
        Minus(),
        {"x": TensorSpec((2,), "int32")},
        before=lambda i: (i["x"].astype(jnp.float32), i["x"] * 2),
        after=lambda out: {"first": out[0], "last": out[1]},
        platforms=("cpu",),
        method="halves",
    )
    out = call(program, {}, x=np.array([1, 7], np.int32))
    assert out["first"].tolist() == [1.0] and out["last"].tolist() == [14]


def test_the_layer_keeps_its_modes():
    layer = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    layer.train()
    layer[0].eval()
    program, _ = lower_layer(layer, {"x": TensorSpec((1, 2))}, platforms=("cpu",))
    assert (layer.training, layer[0].training, layer[1].training) == (True, False, True)
    assert "rng" not in program.mlir_module()


class Branches(nn.Layer):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x


class Counts(nn.Layer):
    def forward(self, x):
        return np.asarray(x) + 1


@pytest.mark.parametrize(
    ("layer", "line"), [(Branches(), r"if x\.sum\(\) > 0:"), (Counts(), r"np\.asarray\(x\)")]
)
def test_a_question_about_a_value_names_its_line(layer, line):
    with pytest.raises(TraceError, match=rf"test_program\.py:\d+: .*{line}") as caught:
        lower_layer(layer, {"x": TensorSpec((2,))}, platforms=("cpu",))
    assert "framework.jit.cond" in str(caught.value) and "branches on shapes" in str(caught.value)


@pytest.mark.parametrize("shape", [(-1, 2), (None,), (1.5,), ("2 h",), ("*",)])
def test_sizes_that_are_none(shape):
    with pytest.raises(
        ShapeError, match=r"a number or symbolic\n  received: .*\n  allowed: 1, \"n\", \"32\*h\""
    ):
        TensorSpec(shape)


def test_an_unknown_dtype():
    with pytest.raises(
        ShapeError, match=r"unknown dtype of an input\n  received: 'float31'\n  allowed: float32"
    ):
        TensorSpec((1,), "float31")


def test_size_fits():
    sizes: dict[str, int] = {}
    assert size_fits(4, 4, sizes) and not size_fits(5, 4, sizes)
    assert size_fits(64, "32*h", sizes) and not size_fits(65, "32*h", sizes)
    assert size_fits(16, "8*h", sizes) and not size_fits(24, "8*h", sizes)  # h is 2
    assert size_fits(7, "n", sizes) and size_fits(7, "n", sizes) and not size_fits(8, "n", sizes)
    assert not size_fits(0, "m", sizes) and not size_fits(0, "2*m + 1", sizes)
    assert size_fits(5, "2*k + 1", sizes) and size_fits(6, "a*b", sizes)  # jax looks at these
    assert sizes == {"h": 2, "n": 7}


def test_a_program_does_not_name_the_exporters_folders():
    from pathlib import Path

    layer = nn.Sequential(nn.Conv2D(3, 4, 3, padding=1), nn.ReLU())
    program, _ = lower_layer(layer, {"x": TensorSpec(("n", 8, 8, 3))}, platforms=("cpu",))
    data = bytes(program.serialize())
    assert b"conv.py" in data
    for folder in (Path(__file__).parents[4], Path.home()):
        assert str(folder).encode() not in data
