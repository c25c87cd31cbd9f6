from __future__ import annotations

import copy
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from framework import jit, nn
from framework.core.dtypes import precision_scope
from framework.core.errors import FormatError, InputError, ShapeError, TraceError
from framework.export import Artifact, load_artifact
from framework.nn import functional as F

X = np.random.default_rng(0).standard_normal((4, 8, 8, 3)).astype(np.float32)


def small() -> nn.Sequential:
    return nn.Sequential(nn.Conv2D(3, 4, 3, padding=1), nn.BatchNorm2D(4), nn.ReLU())


# -- to_static ---------------------------------------------------------------------------------------------------------


def test_a_layer_gives_what_it_gives_eagerly():
    layer = small().eval()
    static = jit.to_static(layer)
    np.testing.assert_allclose(np.asarray(static(X)), np.asarray(layer(jnp.asarray(X))), atol=1e-5)
    assert static.state_dict().keys() == layer.state_dict().keys()


def test_buffers_are_updated_in_train_and_kept_in_eval():
    eager, layer = small(), small()
    layer.set_state_dict(eager.state_dict())
    static = jit.to_static(layer)
    eager.train()(jnp.asarray(X))
    assert static.train() is static  # still the compiled one
    static(X)
    after = {name: np.asarray(value) for name, value in layer.named_buffers()}
    for name, value in eager.named_buffers():
        np.testing.assert_allclose(after[name], np.asarray(value), atol=1e-5)
    assert after["1._mean"].any()
    static = static.eval()
    static(X)
    for name, value in layer.named_buffers():
        np.testing.assert_array_equal(np.asarray(value), after[name])


def test_a_function_and_a_decorator():
    traced = []

    @jit.to_static(input_spec=[jit.InputSpec([None, 2]), jit.InputSpec([2], name="bias")])
    def shifted(x, bias, scale=1.0):
        """Doc."""
        traced.append(x.shape)
        return {"y": x * scale + bias}

    two = np.ones(2, np.float32)
    assert (shifted.__name__, shifted.__doc__) == ("shifted", "Doc.")
    for rows in (1, 3, 3):
        out = shifted(np.ones((rows, 2), np.float32), two, scale=2.0)["y"]
        np.testing.assert_array_equal(np.asarray(out), np.full((rows, 2), 3))
    assert traced == [(1, 2), (3, 2)]
    with pytest.raises(
        ShapeError, match=r"bias: an argument.*\n  received: \(3,\) float32\n  allowed: \(2,\) float32"
    ):
        shifted(np.ones((1, 2), np.float32), np.ones(3, np.float32))


def test_a_function_is_compiled_for_each_precision():
    product = jit.to_static(lambda x, w: F.linear(x, w))
    x = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)
    w = np.random.default_rng(1).standard_normal((64, 8)).astype(np.float32)
    full = np.asarray(product(x, w))
    with precision_scope("bfloat16"):
        low = np.asarray(product(x, w))
    assert 0 < np.abs(full - low).max() < 1
    np.testing.assert_array_equal(np.asarray(product(x, w)), full)


def test_methods_are_refused():
    class Method(nn.Layer):
        @jit.to_static
        def forward(self, x):
            return x

    with pytest.raises(
        InputError, match=r"Method\.forward: to_static compiles(.*\n)+.*call to_static\(layer\)"
    ):
        Method()(jnp.ones(2))


class Flip(nn.Layer):
    def forward(self, x):
        if x.mean() > 0:
            return x
        return -x


def test_a_branch_on_a_value_names_the_users_line():
    with pytest.raises(TraceError, match=r"test_static\.py:\d+: if x\.mean\(\) > 0:") as caught:
        jit.to_static(Flip())(np.ones(2, np.float32))
    assert "framework.jit.cond" in str(caught.value)


@pytest.mark.parametrize(
    ("fn", "line"),
    [
        (lambda x: x[x > 0], r"x\[x > 0\]"),
        (lambda x: np.asarray(x), r"np\.asarray\(x\)"),
        (lambda x: list(range(x[0].astype(int))), r"range\("),
        (lambda x: float(x[0]), r"float\(x\[0\]\)"),
    ],
)
def test_every_question_about_a_value_is_told_in_the_same_way(fn, line):
    with pytest.raises(TraceError, match=rf"test_static\.py:\d+: .*{line}"):
        jit.to_static(fn)(np.ones(2, np.float32))


def test_cond_is_the_way_out():
    fn = jit.to_static(lambda x: jit.cond(x.mean() > 0, lambda x: x, lambda x: -x, x))
    assert fn(np.full(2, -3, np.float32)).tolist() == [3, 3]


# -- InputSpec ---------------------------------------------------------------------------------------------------------


def test_specs_of_arrays():
    assert jit.InputSpec.from_numpy(X, "x") == jit.InputSpec((4, 8, 8, 3), "float32", "x")
    assert jit.InputSpec.from_tensor(jnp.zeros(2, jnp.int32)) == jit.InputSpec((2,), "int32")


def test_free_sizes_get_names():
    assert jit.InputSpec([None, -1, "32*h", 3]).tensor_spec(1).shape == ("n", "d1_1", "32*h", 3)


