"""paddle.quantization: values, names and printed models are those of Paddle 2.6.2 on CPU."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from framework import paddle
from framework.paddle.nn.quant.format import LinearDequanter, LinearQuanter, LinearQuanterDequanter
from framework.paddle.quantization.observers import AbsmaxObserver, GroupWiseWeightObserver
from framework.paddle.quantization.quanters import FakeQuanterWithAbsMaxObserver

nn, quantization = paddle.nn, paddle.quantization
LOSSES = [0.28000614, 0.56149358, 1.95202708, 2.38860226]  # of Paddle 2.6.2
DETAILS = """Net(
  (conv2): Conv2D(), activation: None
weight: FakeQuanterWithAbsMaxObserver(name=None,moving_rate=0.9,bit_length=8,dtype=float32)
)"""  # too: layers that lie in others without a config are not shown


class Net(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2D(3, 8, 3, padding=1)
        self.act = nn.ReLU()
        self.conv2 = nn.Conv2D(8, 8, 3, stride=2, padding=1, padding_mode="reflect", groups=2)
        self.pool = nn.AvgPool2D(2)
        self.stub = nn.quant.Stub()
        self.fc = nn.Sequential(nn.Linear(8 * 16, 16), nn.Linear(16, 4))

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = self.pool(self.conv2(self.act(self.conv(x))))
        return self.fc(self.stub(paddle.flatten(x, 1)))


def net() -> Net:
    made, draw = Net(), np.random.RandomState(0)
    for parameter in made.parameters():
        parameter.set_value(draw.randn(*parameter.shape).astype("float32") * 0.2)
    return made


def images(seed: int) -> paddle.Tensor:
    return paddle.to_tensor(np.random.RandomState(seed).randn(4, 3, 16, 16).astype("float32"))


def both(factory: object) -> quantization.QuantConfig:
    return quantization.QuantConfig(activation=factory, weight=factory)  # type: ignore[arg-type]


def test_training_gives_the_losses_of_paddle() -> None:
    qat = quantization.QAT(both(FakeQuanterWithAbsMaxObserver(moving_rate=0.9)))
    model = qat.quantize(net())
    optimizer = paddle.optimizer.SGD(learning_rate=0.05, parameters=model.parameters())
    losses = []
    for seed in (1, 2, 3, 4):
        loss = (model(images(seed)) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    np.testing.assert_allclose(losses, LOSSES, rtol=1e-5)
    model.eval()
    simulated = model(images(1)).numpy()
    converted = qat.convert(model)
    np.testing.assert_allclose(converted(images(1)).numpy(), simulated, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        qat.convert(model, remain_weight=True)(images(1)).numpy(), simulated, atol=1e-6
    )
    weight = converted.state_dict()["conv.weight"].numpy()
    assert (weight == weight.round()).all() and np.abs(weight).max() <= 127
    assert [name for name in converted.state_dict() if name.startswith("fc.0.")] == [
        *("fc.0.weight", "fc.0.bias", "fc.0.weight_quanter._dequanter._scales"),
        *("fc.0.activation_quanter._quanter._scales", "fc.0.activation_quanter._dequanter._scales"),
    ]


def test_the_model_prints_as_in_paddle() -> None:
    text = str(quantization.QAT(both(FakeQuanterWithAbsMaxObserver())).quantize(net()))
    assert "QuantedConv2D" in text and "(weight_quanter): FakeQuanterWithAbsMaxObserverLayer()" in text
    assert "(_observed): ReLU()" in text and "QuanterStub" in text
    factory = FakeQuanterWithAbsMaxObserver()
    assert (
        str(factory) == "FakeQuanterWithAbsMaxObserver(name=None,moving_rate=0.9,bit_length=8,dtype=float32)"
    )
    assert str(both(factory)).startswith(f"Global config:\nactivation: {factory}\nweight: {factory}")


def test_observers_measure_and_the_converted_model_is_close(tmp_path: Path) -> None:
    model = net()
    model.eval()
    ptq = quantization.PTQ(both(AbsmaxObserver(quant_bits=8)))
    observed = ptq.quantize(model)
    plain = model(images(2)).numpy()
    np.testing.assert_allclose(
        observed(images(2)).numpy(), plain, rtol=1e-5, atol=1e-6
    )  # it looks, nothing more
    converted = ptq.convert(observed)
    assert 0 < np.abs(converted(images(2)).numpy() - plain).max() < 0.05 * np.abs(plain).max()
    paddle.jit.save(converted, str(tmp_path / "int8"), [paddle.static.InputSpec([4, 3, 16, 16])])
    loaded = paddle.jit.load(str(tmp_path / "int8"))
    np.testing.assert_allclose(loaded(images(2)).numpy(), converted(images(2)).numpy(), rtol=1e-4, atol=1e-5)
    with pytest.raises(AssertionError, match="once"):
        converted.conv._convert()


def test_modes_are_checked() -> None:
    model = net()
    with pytest.raises(AssertionError, match=r"model\.eval"):
        quantization.PTQ(both(AbsmaxObserver())).quantize(model)
    model.eval()
    with pytest.raises(AssertionError, match=r"model\.train"):
        quantization.QAT(both(AbsmaxObserver())).quantize(model)


def test_what_is_set_for_layers_names_and_types_counts() -> None:
    quanter, model = FakeQuanterWithAbsMaxObserver(), net()
    config = quantization.QuantConfig(None, None)
    config.add_type_config(nn.Linear, activation=quanter)
    config.add_layer_config(model.conv2, weight=quanter)
    quantised = quantization.QAT(config).quantize(model)
    assert isinstance(quantised.conv, nn.Conv2D) and isinstance(model.conv2, nn.Conv2D)
    assert quantised.conv2.activation_quanter is None and quantised.conv2.weight_quanter is not None
    assert quantised.fc[0].weight_quanter is None and quantised.fc[1].activation_quanter is not None
    assert config.details() == str(config)  # not of the copy that the model was prepared with
    assert "Layer type config" in str(config) and f"'{model.conv2.full_name()}'" in str(config)
    config._specify(model)
    assert config.details() == DETAILS
    with pytest.raises(TypeError, match="add_type_config"):
        config.add_type_config(int)  # type: ignore[arg-type]


def test_a_quanter_of_ones_own() -> None:
    @quantization.quanter("Halved")
    class HalvedLayer(quantization.BaseQuanter):
        def __init__(self, layer: nn.Layer, factor: float = 0.5) -> None:
            super().__init__()
            self.factor = factor

        def forward(self, input: paddle.Tensor) -> paddle.Tensor:
            return input * self.factor

        def scales(self) -> None: ...
        def zero_points(self) -> None: ...
        def quant_axis(self) -> int:
            return -1

        def bit_length(self) -> int:
            return 8

    factory = sys.modules[__name__].Halved(factor=0.25)  # type: ignore[attr-defined]
    assert str(factory) == "Halved(factor=0.25)"
    model = nn.Sequential(nn.Linear(2, 2, bias_attr=False))
    quantised = quantization.QAT(both(factory)).quantize(model)
    x = paddle.ones([1, 2])
    np.testing.assert_allclose(quantised(x).numpy(), model(x).numpy() / 16, rtol=1e-6)
    assert (
        quantization.QAT(both(factory)).convert(quantised)[0].weight_quanter.factor == 0.25
    )  # it has no scales


def test_integers_round_as_in_paddle() -> None:
    halves = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 127, -127, 300]
    quanter = LinearQuanter(paddle.to_tensor([127.0]))
    assert quanter(paddle.to_tensor(halves)).numpy().tolist() == [0, 2, 2, 0, -2, -2, 127, -127, 127]
    assert quanter(paddle.to_tensor([-127.6, -300.0])).numpy().tolist() == [-128, -128]
    of_four = LinearQuanter(paddle.to_tensor([2.4]), bit_length=4)
    assert of_four(paddle.to_tensor([-9.0, -1.0, 2.5])).numpy().tolist() == [-8, -3, 7]
    fake = FakeQuanterWithAbsMaxObserver()._instance(nn.Linear(1, 1))
    fake.eval()
    fake._scale.set_value(np.array([127.0], np.float32))
    x = paddle.to_tensor(halves, stop_gradient=False)
    y = fake(x)
    y.sum().backward()
    assert y.numpy().tolist() == [1, 2, 3, -1, -2, -3, 127, -127, 127]
    assert x.grad is not None and x.grad.numpy().tolist() == [1] * 9


def test_scales_of_channels_and_of_groups() -> None:
    weight = paddle.to_tensor(np.random.RandomState(9).randn(256, 8).astype("float32"))
    observer = GroupWiseWeightObserver(8, 64)._instance(nn.Linear(1, 1))
    observer(weight)
    assert observer.scales().shape == [4, 8]
    again = LinearQuanterDequanter.from_quanter(observer)(weight)
    assert np.abs(again.numpy() - weight.numpy()).max() <= np.abs(weight.numpy()).max() / 254 * 1.001
    scales = weight.abs().max(axis=0)
    integers = LinearQuanter(scales, None, 1)(weight)
    assert np.abs(integers.numpy()).max(0).tolist() == [127] * 8
    back = LinearDequanter(scales, None, 1)(integers).numpy()
    assert (np.abs(back - weight.numpy()) <= scales.numpy() / 254 * 1.001).all()
    with pytest.raises(AssertionError, match="group_size"):
        observer(paddle.ones([65, 2]))


def test_operations_as_layers() -> None:
    x = paddle.to_tensor([[1.0, 2.0]])
    assert nn.quant.add()(x, x).numpy().tolist() == [[2, 4]]
    assert nn.quant.concat()([x, x], axis=0).shape == [2, 2]


def test_a_layer_may_have_attributes_of_any_name() -> None:
    class Own(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            for name in ("_state", "_cast", "_named", "_forget"):
                setattr(self, name, self.create_parameter([1]))

    assert list(Own().astype("float64").state_dict()) == ["_state", "_cast", "_named", "_forget"]


def test_layers_are_mapped_to_any_class() -> None:
    class Quantised:
        pass

    config = quantization.QuantConfig(activation=None, weight=None)
    config.add_qat_layer_mapping(nn.Conv2D, Quantised)
    assert config.qat_layer_mappings[nn.Conv2D] is Quantised
    for pair in ((Quantised, nn.Conv2D), (nn.Conv2D, 3)):
        with pytest.raises(AssertionError, match="must be a subclass of"):
            config.add_qat_layer_mapping(*pair)
