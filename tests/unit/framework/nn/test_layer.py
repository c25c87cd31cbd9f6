from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core import rng
from framework.core.errors import ShapeError, TraceError, WeightError
from framework.nn import initializer as I


class Block(nn.Layer):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1D(3)
        self.scale = self.create_parameter((3,), default_initializer=I.Constant(2.0))
        self.linear = nn.Linear(3, 2)
        self.register_buffer("steps", np.zeros((), np.int64))
        self.extra = jnp.ones(2)

    def forward(self, x):
        return self.linear(self.norm(x) * self.scale)


# -- registration -------------------------------------------------------------------------------------------------


def test_what_is_assigned_is_registered_by_kind():
    block = Block()
    assert list(block._parameters) == ["scale"]
    assert list(block._sub_layers) == ["norm", "linear"]
    assert list(block._buffers) == ["steps", "extra"]
    assert isinstance(block.scale, jax.Array) and block.scale.tolist() == [2.0, 2.0, 2.0]


def test_a_plain_array_is_a_buffer_that_is_not_saved():
    block = Block()
    assert "extra" not in block.state_dict() and "steps" in block.state_dict()
    assert "extra" in dict(block.named_buffers())
    assert block.steps.dtype == jnp.int32  # int64 is narrowed


def test_assigning_an_array_to_a_parameter_sets_its_value():
    block = Block()
    block.scale = np.arange(3, dtype=np.float64)
    assert block.scale.dtype == jnp.float32 and block.scale.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(ShapeError, match=r"a parameter keeps its shape(.|\n)*\(2,\)(.|\n)*\(3,\)"):
        block.scale = np.zeros(2)


def test_reassigning_a_name_replaces_what_it_was():
    block = Block()
    block.linear = None
    assert block.linear is None and list(block._sub_layers) == ["norm"]
    block.linear = nn.Linear(3, 4)
    assert block.linear.weight.shape == (3, 4) and "linear" not in block.__dict__


def test_deleting_unregisters():
    block = Block()
    del block.scale
    assert "scale" not in block.state_dict()
    with pytest.raises(AttributeError):
        _ = block.scale
    with pytest.raises(AttributeError):
        del block.scale


def test_an_unknown_attribute_names_the_nearest():
    with pytest.raises(AttributeError, match=r"Block has no attribute 'linaer'; did you mean 'linear'\?"):
        _ = Block().linaer
    with pytest.raises(AttributeError, match=r"^Block has no attribute 'qqq'$"):
        _ = Block().qqq


def test_a_list_of_layers_must_be_a_layer_list():
    class Wrong(nn.Layer):
        def __init__(self):
            super().__init__()
            self.blocks = [nn.Linear(1, 1)]

    with pytest.raises(
        TypeError, match=r"Wrong.blocks: a list of layers is not registered; wrap it in nn.LayerList"
    ):
        Wrong()


def test_forgetting_super_init_is_an_error():
    class Wrong(nn.Layer):
        def __init__(self):
            self.linear = nn.Linear(1, 1)

    with pytest.raises(
        TypeError, match=r"Wrong.__init__ must call super\(\).__init__\(\) before it sets 'linear'"
    ):
        Wrong()


def test_a_layer_without_forward_says_so():
    class Empty(nn.Layer):
        pass

    with pytest.raises(NotImplementedError, match="Empty defines no forward"):
        Empty()()


def test_attr_false_makes_no_parameter():
    layer = nn.Linear(2, 2, bias_attr=False)
    assert layer.bias is None and list(layer.state_dict()) == ["weight"]


@pytest.mark.parametrize(
    ("attr", "expected"),
    [
        (None, nn.ParamAttr()),
        (True, nn.ParamAttr()),
        (False, None),
        ("w0", nn.ParamAttr(name="w0")),
        (I.Constant(1.0), nn.ParamAttr(initializer=I.Constant(1.0))),
        (nn.ParamAttr(learning_rate=0.1), nn.ParamAttr(learning_rate=0.1)),
    ],
)
def test_the_shorthands_of_param_attr(attr, expected):
    assert nn.ParamAttr.of(attr) == expected


