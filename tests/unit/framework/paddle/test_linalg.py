"""paddle.linalg, fft, signal, geometric and sparse: values by numpy and by hand, gradients by differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor

GENERATOR = np.random.default_rng(0)
SQUARE = GENERATOR.normal(size=(3, 3)) + 3 * np.eye(3)
TALL = GENERATOR.normal(size=(4, 3))
SYMMETRIC = SQUARE @ SQUARE.T
linalg = paddle.linalg


def gradient_error(function: Callable[[Tensor], Tensor], values: np.ndarray) -> float:
    """How far the gradient is from differences, in the direction of a weighted sum of the results."""
    x = Tensor(values, stop_gradient=False)
    out = function(x)
    weights = np.cos(np.arange(out.size)).reshape(out.shape)
    out.backward(Tensor(weights))
    step = 1e-6
    numeric = np.zeros_like(values)
    for place in np.ndindex(*values.shape):
        moved = [values.copy(), values.copy()]
        moved[0][place] += step
        moved[1][place] -= step
        high, low = (float((function(Tensor(m)).numpy() * weights).sum()) for m in moved)
        numeric[place] = (high - low) / (2 * step)
    assert x.grad is not None
    return float(np.abs(x.grad.numpy() - numeric).max())


GRADIENTS: dict[str, tuple[Callable[[Tensor], Tensor], np.ndarray]] = {
    "cholesky": (lambda x: linalg.cholesky((x + x.t()) / 2.0), SYMMETRIC),
    "inv": (linalg.inv, SQUARE),
    "solve": (lambda x: linalg.solve(x, Tensor(TALL[:3])), SQUARE),
    "triangular": (
        lambda x: linalg.triangular_solve(x, Tensor(TALL[:3]), upper=False, unitriangular=True),
        SQUARE,
    ),
    "singular values": (lambda x: linalg.svd(x)[1], TALL),
    "eigenvalues of any matrix": (lambda x: linalg.eig(x)[0].real(), SQUARE),
    "eigenvectors of any matrix": (lambda x: linalg.eig(x)[1].abs(), SQUARE),
    "eigenvalues of a batch": (lambda x: linalg.eigvalsh((x + x.transpose([0, 2, 1])) / 2.0), SQUARE[None]),
    "pinv": (linalg.pinv, TALL),
    "qr": (lambda x: linalg.qr(x)[1], TALL),
    "lu": (lambda x: linalg.lu(x)[0], TALL),
    "norm": (lambda x: linalg.norm(x, 3, axis=1), TALL),
    "gather": (lambda x: paddle.gather(x, Tensor([2, 0, 2]), axis=1), TALL),
    "unfold": (lambda x: paddle.unfold(x, 0, 3, 1), TALL),
    "diagonal_scatter": (lambda x: paddle.diagonal_scatter(Tensor(SQUARE), x), SQUARE[0]),
    "put_along_axis": (
        lambda x: paddle.put_along_axis(x, Tensor([[0, 0], [1, 2]]), x[:2, :2], 1, "mul", True, False),
        TALL,
    ),
    "rfft": (lambda x: paddle.abs(paddle.fft.rfft(x, 5)), TALL),
    "segment_max": (lambda x: paddle.geometric.segment_max(x, Tensor([0, 0, 2, 2])), TALL),
}


@pytest.mark.parametrize("case", GRADIENTS)
def test_gradient_is_that_of_differences(case: str) -> None:
    function, values = GRADIENTS[case]
    assert gradient_error(function, values) < 1e-5


def test_decompositions_multiply_back() -> None:
    x = Tensor(TALL)
    u, s, vh = linalg.svd(x)
    q, r = linalg.qr(x)
    p, lower, upper = linalg.lu_unpack(*linalg.lu(x))
    for product in ((u * s).matmul(vh), q.matmul(r), p.matmul(lower).matmul(upper)):
        np.testing.assert_allclose(product.numpy(), TALL, atol=1e-12)
    values, vectors = linalg.eig(Tensor(SQUARE))
    np.testing.assert_allclose(SQUARE @ vectors.numpy(), vectors.numpy() * values.numpy(), atol=1e-12)


def test_one_triangle_is_read() -> None:
    lower = np.tril(SYMMETRIC) + np.triu(np.full((3, 3), 99.0), 1)
    np.testing.assert_allclose(
        linalg.cholesky(Tensor(lower)).numpy(), np.linalg.cholesky(SYMMETRIC), atol=1e-12
    )
    np.testing.assert_allclose(linalg.eigvalsh(Tensor(lower.T), "U").numpy(), np.linalg.eigvalsh(SYMMETRIC))


def test_numbers_of_matrices_have_paddles_types_and_shapes() -> None:
    sign, size = np.linalg.slogdet(SQUARE)
    np.testing.assert_allclose(
        linalg.slogdet(Tensor(np.stack([SQUARE, SQUARE]))).numpy(), [[sign] * 2, [size] * 2]
    )
    rank = linalg.matrix_rank(Tensor(TALL))
    assert (rank.dtype, rank.item()) == ("int32", 3)
    np.testing.assert_allclose(linalg.cond(Tensor(SQUARE), "fro").item(), np.linalg.cond(SQUARE, "fro"))
    np.testing.assert_allclose(
        linalg.cov(Tensor(TALL), rowvar=False, ddof=False).numpy(), np.cov(TALL.T, ddof=0)
    )
    solution, residuals, _, values = linalg.lstsq(
        Tensor(TALL), Tensor(SQUARE[:, :1].repeat(2, 1)[[0, 1, 2, 0]])
    )
    assert (solution.shape, residuals.shape, values.shape) == ([3, 2], [2], [0])


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_transforms_of_several_axes_invert_each_other(norm: str) -> None:
    x = Tensor(TALL)
    np.testing.assert_allclose(paddle.fft.rfftn(x, norm=norm).numpy(), np.fft.rfftn(TALL, norm=norm))  # type: ignore[call-overload]
    back = paddle.fft.hfftn(paddle.fft.ihfftn(x, norm=norm), [4, 3], norm=norm)
    np.testing.assert_allclose(back.numpy(), TALL, atol=1e-12)
    assert paddle.fft.fft(Tensor([1, 2, 3])).dtype == "complex64"


def test_a_signal_comes_back_from_its_short_transforms() -> None:
    signal = GENERATOR.normal(size=(2, 64))
    window = Tensor(np.hanning(17)[:16])
    terms = paddle.signal.stft(Tensor(signal), 16, window=window)
    assert terms.shape == [2, 9, 17]
    np.testing.assert_allclose(paddle.signal.istft(terms, 16, window=window).numpy(), signal, atol=1e-10)
    with pytest.raises(ShapeError, match="not determined"):
        paddle.signal.istft(terms, 16, window=window, center=False)
    both_sides = paddle.concat([terms, terms[:, :7]], 1)
    with pytest.raises(AssertionError, match="complex window"):
        paddle.signal.istft(both_sides, 16, window=window.astype("complex128"), onesided=False)


def test_messages_along_edges() -> None:
    x, src, dst = Tensor([[1.0], [2.0], [4.0]]), Tensor([0, 1, 2]), Tensor([1, 1, 0])
    assert paddle.geometric.send_u_recv(x, src, dst, "mean").tolist() == [[4.0], [1.5], [0.0]]
    weights = Tensor([10.0, 20.0, 30.0])
    assert paddle.geometric.send_ue_recv(x, weights, src, dst, "mul", "max").tolist() == [
        [120.0],
        [40.0],
        [0.0],
    ]
    sources, owners, nodes = paddle.geometric.reindex_graph(
        Tensor([0, 1]), Tensor([8, 0, 8]), Tensor(np.array([1, 2], np.int32))
    )
    assert [sources.tolist(), owners.tolist(), nodes.tolist()] == [[2, 0, 2], [0, 1, 1], [0, 1, 8]]


def test_sparse_tensors_compute_on_what_they_keep() -> None:
    sparse = paddle.sparse
    twice = sparse.sparse_coo_tensor([[0, 2, 2], [1, 0, 0]], [1.0, 2.0, 3.0], [3, 2], stop_gradient=False)
    dense = [[0.0, 1.0], [0.0, 0.0], [5.0, 0.0]]
    assert twice.to_dense().tolist() == dense
    rows = twice.coalesce().to_sparse_csr()
    assert [rows.crows().tolist(), rows.cols().tolist(), rows.nnz()] == [[0, 1, 1, 2], [1, 0], 2]
    product = sparse.matmul(rows, Tensor([[1.0], [10.0]]))
    assert product.tolist() == [[10.0], [0.0], [5.0]]
    product.backward()
    assert twice.grad.values().tolist() == [10.0, 1.0, 1.0]
    assert sparse.subtract(rows, rows).to_dense().tolist() == [[0.0, 0.0]] * 3
    with pytest.raises(ShapeError, match="one layout"):
        sparse.add(rows, twice)
    with pytest.raises(ShapeError, match="only sparse Tensors"):
        Tensor(dense).nnz()


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: linalg.inv(Tensor(TALL)), r"shape \[4, 3\]"),
    (lambda: linalg.solve(Tensor(SQUARE), Tensor(TALL)), r"\[3, 3\] and \[4, 3\]"),
    (lambda: linalg.qr(Tensor(TALL), "raw"), "'raw'"),
    (lambda: paddle.fft.fft(Tensor(TALL), norm="mean"), "'mean'"),
    (lambda: paddle.fft.rfft(Tensor(TALL * 1j)), "complex128"),
    (lambda: paddle.signal.stft(Tensor(TALL), 16), "n_fft=16"),
    (lambda: paddle.geometric.segment_sum(Tensor(TALL), Tensor([1, 0, 0, 0])), "rising order"),
]


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_wrong_arguments_say_what_was_received(case: int) -> None:
    call, message = WRONG[case]
    with pytest.raises(ShapeError, match=message):
        call()


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x: paddle.fft.fft2(x, axes=3), ValueError),
        (lambda x: paddle.fft.hfft2(x, 1), ValueError),
        (lambda x: paddle.fft.irfft2(x[0]), ValueError),
        (lambda x: paddle.fft.hfft(x, axis=10), ValueError),
        (lambda x: paddle.fft.fftn(x, [2, 2], [0]), ValueError),
        (lambda x: paddle.fft.fftn(x, [2, 2, 2]), ValueError),
        (lambda x: paddle.fft.ifft(x, 2.5), ValueError),
        (lambda x: paddle.fft.irfft2(x[:, :1]), ValueError),
        (lambda x: paddle.fft.hfft(x[:, :1]), ValueError),
        (lambda x: paddle.fft.fftfreq(0), ValueError),
        (lambda x: paddle.fft.rfftfreq(4, 0.0), ValueError),
        (lambda x: paddle.fft.hfft(x > 0), RuntimeError),
        (lambda x: paddle.fft.rfft2(x * 1j), RuntimeError),
    ],
)
def test_transforms_refuse_what_paddle_refuses(function, error) -> None:
    with pytest.raises(error, match="InvalidArgument"):
        function(paddle.ones([3, 4]))


def test_planes_are_all_axes_where_none_are_named() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    np.testing.assert_allclose(paddle.fft.fft2(paddle.to_tensor(x), axes=None).numpy(), np.fft.fftn(x))
