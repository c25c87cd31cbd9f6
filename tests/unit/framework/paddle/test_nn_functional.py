"""paddle.nn.functional: values by numpy, gradients by finite differences, both data formats alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from framework import paddle
from framework.nn.functional.losses import LabelError
from framework.paddle.nn import functional as F

RNG = np.random.default_rng(0)


def tensor(*shape: int, dtype: str = "float64", grad: bool = True) -> Any:
    made = paddle.Tensor(RNG.standard_normal(shape).astype(dtype))
    made.stop_gradient = not grad
    return made


# Operations whose value and gradient are smooth around random points; all in float64.
SMOOTH: dict[str, Callable[[], tuple[Callable[..., Any], list[Any]]]] = {
    "linear": lambda: (F.linear, [tensor(3, 4), tensor(4, 2), tensor(2)]),
    "conv2d": lambda: (
        lambda x, w, b: F.conv2d(x, w, b, 2, [1, 0], 1, 2),
        [tensor(1, 4, 5, 6), tensor(4, 2, 3, 2), tensor(4)],
    ),
    "conv1d_transpose": lambda: (
        lambda x, w: F.conv1d_transpose(x, w, None, 2, 1, 1),
        [tensor(1, 2, 5), tensor(2, 3, 3)],
    ),
    "batch_norm": lambda: (
        lambda x, w, b: F.batch_norm(x, tensor(3, grad=False), tensor(3, grad=False), w, b, True),
        [tensor(4, 3, 2), tensor(3), tensor(3)],
    ),
    "layer_norm": lambda: (
        lambda x, w, b: F.layer_norm(x, [2, 3], w, b),
        [tensor(2, 2, 3), tensor(6), tensor(6)],
    ),
    "instance_norm": lambda: (lambda x: F.instance_norm(x), [tensor(2, 2, 4)]),
    "cross_entropy": lambda: (
        lambda x: F.cross_entropy(x, paddle.Tensor(np.array([[0], [2]])), label_smoothing=0.1),
        [tensor(2, 3)],
    ),
    "attention": lambda: (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [tensor(1, 3, 2, 2), tensor(1, 3, 2, 2), tensor(1, 3, 2, 2)],
    ),
    "grid_sample of volumes": lambda: (
        lambda x, g: F.grid_sample(x, g),
        [tensor(1, 2, 3, 4, 3), tensor(1, 2, 2, 2, 3)],
    ),
    "interpolate": lambda: (
        lambda x: F.interpolate(x, [5, 3], mode="bicubic"),
        [tensor(1, 2, 3, 4)],
    ),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    function, inputs = SMOOTH[name]()
    out = function(*inputs)
    assert out.dtype == "float64"
    direction = RNG.standard_normal(out.shape)
    out.backward(paddle.Tensor(direction))
    for index, given in enumerate(inputs):
        step = RNG.standard_normal(given.shape)
        values = []
        for sign in (1, -1):
            moved = list(inputs)
            moved[index] = paddle.Tensor(given.numpy() + sign * 1e-5 * step)
            values.append((function(*moved).numpy() * direction).sum())
        slope = (values[0] - values[1]) / 2e-5
        # Weights of resizing and the places of sampling are float32.
        np.testing.assert_allclose((given.grad.numpy() * step).sum(), slope, rtol=2e-4, atol=1e-6)


def last(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(x, 1, -1)


WEIGHT = RNG.standard_normal((6, 2, 3, 3)).astype("float32")
BOTH_FORMATS: dict[str, Callable[[Any, str], Any]] = {
    "conv2d": lambda x, f: F.conv2d(x, paddle.Tensor(WEIGHT), None, 2, [1, 2], 1, 2, f),
    "conv2d same": lambda x, f: F.conv2d(x, paddle.Tensor(WEIGHT), None, 2, "SAME", 1, 2, f),
    "conv2d_transpose": lambda x, f: F.conv2d_transpose(x, paddle.Tensor(WEIGHT[:4]), None, 2, data_format=f),
    "max_pool2d": lambda x, f: F.max_pool2d(x, 3, 2, 1, data_format=f),
    "avg_pool2d": lambda x, f: F.avg_pool2d(x, [2, 3], padding=[0, 1, 1, 0], data_format=f),
    "adaptive_avg_pool2d": lambda x, f: F.adaptive_avg_pool2d(x, [2, None], data_format=f),
    "interpolate": lambda x, f: F.interpolate(x, scale_factor=1.5, mode="bilinear", data_format=f),
    "pad": lambda x, f: F.pad(x, [1, 0, 2, 1], "reflect", data_format=f),
    "pixel_unshuffle": lambda x, f: F.pixel_unshuffle(x, 2, f),
    "channel_shuffle": lambda x, f: F.channel_shuffle(x, 2, f),
    "local_response_norm": lambda x, f: F.local_response_norm(x, 3, data_format=f),
    "instance_norm": lambda x, f: F.instance_norm(x, data_format=f),
}


@pytest.mark.parametrize("name", BOTH_FORMATS)
def test_both_formats_agree(name: str) -> None:
    x = RNG.standard_normal((2, 4, 6, 8)).astype("float32")
    function = BOTH_FORMATS[name]
    first = function(paddle.Tensor(x), "NCHW").numpy()
    np.testing.assert_allclose(function(paddle.Tensor(last(x)), "NHWC").numpy(), last(first), atol=1e-5)
    assert not np.array_equal(first, x)


def test_convolution_by_hand() -> None:
    x, w = RNG.standard_normal((1, 2, 4, 5)), RNG.standard_normal((3, 2, 2, 2))
    wanted = np.zeros((1, 3, 3, 4))
    for row in range(3):
        for column in range(4):
            window = x[0, :, row : row + 2, column : column + 2]
            wanted[0, :, row, column] = (w * window).sum((1, 2, 3))
    np.testing.assert_allclose(F.conv2d(paddle.Tensor(x), paddle.Tensor(w)).numpy(), wanted, atol=1e-12)


def test_batch_norm_moves_its_statistics() -> None:
    x = RNG.standard_normal((5, 3, 2)).astype("float32")
    mean, variance = paddle.Tensor(np.zeros(3, "float32")), paddle.Tensor(np.ones(3, "float32"))
    y = F.batch_norm(paddle.Tensor(x), mean, variance, training=True, momentum=0.8)
    batch_mean, batch_variance = x.mean((0, 2)), x.var((0, 2))
    np.testing.assert_allclose(mean.numpy(), 0.2 * batch_mean, atol=1e-6)
    np.testing.assert_allclose(variance.numpy(), 0.8 + 0.2 * batch_variance, atol=1e-6)
    np.testing.assert_allclose(y.numpy().mean((0, 2)), np.zeros(3), atol=1e-6)
    before = mean.numpy()
    z = F.batch_norm(paddle.Tensor(x), mean, variance).numpy()
    scale = 1 / np.sqrt(variance.numpy() + 1e-5)
    np.testing.assert_allclose(z, (x - before[:, None]) * scale[:, None], atol=1e-5)
    np.testing.assert_array_equal(mean.numpy(), before)
    F.batch_norm(paddle.Tensor(x), mean, variance, use_global_stats=False)
    assert not np.array_equal(mean.numpy(), before)


@pytest.mark.parametrize("column", [False, True])
def test_cross_entropy_by_hand(column: bool) -> None:
    logits, label = RNG.standard_normal((4, 3)), np.array([2, -100, 0, 1])
    weight = np.array([0.5, 2.0, 1.0])
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    kept = label >= 0
    known = np.where(kept, label, 0)
    each = np.where(kept, -logs[np.arange(4), known] * weight[known], 0)
    given = paddle.Tensor(label[:, None] if column else label)
    arguments = (paddle.Tensor(logits), given, paddle.Tensor(weight))
    mean = F.cross_entropy(*arguments)
    np.testing.assert_allclose(mean.numpy(), each.sum() / weight[label[kept]].sum(), atol=1e-12)
    none = F.cross_entropy(*arguments, reduction="none")
    assert none.shape == given.shape
    np.testing.assert_allclose(none.numpy().reshape(-1), each, atol=1e-12)


def test_a_label_that_is_no_class_is_refused() -> None:
    with pytest.raises(LabelError, match="label 7 of 3 classes"):
        F.cross_entropy(tensor(2, 3), paddle.Tensor(np.array([0, 7])))


def test_dropout_keeps_the_mean() -> None:
    paddle.seed(0)
    x = paddle.Tensor(np.ones((200, 100), "float32"))
    dropped = F.dropout(x, 0.25)
    kept = dropped.numpy() != 0
    assert abs(kept.mean() - 0.75) < 0.02
    np.testing.assert_allclose(dropped.numpy()[kept], 1 / 0.75, rtol=1e-4)
    assert not np.array_equal(F.dropout(x, 0.25).numpy(), dropped.numpy())
    rows = F.dropout(x, 0.5, axis=0).numpy()
    assert set(np.unique(rows.mean(1))) <= {0.0, 2.0}
    np.testing.assert_array_equal(F.dropout(x, 0.25, training=False).numpy(), x.numpy())
    scaled = F.dropout(x, 0.25, training=False, mode="downscale_in_infer").numpy()
    np.testing.assert_allclose(scaled, 0.75, rtol=1e-6)


def test_dropout_in_inference_passes_gradients() -> None:
    x = tensor(2, 3)
    y = x * 2.0
    z = F.dropout(y, 0.5, training=False)
    assert z is not y
    z.backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full((2, 3), 2.0))


def test_what_inference_does_not_change_is_returned_arrays_too() -> None:
    for drop, shape in ((F.dropout2d, (1, 2, 1, 1)), (F.dropout3d, (1, 1, 1, 1, 1)), (F.alpha_dropout, (2,))):
        array = np.ones(shape, np.float32)
        assert drop(array, 0.5, training=False) is array  # type: ignore[arg-type]
    assert paddle.empty_like(array, "float64").dtype == paddle.float64


def test_in_place_activations_replace_their_input() -> None:
    x = tensor(4)
    y = x * 1.0
    values = y.numpy()
    assert F.relu_(y) is y
    np.testing.assert_array_equal(y.numpy(), np.maximum(values, 0))
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), (values > 0).astype(float))


def test_places_of_maxima_go_back() -> None:
    x = tensor(1, 2, 4, 6)
    maxima, places = F.max_pool2d(x, 2, return_mask=True)
    assert places.dtype == "int32"
    flat = x.numpy().reshape(1, 2, -1)
    picked = np.take_along_axis(flat, places.numpy().reshape(1, 2, -1), 2)
    np.testing.assert_array_equal(picked, maxima.numpy().reshape(1, 2, -1))
    back = F.max_unpool2d(maxima, places, 2).numpy()
    np.testing.assert_array_equal(back, np.where(back != 0, x.numpy(), 0))
    assert (back != 0).sum() == maxima.size


@pytest.mark.parametrize("ids", [[0, 3], [-1, 1], [2**40, 0]])
def test_an_id_without_a_row(ids: list[int]) -> None:
    with pytest.raises(ValueError, match=r"an id has no row in the table(.|\n)*0 to 2"):
        F.embedding(paddle.to_tensor(ids), paddle.ones([3, 2]))


def test_embedding_of_padding_is_zero_and_not_trained() -> None:
    table = tensor(5, 3)
    rows = F.embedding(paddle.Tensor(np.array([[1, 4], [4, 0]])), table, padding_idx=-1)
    np.testing.assert_array_equal(rows.numpy()[0], [table.numpy()[1], np.zeros(3)])
    rows.backward()
    np.testing.assert_array_equal(table.grad.numpy().sum(1), [3, 3, 0, 0, 0])


@pytest.mark.parametrize(
    "p, distance, gradient",
    [  # of Paddle 2.6.2, with epsilon 0: all that tie take the gradient undivided
        (float("inf"), [2, 3], [[0, -1, 1], [1, 1, -1]]),
        (-float("inf"), [1, 3], [[1, 0, 0], [1, 1, -1]]),
        (1.0, [5, 9], [[1, -1, 1], [1, 1, -1]]),
        (0.0, [3, 3], [[0, 0, 0], [0, 0, 0]]),
    ],
)
def test_the_gradient_of_a_distance_whose_gaps_tie(
    p: float, distance: list[int], gradient: list[list[int]]
) -> None:
    x = paddle.to_tensor([[1.0, -2, 2], [4, 4, 1]], stop_gradient=False)
    y = paddle.to_tensor([[0.0, 0, 0], [1, 1, 4]], stop_gradient=False)
    result = paddle.nn.functional.pairwise_distance(x, y, p, 0.0)
    result.backward()
    np.testing.assert_array_equal(result.numpy(), distance)
    np.testing.assert_array_equal(x.grad.numpy(), gradient)
    np.testing.assert_array_equal(y.grad.numpy(), np.negative(gradient))


def test_alignment_losses_of_float64_have_its_digits():
    logits = np.random.default_rng(0).standard_normal((2, 1, 3))
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    one, two = (paddle.to_tensor([count], dtype="int32") for count in (1, 2))
    label = paddle.to_tensor([[1]], dtype="int32")
    loss = F.ctc_loss(paddle.to_tensor(logits), label, two, one, reduction="none")
    paths = [logs[0, 0, a] + logs[1, 0, b] for a, b in ((0, 1), (1, 0), (1, 1))]
    np.testing.assert_allclose(loss.item(), -np.log(np.exp(paths).sum()), rtol=1e-13)
    loss = F.rnnt_loss(
        paddle.to_tensor(logits[None, None, :, 0]), label, one, one, fastemit_lambda=0.0, reduction="none"
    )
    np.testing.assert_allclose(loss.item(), -(logs[0, 0, 1] + logs[1, 0, 0]), rtol=1e-13)