def test_add_sublayer_and_add_parameter_return_what_they_add():
    layer = nn.Layer()
    linear = nn.Linear(1, 1)
    assert layer.add_sublayer("fc", linear) is linear and layer.fc is linear
    parameter = layer.create_parameter((2,), is_bias=True)
    assert layer.add_parameter("b", parameter) is parameter and layer.b.tolist() == [0.0, 0.0]
    assert repr(parameter) == "Parameter(shape=(2,), dtype=float32, trainable=True)" and parameter.size == 2


# -- walking ------------------------------------------------------------------------------------------------------


def test_walking_follows_the_order_of_registration():
    model = nn.Sequential(Block(), nn.ReLU())
    assert [name for name, _ in model.named_sublayers()] == ["0", "0.norm", "0.linear", "1"]
    assert next(name for name, _ in model.named_sublayers(include_self=True)) == ""
    assert [type(layer).__name__ for layer in model.children()] == ["Block", "ReLU"]
    assert [name for name, _ in model.named_children()] == ["0", "1"]
    assert next(name for name, _ in model.named_parameters(prefix="m")) == "m.0.scale"
    assert len(model.sublayers()) == 4 and len(model.parameters()) == 5 and len(model.buffers()) == 4


def test_apply_visits_children_before_their_parent():
    seen = []
    model = nn.Sequential(nn.Sequential(nn.ReLU()))
    assert model.apply(lambda layer: seen.append(type(layer).__name__)) is model
    assert seen == ["ReLU", "Sequential", "Sequential"]


def test_train_and_eval_reach_every_layer():
    model = nn.Sequential(Block())
    assert all(layer.training for layer in model.sublayers(include_self=True))
    assert model.eval() is model
    assert not any(layer.training for layer in model.sublayers(include_self=True))
    model.train()
    assert model[0].norm.training


def test_repr_shows_the_tree():
    assert repr(nn.Sequential(nn.Linear(2, 1), nn.ReLU())) == (
        "Sequential(\n  (0): Linear(weight=(2, 1), bias=(1,))\n  (1): ReLU()\n)"
    )


# -- state --------------------------------------------------------------------------------------------------------


def test_the_state_dict_has_paddles_order():
    assert list(Block().state_dict()) == [
        "scale", "steps", "norm.weight", "norm.bias", "norm._mean", "norm._variance", "linear.weight", "linear.bias",
    ]  # fmt: skip


def test_state_shapes_make_no_values():
    block = Block()
    assert block.state_shapes()["linear.weight"] == (3, 2)
    assert block.linear._parameters["weight"]._value is None


def test_a_state_dict_round_trip_restores_values():
    one, two = Block(), Block()
    state = {name: np.asarray(value) + 1 for name, value in one.state_dict().items()}
    assert two.set_state_dict(state) == ([], [])
    for name, value in two.state_dict().items():
        np.testing.assert_array_equal(value, state[name])
    assert two.set_dict(state) == two.load_dict(state) == ([], [])


def test_one_error_lists_every_missing_unexpected_and_mismatched_key():
    block = Block()
    before = np.asarray(block.scale)
    state = {name: np.asarray(value) + 1 for name, value in block.state_dict().items()}
    del state["norm._mean"], state["linear.bias"]
    state |= {"head.weight": np.zeros(1), "linear.weight": np.zeros((2, 3))}
    with pytest.raises(WeightError) as caught:
        block.set_state_dict(state)
    text = str(caught.value)
    assert "the weights do not fit Block" in text
    assert "2 missing: norm._mean, linear.bias" in text
    assert "1 unexpected: head.weight" in text
    assert "1 mismatched: linear.weight: ours (3, 2), theirs (2, 3)" in text
    assert "strict=False" in text
    np.testing.assert_array_equal(block.scale, before)  # nothing was loaded


