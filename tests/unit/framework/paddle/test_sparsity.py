"""paddle.incubate.asp: pruned weights stay zero through training, in both modes."""

import numpy as np
import pytest

from framework import paddle
from framework.paddle.incubate import asp


@pytest.fixture
def static_mode():
    paddle.enable_static()
    yield
    paddle.disable_static()


def is_pruned(parameter):
    return asp.check_sparsity(parameter.numpy().T, n=2, m=4)


def test_steps_keep_what_was_pruned():
    net = paddle.nn.Sequential(paddle.nn.Linear(8, 8), paddle.nn.Linear(8, 3))
    excluded = net[1].full_name()
    asp.set_excluded_layers([excluded])
    optimizer = asp.decorate(paddle.optimizer.SGD(0.1, parameters=net.parameters()))
    with pytest.raises(AssertionError, match="should be one of"):
        asp.prune_model(net, mask_algo="mask_3d")
    masks = asp.prune_model(net)
    before = net[0].weight.numpy()
    net(paddle.ones([2, 8])).sum().backward()
    optimizer.step()
    assert is_pruned(net[0].weight)
    assert (net[0].weight.numpy() != before).any()
    assert not is_pruned(net[1].weight)
    assert net[0].weight.name in masks
    state = optimizer.state_dict()
    assert f"{net[0].weight.name}.asp_mask" in state
    optimizer.set_state_dict(state)
    asp.reset_excluded_layers()


def test_masks_need_a_decorated_optimizer():
    with pytest.raises(AssertionError, match="decorate"):
        asp.prune_model(paddle.nn.Linear(4, 4))
    with pytest.raises(TypeError, match=r"paddle\.nn\.Layer or paddle\.static\.Program"):
        asp.prune_model(3)  # type: ignore[arg-type]


def test_a_pruning_of_the_users():
    class Own(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.weight = self.create_parameter([2, 2])

    asp.add_supported_layer(Own, lambda weight, m, n, algorithm, name: (weight * 0, weight * 0))
    layer = Own()
    asp.prune_model(layer, with_mask=False)
    assert (layer.weight.numpy() == 0).all()


def test_static_programs(static_mode):
    program = paddle.static.Program()
    with paddle.static.program_guard(program):
        x = paddle.static.data("x", [4, 8])
        loss = paddle.static.nn.fc(x, 8).mean()
        asp.decorate(paddle.optimizer.SGD(0.1)).minimize(loss)
    asp.prune_model(program)
    weight = next(p for p in program.all_parameters() if p.ndim == 2 and "asp_mask" not in p.name)
    paddle.static.Executor().run(program, feed={"x": np.ones((4, 8), "float32")})
    assert is_pruned(weight)
    found = paddle.static.global_scope().find_var(weight.name)
    assert found is not None
    np.testing.assert_array_equal(np.asarray(found.get_tensor()), weight.numpy())


def test_a_layer_is_pruned_in_the_program_that_has_it(static_mode):
    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()):
        layer = paddle.nn.Linear(4, 4)
        loss = layer(paddle.static.data("x", [2, 4])).sum()
        asp.decorate(paddle.optimizer.SGD(0.1)).minimize(loss)
    asp.prune_model(layer)
    paddle.static.Executor().run(program, {"x": np.ones((2, 4), np.float32)})
    assert asp.calculate_density(layer.weight.numpy()) == 0.5


def test_names_of_tensors_of_four_axes():
    array = np.random.default_rng(0).normal(size=(3, 3, 8, 8)).astype("float32")
    mask = asp.create_mask(array)
    assert (mask.shape, mask.dtype) == (array.shape, array.dtype)
    assert asp.check_sparsity(mask)
    with pytest.raises(ValueError, match="1 to 4"):
        asp.create_mask(np.zeros((1,) * 5))
