"""Arguments that Paddle refuses, with its kinds of error."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import pytest

from framework import paddle
from framework.paddle.nn import functional as F
from framework.paddle.static import argument_kinds

X = paddle.to_tensor(np.arange(12, dtype="float32").reshape(3, 4))
IMAGES = paddle.ones([1, 4, 2, 2])
NO_TENSOR = cast("paddle.Tensor", None)


@pytest.mark.parametrize(
    "call",
    [
        lambda: paddle.zeros([2], "abc"),
        lambda: X.astype("abc"),
        lambda: paddle.eye(-1),
        lambda: paddle.eye(2.5),
        lambda: F.channel_shuffle(IMAGES, 2.5),
        lambda: F.pixel_shuffle(IMAGES, 2.5),
        lambda: paddle.tril_indices(4.0, 4, 2),
        lambda: paddle.triu_indices(4, -1),
        lambda: paddle.argmax(X, axis=1.5),
        lambda: paddle.argmin(X, axis="1"),
        lambda: paddle.roll(X, (-1, 1), axis="(0, 1)"),
        lambda: paddle.nn.ClipGradByValue("1"),
        lambda: paddle.create_parameter([2], "float32", attr=cast("paddle.ParamAttr", np.arange(2))),
        lambda: paddle.nn.Layer().create_parameter([2], default_initializer=np.arange(2)),
    ],
)
def test_a_wrong_kind_is_a_type_error(call: Callable[[], object]):
    with pytest.raises(TypeError):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: F.log_softmax(X, dtype="uint32"),
        lambda: paddle.argmax(X, dtype="float32"),
        lambda: paddle.argmax(X, axis=5),
        lambda: paddle.unsqueeze(X, 1.5),
        lambda: paddle.addmm(X, X, paddle.ones([4])),
        lambda: paddle.expand(paddle.ones([2, 1]), [2, 0]),
        lambda: paddle.expand(paddle.ones([1]), [1] * 9),
        lambda: paddle.histogram(X, 4, min=1),
        lambda: paddle.kthvalue(X[0, 0], 8),
        lambda: paddle.tril(X[0], None),
        lambda: paddle.flatten(X[0, 0], 1),
        lambda: paddle.linalg.cholesky_solve(X[0], X[:3, :3]),
        lambda: paddle.index_select(X, paddle.to_tensor([0, 5]), 1),
        lambda: F.maxout(IMAGES, 1),
        lambda: F.maxout(IMAGES, 3),
        lambda: F.maxout(IMAGES, 2, axis=2),
        lambda: F.interpolate(IMAGES, size=[2, 2], scale_factor=2.0),
        lambda: F.interpolate(IMAGES, size=[2, 2], data_format="MCHW"),
    ],
)
def test_a_wrong_value_is_an_invalid_argument(call: Callable[[], object]):
    with pytest.raises(ValueError, match="InvalidArgument"):
        call()


def test_a_type_without_a_kernel_is_a_runtime_error():
    for function, x in (
        (paddle.real, X),
        (paddle.imag, X),
        (paddle.linalg.eig, paddle.eye(2, dtype="int64")),
    ):
        with pytest.raises(RuntimeError, match="complex"):
            function(x)


@pytest.mark.parametrize("function", [paddle.isclose, paddle.allclose])
def test_a_tolerance_is_one_number_of_float64(function: Callable[..., paddle.Tensor]):
    tolerances = paddle.to_tensor([0.5], "float64"), paddle.to_tensor([0.0], "float64")
    assert bool(function(X, X * 1.4, *tolerances).all()) and not bool(function(X, X * 1.4).all())
    for wrong in (paddle.to_tensor([0.5, 0.5], "float64"), paddle.to_tensor([1], "int32")):
        with pytest.raises(ValueError, match="one number"):
            function(X, X, wrong)


def test_labels_that_are_no_class():
    assert F.one_hot(paddle.to_tensor([1, 3]), paddle.to_tensor([4])).shape == [2, 4]
    for label in (4, -1):
        with pytest.raises(ValueError, match="out of range"):
            F.one_hot(paddle.to_tensor([0, label]), 4)


def test_a_bound_without_a_lower_one_is_positive():
    with pytest.raises(AssertionError):
        paddle.nn.ClipGradByValue(-1.0)


def test_negative_log_likelihood_reads_as_many_labels_as_rows():
    logs = paddle.to_tensor(np.arange(6, dtype="float32").reshape(2, 3))
    labels = paddle.to_tensor([[1, 2], [0, 0]])
    assert F.nll_loss(logs, labels, reduction="none").tolist() == [-1.0, -5.0]


def test_a_uniform_density_between_exchanged_bounds_is_nan():
    uniform = paddle.distribution.Uniform(paddle.to_tensor([2.0, 0.0]), paddle.to_tensor([1.0, 2.0]))
    first, second = uniform.log_prob(paddle.to_tensor([1.5, 1.0])).tolist()
    assert np.isnan(first) and second == pytest.approx(-np.log(2))


def test_the_deviation_of_equal_elements_has_no_slope():
    x = paddle.ones([4])
    x.stop_gradient = False
    paddle.std(x).backward()
    assert x.grad.tolist() == [0.0] * 4
    assert np.isnan(paddle.std(paddle.to_tensor([np.nan, 1.0])).item())


def test_a_loss_refuses_an_unknown_reduction_when_it_is_built():
    for layer in (paddle.nn.BCELoss, paddle.nn.L1Loss, paddle.nn.NLLLoss):
        with pytest.raises(ValueError, match="InvalidArgument"):
            layer(reduction="unsupport reduction")
    assert paddle.nn.KLDivLoss(reduction="batchmean").reduction == "batchmean"


def test_padding_in_lists_that_are_no_pairs():
    with pytest.raises(ValueError, match="InvalidArgument"):
        F.max_pool1d(paddle.ones([1, 2, 8]), 2, 2, padding=[[2]])


class TestStaticMode:
    """Functions check the classes and data types of their arguments there, in Paddle as here."""

    @pytest.fixture(autouse=True)
    def static(self):
        paddle.enable_static()
        yield
        paddle.disable_static()

    @pytest.mark.parametrize(
        "call",
        [
            lambda x: F.relu(x),
            lambda x: paddle.nn.ReLU()(x),
            lambda x: x.mean(),
            lambda x: F.relu(np.ones([2, 3], "float32")),
            lambda x: paddle.add(x, 1),
            lambda x: paddle.cummax(x, dtype="float32"),
            lambda x: paddle.logical_and(x, [True]),
            lambda x: paddle.where(x, x, x),
            lambda x: paddle.logspace([0], 10, 5),
            lambda x: paddle.linspace(0, 10, 1.5),
            lambda x: paddle.eye(3, dtype="int8"),
            lambda x: paddle.empty([2], "int8"),
            lambda x: paddle.cast(x, "complex64"),
            lambda x: paddle.sum(x, axis="0"),
            lambda x: paddle.tile(x, 2),
            lambda x: F.dropout(x),
            lambda x: F.ctc_loss(np.ones([5, 2, 4], "float32"), x, x, x),
            lambda x: F.rnnt_loss(x, x, x, x),
            lambda x: paddle.allclose(x.astype("float32"), x.astype("float32"), rtol=1),
        ],
    )
    def test_arguments_of_another_kind_are_type_errors(self, call: Callable[[paddle.Tensor], object]):
        with (
            paddle.static.program_guard(paddle.static.Program()),
            pytest.raises(TypeError, match="static mode"),
        ):
            call(paddle.static.data("x", [2, 3], "int32"))

    def test_what_this_package_calls_itself_is_not_checked(self):
        with paddle.static.program_guard(paddle.static.Program()):
            x = paddle.static.data("x", [2, 3], "int32")
            assert [v.dtype for v in (x + 1, x.sum(), paddle.abs(x))] == [
                paddle.int32,
                paddle.int64,
                paddle.int32,
            ]

    def test_the_table_names_parameters_that_the_functions_have(self):
        for name, kinds, parameters in argument_kinds._listed().values():
            assert {kind.parameter for kind in kinds} <= set(parameters), name


def test_a_position_of_no_numbers_is_the_whole_tensor():
    index, updates = paddle.zeros([2, 0], "int64"), paddle.ones([2, 3, 4])
    assert (paddle.scatter_nd_add(X, index, updates) - X).numpy().tolist() == [[2] * 4] * 3
    assert F.sequence_mask(paddle.to_tensor([1, 3]), -1).shape == [2, 3]


def test_a_data_type_has_a_number():
    assert paddle.dtype(int(paddle.float64)) is paddle.float64 and paddle.dtype("int32") is paddle.int32
    with pytest.raises(TypeError, match="data type"):
        paddle.dtype(99)


@pytest.mark.parametrize("function", [paddle.stack, paddle.concat])
@pytest.mark.parametrize("value", [paddle.ones([2, 3]), "ab", np.ones(3), []])
def test_lists_of_tensors_are_lists(function: Callable[..., object], value: object) -> None:
    with pytest.raises(ValueError, match=r"list of Tensors"):
        function(value)


@pytest.mark.parametrize(
    "function", [paddle.all, paddle.argmax, paddle.sum, F.softmax, F.silu, paddle.linalg.det]
)
def test_none_for_a_tensor_is_a_value_error_that_says_so(function: Callable[[object], object]):
    with pytest.raises(ValueError, match="must be a Tensor, not None"):
        function(None)


def _convolve(axes: int, transposed: bool = False, **settings: object) -> object:
    sizes = (4, 6) if transposed else (6, 4)
    function = getattr(F, f"conv{axes}d_transpose" if transposed else f"conv{axes}d")
    return function(paddle.ones([1, 4] + [6] * axes), paddle.ones([*sizes] + [3] * axes), **settings)


@pytest.mark.parametrize(
    "call",
    [
        lambda: _convolve(1, padding=-1),
        lambda: _convolve(2, padding=[0, -1, 0, 0]),
        lambda: _convolve(3, True, padding=-1),
        lambda: _convolve(1, True, output_padding=1),
        lambda: _convolve(2, True, stride=2, output_padding=2),
        lambda: _convolve(3, True, stride=2, output_padding=-1),
        lambda: _convolve(2, data_format="NCL"),
        lambda: _convolve(3, True, data_format="NCHW"),
        lambda: F.max_pool3d(paddle.ones([1, 4, 6, 6, 6]), 3, data_format="NHWC"),
        lambda: F.avg_pool2d(IMAGES, 2, data_format="NCDHW"),
        lambda: paddle.nn.Conv3DTranspose(4, 6, 3, data_format="NCHW"),
        lambda: paddle.as_strided(X, [2, 2], 2),
        lambda: paddle.nn.Conv2D(4, 6, 0),
        lambda: paddle.nn.Conv2D(4, 6, 3, groups=0),
        lambda: paddle.nn.Conv3DTranspose(0, 6, 3),
    ],
)
def test_windows_that_paddle_refuses_are_value_errors(call: Callable[[], object]):
    with pytest.raises(ValueError):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: paddle.numel(NO_TENSOR),
        lambda: paddle.increment(NO_TENSOR),
        lambda: paddle.normal_(NO_TENSOR),
        lambda: paddle.unique(NO_TENSOR),
        lambda: paddle.multinomial(x=NO_TENSOR),
        lambda: F.dropout(NO_TENSOR),
        lambda: F.sequence_mask(NO_TENSOR),
        lambda: paddle.geometric.segment_sum(NO_TENSOR, X),
        lambda: paddle.vision.ops.nms(NO_TENSOR),
    ],
)
def test_none_for_a_tensor_is_told_by_functions_that_are_no_operations(call: Callable[[], object]):
    with pytest.raises(ValueError, match="must be a Tensor, not None"):
        call()