def test_not_strict_loads_what_fits_but_refuses_other_shapes():
    block = Block()
    missing, unexpected = block.set_state_dict({"scale": np.zeros(3), "other": np.zeros(1)}, strict=False)
    assert unexpected == ["other"] and "linear.weight" in missing and "scale" not in missing
    assert block.scale.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(WeightError, match="1 mismatched: scale"):
        block.set_state_dict({"scale": np.zeros(4)}, strict=False)


def test_long_lists_of_keys_are_cut():
    with pytest.raises(WeightError, match=r"25 unexpected: (k\d+, ){19}k\d+ …"):
        nn.Identity().set_state_dict({f"k{i}": np.zeros(1) for i in range(25)})


def test_freeze_takes_a_pattern():
    block = Block()
    assert block.freeze("^linear") == ["linear.weight", "linear.bias"]
    assert {name for name, p in block.named_parameters() if p.trainable} == {
        "scale",
        "norm.weight",
        "norm.bias",
    }
    with pytest.raises(WeightError, match=r"no parameter to freeze(.|\n)*'neck'(.|\n)*5 names"):
        block.freeze("neck")


def test_what_is_frozen_keeps_its_running_statistics_and_uses_them():
    """Only where no parameter of a normalisation is left to train; one without parameters goes by its buffers."""
    x = jnp.arange(12.0).reshape(4, 3)
    norms = [nn.BatchNorm1D(3), nn.BatchNorm1D(3), nn.BatchNorm1D(3, weight_attr=False, bias_attr=False)]
    net = nn.Sequential(*norms).train()
    for pattern in ("^0", "^1.weight", "^2"):
        net.freeze(pattern) if pattern != "^2" else net.freeze_statistics(pattern)
    held = [norm.statistics_frozen for norm in norms]
    assert held == [True, False, True]
    for norm, still in zip(norms, held):
        out = norm(x)
        assert bool((norm._mean == 0).all()) is still
        expected = norm.eval()(x) if still else (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)
        np.testing.assert_allclose(out, expected, atol=1e-5)
    net.freeze("^1.bias")  # now nothing of it is left to train
    assert norms[1].statistics_frozen


def test_a_frozen_spectral_norm_keeps_its_vectors():
    layer = nn.utils.spectral_norm(nn.Linear(3, 2)).train()
    layer.freeze()
    before = np.asarray(layer.weight_u)
    layer(jnp.ones((1, 3)))
    np.testing.assert_array_equal(layer.weight_u, before)


# -- lazy values --------------------------------------------------------------------------------------------------


def test_parameters_are_made_when_read_and_do_not_depend_on_the_order_of_reading():
    def build():
        rng.seed(1)
        return nn.Linear(3, 2), nn.Linear(3, 2)

    first, second = build()
    values = np.asarray(first.weight), np.asarray(second.weight)
    first, second = build()
    assert first._parameters["weight"]._value is None
    np.testing.assert_array_equal(second.weight, values[1])
    np.testing.assert_array_equal(first.weight, values[0])
    assert not np.array_equal(*values)


def test_a_parameter_first_read_under_a_trace_keeps_a_value_and_not_a_placeholder():
    layer = nn.Linear(2, 2)
    out = jax.jit(lambda x: layer(x))(jnp.ones((1, 2)))
    np.testing.assert_allclose(layer(jnp.ones((1, 2))), out, rtol=1e-6)


def test_buffers_of_a_layer_built_under_a_trace_have_values():
    built = []

    @jax.jit
    def run(x):
        built.append(nn.BatchNorm1D(2).eval())
        return built[0](x)

    run(jnp.ones((1, 2)))
    assert built[0]._variance.tolist() == [1.0, 1.0]


# -- calling ------------------------------------------------------------------------------------------------------


