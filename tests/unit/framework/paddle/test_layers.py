"""Layer, containers, initializers, clipping and nn.utils of framework.paddle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import ShapeError

nn, init = paddle.nn, paddle.nn.initializer


@pytest.fixture(autouse=True)
def _names() -> Any:
    with paddle.utils.unique_name.guard():
        yield


def _ones(*shape: int) -> paddle.Tensor:
    return paddle.Tensor(np.ones(shape, np.float32))


def test_state_keys_follow_containers() -> None:
    class Net(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.seq = nn.Sequential(("first", nn.Linear(2, 3)), ("act", nn.ReLU()))
            self.lst = nn.LayerList([nn.Linear(3, 3, bias_attr=False)])
            self.named = nn.LayerDict({"head": nn.Linear(3, 1)})
            self.params = nn.ParameterList([paddle.create_parameter([2], "float32")])

    net = Net()
    assert list(net.state_dict()) == [
        *("seq.first.weight", "seq.first.bias", "lst.0.weight"),
        *("named.head.weight", "named.head.bias", "params.0"),
    ]
    assert [p.name for p in net.parameters()][:2] == ["linear_0.w_0", "linear_0.b_0"]
    assert net.params[0].name == "create_parameter_0.w_0"


def test_sequential_is_indexed_by_number_name_and_slice() -> None:
    a, b, c = nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)
    model = nn.Sequential(a, b, c)
    assert model[0] is a and model[-1] is c and model["1"] is b and len(model[:2]) == 2
    model[1] = nn.Identity()
    del model[0]
    assert [type(layer).__name__ for layer in model.children()] == ["Identity", "Linear"]
    with pytest.raises(IndexError):
        model[5]


def test_layer_list_inserts_deletes_and_renumbers() -> None:
    layers = nn.LayerList([nn.Linear(1, n) for n in (1, 2, 3)])
    layers.insert(1, nn.Linear(1, 9))
    layers.insert(-1, nn.Linear(1, 8))
    del layers[0]
    assert [layer.weight.shape[1] for layer in layers] == [9, 2, 8, 3]
    assert list(layers._sub_layers) == ["0", "1", "2", "3"]
    assert [layer.weight.shape[1] for layer in layers[1:3]] == [2, 8]
    assert len(layers.extend([nn.ReLU()]).append(nn.ReLU())) == 6
    with pytest.raises(IndexError, match="out of range"):
        layers[9]


def test_layer_dict_is_a_dict() -> None:
    layers = nn.LayerDict([("a", nn.ReLU()), ("b", nn.Tanh())])
    layers["c"] = nn.Sigmoid()
    assert list(layers) == ["a", "b", "c"] and "b" in layers and len(layers) == 3
    assert isinstance(layers.pop("a"), nn.ReLU) and list(layers.keys()) == ["b", "c"]
    layers.clear()
    assert not list(layers.items())
    with pytest.raises(ValueError, match="pairs"):
        layers.update([("a",)])


@pytest.mark.parametrize(
    ("initializer", "mean", "std", "bound"),
    [
        (init.Normal(1.0, 2.0), 1.0, 2.0, math.inf),
        (init.TruncatedNormal(1.0, 2.0), 1.0, 2.0 * 0.8796, 5.0),
        (init.Uniform(-2.0, 4.0), 1.0, 6 / math.sqrt(12), 4.0),
        (init.XavierUniform(), 0.0, math.sqrt(2 / 500), math.sqrt(6 / 500)),
        (init.XavierNormal(fan_in=100, fan_out=100), 0.0, 0.1, math.inf),
        (init.KaimingNormal(), 0.0, math.sqrt(2 / 200), math.inf),
        (init.KaimingUniform(fan_in=50), 0.0, math.sqrt(2 / 50), math.sqrt(6 / 50)),
        (init.Constant(3), 3.0, 0.0, 3.0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_initializers_have_their_moments(initializer: Any, mean: float, std: float, bound: float) -> None:
    paddle.seed(0)
    values = paddle.create_parameter([200, 300], "float32", default_initializer=initializer).numpy()
    assert values.dtype == np.float32
    assert values.mean() == pytest.approx(mean, abs=0.02 * max(std, 0.1) + 1e-6)
    assert values.std() == pytest.approx(std, rel=0.02, abs=1e-6)
    assert np.abs(values).max() <= bound + 1e-6


def test_structured_initializers() -> None:
    square = paddle.create_parameter([4, 6], "float64", default_initializer=init.Orthogonal(2.0)).numpy()
    np.testing.assert_allclose(square @ square.T, 4 * np.eye(4), atol=1e-12)
    assert (
        paddle.create_parameter([2], "float64", default_initializer=init.Constant(0.1)).numpy() == 0.1
    ).all()
    weight = paddle.create_parameter([2, 2, 3], "float32", default_initializer=init.Dirac()).numpy()
    np.testing.assert_array_equal(weight[:, :, 1], np.eye(2))
    taken = paddle.create_parameter([9], "float32", default_initializer=init.Assign([1, 2])).numpy()
    np.testing.assert_array_equal(taken, [1, 2])
    for initializer, shape in (
        (init.Orthogonal(), [3]),
        (init.Dirac(), [3, 3]),
        (init.Bilinear(), [1, 1, 2, 3]),
    ):
        with pytest.raises((ShapeError, AssertionError)) as caught:
            paddle.create_parameter(shape, "float32", default_initializer=initializer)
        assert isinstance(caught.value, AssertionError) == (len(shape) < 4)  # as Paddle asserts
    with pytest.raises(ZeroDivisionError):
        paddle.create_parameter([2], "float32", default_initializer=init.KaimingUniform(0))


def test_the_global_initializer_is_for_what_says_nothing() -> None:
    init.set_global_initializer(init.Constant(2.0), init.Constant(5.0))
    try:
        one = nn.Linear(1, 1)
        other = nn.Linear(1, 1, weight_attr=init.Constant(7.0), bias_attr=False)
    finally:
        init.set_global_initializer(None)
    assert (one.weight.item(), one.bias.item(), other.weight.item(), other.bias) == (2, 5, 7, None)


def test_lazy_parameters_begin_when_they_are_told() -> None:
    with paddle.LazyGuard():
        layer = nn.Linear(2, 2, weight_attr=init.Constant(3.0))
    assert layer.weight.shape == [2, 2]
    for parameter in layer.parameters():
        parameter.initialize()
    np.testing.assert_array_equal(layer(_ones(1, 2)).numpy(), [[6.0, 6.0]])
    with paddle.LazyGuard():
        other = nn.Linear(2, 2)
    other.set_state_dict(layer.state_dict())
    other.weight.initialize()
    np.testing.assert_array_equal(other.weight.numpy(), layer.weight.numpy())


def test_a_name_is_given_once() -> None:
    nn.Linear(1, 1, weight_attr=paddle.ParamAttr(name="mine"))
    with pytest.raises(ValueError, match="mine"):
        nn.Linear(1, 1, weight_attr=paddle.ParamAttr(name="mine"))


def _pairs() -> list[tuple[Any, Any]]:
    values = ([3.0, 4.0], [0.0, -12.0], [100.0])
    parameters = [paddle.create_parameter([len(v)], "float32") for v in values]
    parameters[2].need_clip = False
    return [(p, paddle.to_tensor(v)) for p, v in zip(parameters, values, strict=True)]


@pytest.mark.parametrize(
    ("clip", "expected"),
    [
        (nn.ClipGradByGlobalNorm(6.5), [[1.5, 2.0], [0.0, -6.0], [100.0]]),
        (nn.ClipGradByNorm(5.0), [[3.0, 4.0], [0.0, -5.0], [100.0]]),
        (nn.ClipGradByValue(3.5), [[3.0, 3.5], [0.0, -3.5], [100.0]]),
        (nn.ClipGradByValue(max=2.0, min=-1.0), [[2.0, 2.0], [0.0, -1.0], [100.0]]),
    ],
)
def test_gradients_are_clipped(clip: Any, expected: list[list[float]]) -> None:
    pairs = [*_pairs(), (paddle.create_parameter([1], "float32"), None)]
    results = clip(pairs)
    assert len(results) == 3  # Paddle leaves out what has no gradient
    for (_, grad), values in zip(results, expected, strict=False):
        np.testing.assert_allclose(grad.numpy(), values, rtol=1e-6)


def test_clipping_by_hand_returns_the_norm() -> None:
    pairs = _pairs()[:2]
    for parameter, grad in pairs:
        parameter.grad = grad
    parameters = [p for p, _ in pairs]
    assert paddle.nn.utils.clip_grad_norm_(parameters, 6.5).item() == pytest.approx(13.0)
    np.testing.assert_allclose(parameters[1].grad.numpy(), [0.0, -6.0], rtol=1e-5)
    assert paddle.nn.utils.clip_grad_norm_(parameters, 1e9, float("inf")).item() == pytest.approx(6, rel=1e-5)
    paddle.nn.utils.clip_grad_value_(parameters, 1.0)
    np.testing.assert_allclose(parameters[1].grad.numpy(), [0.0, -1.0])


def test_parameters_as_one_vector() -> None:
    layer, other = nn.Linear(2, 3), nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    assert vector.shape == [9]
    nn.utils.vector_to_parameters(vector, other.parameters())
    np.testing.assert_array_equal(other.weight.numpy(), layer.weight.numpy())
    with pytest.raises(ShapeError):
        nn.utils.vector_to_parameters(_ones(4), other.parameters())


@pytest.mark.parametrize(("dim", "sizes"), [(0, [2]), (1, [3]), (None, [])])
def test_weight_norm_keeps_the_weight_and_its_gradient(dim: int | None, sizes: list[int]) -> None:
    layer, x = nn.Linear(2, 3), _ones(4, 2)
    before = layer.weight.numpy()
    layer(x).backward()
    plain = layer.weight.grad.numpy()
    nn.utils.weight_norm(layer, dim=dim)
    assert list(layer.state_dict()) == ["bias", "weight_v", "weight_g"] and layer.weight_g.shape == sizes
    layer(x).backward()
    axes = tuple(a for a in range(2) if a != dim)
    norm = np.sqrt((before**2).sum(axes, keepdims=True))
    by_hand = (plain * before / norm).sum(axes)
    np.testing.assert_allclose(layer.weight_g.grad.numpy(), by_hand, rtol=1e-5)
    nn.utils.remove_weight_norm(layer)
    np.testing.assert_allclose(layer.weight.numpy(), before, rtol=1e-6)


@pytest.mark.parametrize("sizes", [[1, 2], [1, 2, 1, 1]])
def test_batch_norm_leaves_one_value_a_channel_as_it_is(sizes: list[int]) -> None:
    # Measured on Paddle 2.6.2: no statistics move, and the parameters get gradients of 0.
    layer = (nn.BatchNorm1D if len(sizes) == 2 else nn.BatchNorm2D)(2)
    x = paddle.to_tensor([1.5, -3.0], stop_gradient=False)
    (layer(x.reshape(sizes)).flatten() * paddle.to_tensor([2.0, 5.0])).sum().backward()
    assert layer(x.reshape(sizes)).flatten().tolist() == [1.5, -3.0] and x.grad.tolist() == [2.0, 5.0]
    assert layer.weight.grad.tolist() == layer.bias.grad.tolist() == [0.0, 0.0]
    assert layer._mean.tolist() == [0.0, 0.0] and layer._variance.tolist() == [1.0, 1.0]


def test_parameters_of_weight_norm_have_the_layers_next_names() -> None:
    # Measured on Paddle 2.6.2; optimizer states are keyed by these names.
    with paddle.utils.unique_name.guard():
        layer = nn.utils.weight_norm(nn.Conv1D(2, 3, 3, weight_attr=paddle.ParamAttr(learning_rate=0.1)))
        assert [p.name for p in layer.parameters()] == ["conv1d_0.b_0", "conv1d_0.w_1", "conv1d_0.w_2"]
        assert layer.weight_v.optimize_attr == {"learning_rate": 1.0}
        nn.utils.remove_weight_norm(layer)
        assert [p.name for p in layer.parameters()] == ["conv1d_0.b_0", "conv1d_0.w_3"]


def test_spectral_norm_reaches_the_largest_singular_value() -> None:
    paddle.seed(1)
    layer = nn.utils.spectral_norm(nn.Linear(5, 4), n_power_iterations=50)
    layer(_ones(1, 5))
    assert np.linalg.svd(layer.weight.numpy())[1][0] == pytest.approx(1.0, abs=1e-4)
    layer.eval()
    u = layer.weight_u.numpy()
    layer(_ones(1, 5))
    np.testing.assert_array_equal(layer.weight_u.numpy(), u)
