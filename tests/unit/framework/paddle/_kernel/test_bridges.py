"""core_layer, wrap, and saved programs: one model in both rooms."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from framework import nn as core
from framework import paddle
from framework.core.errors import InputError
from framework.inference import Config, create_predictor
from framework.nn import functional_core
from framework.paddle.jit.spec import InputSpec


class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = paddle.nn.Conv2D(3, 4, 3)
        self.norm = paddle.nn.BatchNorm2D(4)
        self.fc = paddle.nn.Linear(4, 2)

    def forward(self, x):
        hidden = paddle.nn.functional.relu(self.norm(self.conv(x)))
        return self.fc(hidden.mean([2, 3]))


IMAGES = np.random.default_rng(0).normal(size=(2, 6, 6, 3)).astype(np.float32)
TENSOR = paddle.to_tensor(IMAGES.transpose(0, 3, 1, 2))


def test_core_layer_computes_and_learns_as_the_original():
    net = Net()
    layer = paddle.core_layer(net, channels_last=True)
    graphdef, params, buffers = functional_core.split(layer)
    assert list(params) == ["conv.weight", "conv.bias", "norm.weight", "norm.bias", "fc.weight", "fc.bias"]
    assert list(buffers) == ["norm._mean", "norm._variance"]

    def loss(params):
        out, changed = functional_core.apply(graphdef, params, buffers, jax.random.key(0), IMAGES)
        return (out**2).sum(), changed

    (value, changed), grads = jax.jit(jax.value_and_grad(loss, has_aux=True))(params)
    mine = (net(TENSOR) ** 2).sum()
    mine.backward()
    np.testing.assert_allclose(value, mine.numpy(), rtol=1e-5)
    for name, parameter in net.named_parameters():
        if name in grads:
            np.testing.assert_allclose(grads[name], parameter.grad.numpy(), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(changed["norm._mean"], net.norm._mean.numpy(), rtol=1e-5, atol=1e-7)
    functional_core.update(layer, {**params, "fc.bias": params["fc.bias"] + 1}, changed)
    assert layer.write_back() is net
    assert net.fc.bias.numpy().tolist() == [1, 1]


class CoreNet(core.Layer):
    def __init__(self):
        super().__init__()
        self.conv = core.Conv2D(3, 4, 3)
        self.norm = core.BatchNorm2D(4)

    def forward(self, x):
        return core.functional.relu(self.norm(self.conv(x)))


def test_wrap_is_one_operation_with_gradients_and_buffers():
    layer = CoreNet()
    graphdef, params, buffers = functional_core.split(layer)
    net = paddle.wrap(layer)
    out = net(TENSOR)
    expected, changed = functional_core.apply(graphdef, params, buffers, jax.random.key(0), IMAGES)
    np.testing.assert_allclose(out.numpy(), np.asarray(expected).transpose(0, 3, 1, 2), rtol=1e-5, atol=1e-6)
    statistics = {n: t for n, t in net.named_buffers()}
    for name, value in changed.items():
        np.testing.assert_allclose(statistics[name].numpy(), value, rtol=1e-5)
    optimizer = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    before = float(net(TENSOR).sum())
    net(TENSOR).sum().backward()
    optimizer.step()
    assert float(net(TENSOR).sum()) < before
    static = paddle.jit.to_static(lambda x: net(x).sum())
    np.testing.assert_allclose(float(static(TENSOR)), float(net(TENSOR).sum()), rtol=1e-5)


def test_a_wrapped_layer_is_in_the_mode_of_the_model_that_holds_it():
    model = paddle.nn.Sequential(paddle.wrap(core.Dropout(0.5)))
    ones = paddle.ones([4, 16])
    model.eval()
    np.testing.assert_array_equal(model(ones).numpy(), 1)
    model.train()
    assert set(np.unique(model(ones).numpy())) == {0, 2}


def test_saved_layer_runs_everywhere_and_can_be_trained(tmp_path):
    net, folder = Net(), tmp_path / "saved" / "net"
    with pytest.raises(InputError, match="shapes"):
        paddle.jit.save(net, folder)
    paddle.jit.save(net, folder, input_spec=[InputSpec([None, 3, 6, 6], name="image")])
    assert net.training
    net.eval()
    expected = net(TENSOR).numpy()
    loaded = paddle.jit.load(folder)
    loaded.eval()
    np.testing.assert_allclose(loaded(TENSOR).numpy(), expected, rtol=1e-5, atol=1e-6)
    assert set(loaded.state_dict()) == set(net.state_dict())
    predictor = create_predictor(Config(f"{folder}.pdmodel", f"{folder}.pdiparams"))
    (found,) = predictor.run([TENSOR.numpy()])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    loaded.train()
    loaded(TENSOR).sum().backward()
    net(TENSOR).sum().backward()
    gradients = {p.name: p.grad.numpy() for p in loaded.parameters()}
    np.testing.assert_allclose(gradients["fc.weight"], net.fc.weight.grad.numpy(), rtol=1e-4, atol=1e-6)


class Pyramid(paddle.nn.Layer):
    """Features of two strides that are added: their sizes agree for even sizes alone, as in PaddleOCR's detector."""

    def __init__(self):
        super().__init__()
        self.first = paddle.nn.Conv2D(3, 2, 3, stride=2, padding=1)
        self.second = paddle.nn.Conv2D(2, 2, 3, stride=2, padding=1)

    def forward(self, x):
        first = self.first(x)
        return first + paddle.nn.functional.interpolate(self.second(first), scale_factor=2)


def test_a_network_that_joins_strides_is_saved_for_free_sizes(tmp_path, caplog):
    net = Pyramid()
    paddle.jit.save(net, tmp_path / "net", input_spec=[InputSpec([None, 3, None, None], name="image")])
    assert "Pyramid: saved for free sizes that are multiples of 32" in caplog.text
    loaded = paddle.jit.load(tmp_path / "net")
    x = paddle.randn([2, 3, 32, 64])
    np.testing.assert_allclose(loaded(x).numpy(), net(x).numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"32\*d0_2"):
        loaded(paddle.randn([1, 3, 30, 64]))


class Columns(paddle.nn.Layer):
    """A recurrent layer over the columns of an image, which is as long as two strides leave them."""

    def __init__(self):
        super().__init__()
        self.conv = paddle.nn.Conv2D(3, 2, 3, stride=(4, 2), padding=1)
        self.pool = paddle.nn.MaxPool2D(2, 2)
        self.rnn = paddle.nn.LSTM(2, 3)

    def forward(self, x):
        return self.rnn(self.pool(self.conv(x)).squeeze(2).transpose([0, 2, 1]))[0]


def test_a_recurrent_network_is_saved_for_free_widths_without_a_gradient_that_jax_lacks(tmp_path, caplog):
    net = Columns()
    paddle.jit.save(net, tmp_path / "net", input_spec=[InputSpec([None, 3, 8, None], name="image")])
    assert "Columns: saved for free sizes that are 32 or more" in caplog.text
    assert "saved without its gradient" in caplog.text
    x = paddle.randn([2, 3, 8, 37])
    expected = net(x).numpy()
    out = paddle.jit.load(tmp_path / "net")(x)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-6)
    assert out.stop_gradient
    (found,) = create_predictor(Config(f"{tmp_path}/net.pdmodel", f"{tmp_path}/net.pdiparams")).run(
        [x.numpy()]
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