def test_pre_hooks_replace_arguments_and_post_hooks_outputs():
    layer = nn.Identity()
    first = layer.register_forward_pre_hook(lambda layer, args: (args[0] + 1,))
    second = layer.register_forward_pre_hook(lambda layer, args: args[0] * 10)
    third = layer.register_forward_post_hook(lambda layer, args, out: out - args[0] + 5)
    fourth = layer.register_forward_post_hook(lambda layer, args, out: None)
    assert layer(1) == 5
    third.remove()
    fourth.remove()
    assert layer(1) == 20
    first.remove()
    second.remove()
    second.remove()  # twice is harmless
    assert layer(1) == 1


def test_setting_a_buffer_under_a_trace_is_an_error():
    layer = nn.BatchNorm1D(2)
    with pytest.raises(TraceError, match=r"the buffer '_mean' of BatchNorm1D(.|\n)*nn.apply"):
        jax.jit(lambda x: layer(x))(jnp.ones((4, 2)))
    assert layer._mean.tolist() == [0.0, 0.0]


def test_setting_a_parameter_under_a_trace_is_an_error():
    layer = nn.Linear(2, 2)
    with pytest.raises(TraceError, match="the parameter 'weight' of Linear"):
        jax.jit(lambda x: setattr(layer, "weight", x))(jnp.ones((2, 2)))


def test_dropout_under_a_trace_without_a_key_is_an_error():
    layer = nn.Dropout(0.5)
    with pytest.raises(TraceError, match="without a random key"):
        jax.jit(lambda x: layer(x))(jnp.ones(4))
    assert jax.jit(lambda x: layer.eval()(x))(jnp.ones(4)).tolist() == [1.0] * 4


def test_second_names_are_accepted_on_loading():
    lstm = nn.LSTM(2, 3)
    state = {name: np.asarray(value) + 1 for name, value in lstm.state_dict().items()}
    duplicated = state | {"0.cell." + name.removesuffix("_l0"): value for name, value in state.items()}
    assert nn.Sequential(lstm).set_state_dict({f"0.{k}": v for k, v in duplicated.items()}) == ([], [])
    np.testing.assert_array_equal(lstm.weight_hh_l0, state["weight_hh_l0"])
    both = {"0.cell." + name.removesuffix("_l0"): value + 5 for name, value in state.items()} | state
    assert lstm.set_state_dict(both) == ([], [])
    np.testing.assert_array_equal(lstm.weight_hh_l0, state["weight_hh_l0"])  # the first name counts
    only_second = {"0.cell." + name.removesuffix("_l0"): value * 2 for name, value in state.items()}
    assert lstm.set_state_dict(only_second) == ([], [])
    np.testing.assert_array_equal(lstm.bias_ih_l0, state["bias_ih_l0"] * 2)


def _aligned(shape: tuple[int, ...]) -> np.ndarray:
    """Ones in memory that jax can use without a copy."""
    raw = np.empty(4 * int(np.prod(shape)) + 64, np.uint8)
    first = -raw.ctypes.data % 64
    array = raw[first : first + raw.size - 64].view(np.float32).reshape(shape)
    array[:] = 1
    return array


def test_what_the_caller_writes_into_its_arrays_afterwards_changes_no_layer():
    values = _aligned((64, 64))
    layer = nn.Linear(64, 64)
    layer.set_state_dict({"weight": values, "bias": np.zeros(64, np.float32)})
    layer.register_buffer("mask", values)
    other = nn.Linear(64, 64)
    other.weight = values
    values[:] = 7
    for array in (layer.weight, layer.mask, other.weight):
        assert float(np.asarray(array).max()) == 1
    fixed = _aligned((64, 64))
    fixed.flags.writeable = False  # as of a mapped file, which is not copied
    layer.set_state_dict({"weight": fixed, "bias": np.zeros(64, np.float32), "mask": fixed})
    assert layer.state_dict()["weight"].unsafe_buffer_pointer() == fixed.ctypes.data