@pytest.mark.parametrize(
    ("shape", "array", "fits"),
    [
        ([None, 3], np.zeros((5, 3), np.float32), True),
        ([-1, 3], np.zeros((5, 4), np.float32), False),
        ([-1, 3], np.zeros(3, np.float32), False),
        ([-1, 3], np.zeros((5, 3), np.int32), False),
        (["8*h"], np.zeros(16, np.float32), True),
        (["8*h"], np.zeros(15, np.float32), False),
        (["h", "h"], np.zeros((2, 2), np.float32), True),
        (["h", "h"], np.zeros((2, 3), np.float32), False),
        ([], 1.5, False),  # Python's float is 64 bits wide
    ],
)
def test_what_a_spec_takes(shape, array, fits):
    spec = jit.InputSpec(shape)
    if fits:
        return spec.check(array, "x")
    with pytest.raises(ShapeError, match="x: an argument does not fit its InputSpec"):
        spec.check(array, "x")


def test_a_named_size_is_one_for_all_arguments():
    add = jit.to_static(lambda a, b: a[0] + b[0], [jit.InputSpec(["k"]), jit.InputSpec(["k"])])
    add(np.zeros(2, np.float32), np.zeros(2, np.float32))
    with pytest.raises(ShapeError, match="argument 1"):
        add(np.zeros(2, np.float32), np.zeros(3, np.float32))
    with pytest.raises(
        ShapeError, match=r"wrong number of arguments\n  received: 1\n  allowed: 2, as in input_spec"
    ):
        add(np.zeros(2, np.float32))


# -- save and load -----------------------------------------------------------------------------------------------------


def test_save_and_load(tmp_path: Path):
    layer = small()
    layer[1].eval()
    static = jit.to_static(layer, [jit.InputSpec([None, None, None, 3], name="image")])
    folder = jit.save(static, tmp_path / "net")
    assert layer.training and not layer[1].training
    program = jit.load(folder)
    assert program.input_names == ["image"]
    expected = np.asarray(layer.eval()(jnp.asarray(X)))
    np.testing.assert_allclose(program(X), expected, atol=1e-5)
    assert program(X[:1, :6, :5]).shape == (1, 6, 5, 4)
    assert load_artifact(folder).config["model"] == "Sequential"
    with pytest.raises(ShapeError, match=r"received: 2\n  allowed: image"):
        program(X, X)


class Several(nn.Layer):
    def forward(self, query, key):
        return query - key, {"sum": query + key}


def test_inputs_keep_their_order_and_outputs_get_names(tmp_path: Path):
    specs = [jit.InputSpec([None], "int64", name="query"), jit.InputSpec([None], "int64", name="key")]
    program = jit.load(jit.save(Several(), tmp_path / "net", specs))
    out = program(np.array([5, 5]), np.array([3, 2]))  # int64, narrowed
    assert {name: value.tolist() for name, value in out.items()} == {"output0": [2, 3], "output1": [8, 7]}


def test_many_unnamed_inputs(tmp_path: Path):
    class First(nn.Layer):
        def forward(self, *args):
            return args[2] - args[10]  # by name x10 stands before x2

    program = jit.load(jit.save(First(), tmp_path / "net", [jit.InputSpec([1])] * 11))
    assert program(*(np.full(1, n, np.float32) for n in range(11))).tolist() == [-8]


def test_what_cannot_be_saved(tmp_path: Path):
    with pytest.raises(InputError, match=r"needs the shapes of the inputs\n.*input_spec"):
        jit.save(small(), tmp_path / "net")
    with pytest.raises(InputError, match=r"takes a layer\n  received: function"):
        jit.save(jit.to_static(lambda x: x), tmp_path / "net", [jit.InputSpec([1])])
    with pytest.raises(InputError, match="two inputs have the same name"):
        jit.save(Several(), tmp_path / "net", [jit.InputSpec([1], name="a")] * 2)
    with pytest.raises(TraceError, match=r"test_static\.py:\d+: if x\.mean\(\) > 0:"):
        jit.save(Flip(), tmp_path / "net", [jit.InputSpec([None])])
    assert not (tmp_path / "net").exists()


def test_what_cannot_be_loaded(tmp_path: Path):
    with pytest.raises(FormatError, match="no such folder"):
        jit.load(tmp_path / "net")
    one = load_artifact(jit.save(small(), tmp_path / "one", [jit.InputSpec([1, 8, 8, 3])]))
    Artifact({}, stages={"one": one}).save(tmp_path / "pipeline")
    with pytest.raises(InputError, match=r"no program of its own\n  received: stages: one\n  allowed"):
        jit.load(tmp_path / "pipeline")
    assert jit.load(tmp_path / "pipeline" / "one")(X[:1]).shape == (1, 8, 8, 4)


def test_a_static_layer_can_be_copied():
    static = jit.to_static(small().eval())
    twin = copy.deepcopy(static)
    np.testing.assert_array_equal(np.asarray(twin(X)), np.asarray(static(X)))
    with pytest.raises(AttributeError):
        _ = static.no_such_attribute
