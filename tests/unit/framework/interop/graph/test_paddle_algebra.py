"""Paddle's operators of linear algebra, special functions and diagonals; values are of Paddle 2.6.2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.framework.interop.graph.test_paddle_rois import run


def _floats(numbers: list) -> np.ndarray:
    return np.asarray(numbers, np.float32)


X = _floats([[2, -1], [0.5, 3]])
Y = _floats([[1, 4], [-2, 0.25]])


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "expected"),
    [
        ("atan2", {"X1": X, "X2": Y}, {}, [[1.107149, -0.244979], [2.896614, 1.487655]]),
        ("lerp", {"X": X, "Y": Y, "Weight": np.float32(0.25)}, {}, [[1.75, 0.25], [-0.125, 2.3125]]),
        ("trunc", {"X": X}, {}, [[2.0, -1.0], [0.0, 3.0]]),
        ("asinh", {"X": X}, {}, [[1.443635, -0.881374], [0.481212, 1.818447]]),
        ("lgamma", {"X": np.abs(X)}, {}, [[0.0, 0.0], [0.572365, 0.693147]]),
        ("digamma", {"X": np.abs(X)}, {}, [[0.422784, -0.577216], [-1.963511, 0.922784]]),
        ("erfinv", {"X": X / 4}, {}, [[0.476936, -0.225312], [0.111235, 0.81342]]),
        ("elementwise_fmax", {"X": X, "Y": Y}, {}, [[2.0, 4.0], [0.5, 3.0]]),
        ("elementwise_heaviside", {"X": X, "Y": Y}, {}, [[1.0, 0.0], [1.0, 1.0]]),
        ("logit", {"X": np.abs(X) / 4}, {"eps": 0.2}, [[0.0, -1.098612], [-1.386294, 1.098612]]),
        (
            "stanh",
            {"X": X},
            {"scale_a": 0.67, "scale_b": 1.7159},
            [[1.495702, -1.003767], [0.554246, 1.655375]],
        ),
        ("determinant", {"Input": X}, {}, 6.5),
        ("slogdeterminant", {"Input": X}, {}, [1.0, 1.871802]),
        ("inverse", {"Input": X}, {}, [[0.461538, 0.153846], [-0.076923, 0.307692]]),
        ("kron", {"X": X, "Y": Y[:1]}, {}, [[2.0, 8.0, -1.0, -4.0], [0.5, 2.0, 3.0, 12.0]]),
        ("mv", {"X": X, "Vec": Y[0]}, {}, [-2.0, 12.5]),
        ("dot", {"X": X, "Y": Y}, {}, [-2.0, -0.25]),
        ("solve", {"X": X, "Y": Y}, {}, [[0.153846, 1.884615], [-0.692308, -0.230769]]),
        (
            "triangular_solve",
            {"X": X, "Y": Y},
            {"upper": False, "transpose": True},
            [[0.666667, 1.979167], [-0.666667, 0.083333]],
        ),
        ("cholesky", {"X": X @ X.T}, {"upper": True}, [[2.236068, -0.894427], [0.0, 2.906888]]),
        ("matrix_power", {"X": X}, {"n": 3}, [[4.5, -18.5], [9.25, 23.0]]),
        ("dist", {"X": X, "Y": Y}, {"p": 3.0}, 5.45609),
        ("clip_by_norm", {"X": X}, {"max_norm": 1.0}, [[0.529813, -0.264906], [0.132453, 0.794719]]),
        ("trace", {"Input": X}, {"offset": 1}, -1.0),
        ("diagonal", {"Input": X}, {"offset": -1}, [0.5]),
        (
            "diag_v2",
            {"X": X[0]},
            {"offset": 1, "padding_value": 7.0},
            [[7.0, 2.0, 7.0], [7.0, 7.0, -1.0], [7.0, 7.0, 7.0]],
        ),
        (
            "diag_embed",
            {"Input": X},
            {"offset": -1, "dim1": 0, "dim2": 2},
            [
                [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
                [[2.0, 0.0, 0.0], [0.5, 0.0, 0.0]],
                [[0.0, -1.0, 0.0], [0.0, 3.0, 0.0]],
            ],
        ),
        (
            "isclose",
            {"Input": X, "Other": X * np.float32(1.01)},
            {"rtol": "0.02", "atol": "0"},
            [[1.0, 1.0], [1.0, 1.0]],
        ),
        ("allclose", {"Input": X, "Other": Y}, {"rtol": "0.02", "atol": "0"}, 0.0),
        ("equal_all", {"X": X, "Y": X}, {}, 1.0),
        (
            "index_sample",
            {"X": X, "Index": np.asarray([[1, 1, 0], [0, 1, 1]])},
            {},
            [[-1.0, -1.0, 2.0], [0.5, 3.0, 3.0]],
        ),
        ("crop_tensor", {"X": X}, {"offsets": [0, 1], "shape": [-1, 1]}, [[-1.0], [3.0]]),
        (
            "sequence_mask",
            {"X": np.asarray([1, 3])},
            {"maxlen": 4, "out_dtype": 3},
            [[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]],
        ),
        ("label_smooth", {"X": X}, {"epsilon": 0.2}, [[1.7, -0.7], [0.5, 2.5]]),
        ("frobenius_norm", {"X": X}, {"dim": [1], "keep_dim": True}, [[2.236068], [3.041381]]),
        (
            "cross",
            {"X": _floats([[1, 2, 3]]), "Y": _floats([[0, -1, 2]])},
            {"dim": 9},
            [[7.0, -2.0, -1.0]],
        ),
        (
            "channel_shuffle",
            {"X": np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1)},
            {"groups": 2},
            [[[[0.0]], [[2.0]], [[1.0]], [[3.0]]]],
        ),
    ],
)
def test_values(op: str, inputs: dict[str, Any], attrs: dict[str, Any], expected: Any) -> None:
    slot = {"inverse": "Output", "sequence_mask": "Y", "affine_grid": "Output"}.get(op, "Out")
    (got,) = run(op, inputs, {slot: 1}, **attrs).values()
    np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-6)


def test_the_places_of_maxima_go_back_into_an_image() -> None:
    x = _floats([[[[1, 5, 2, 0], [3, 4, 8, 7]]]])
    pooled = run("max_pool2d_with_index", {"X": x}, {"Out": 1, "Mask": 1}, ksize=[2, 2], strides=[2, 2])
    assert pooled["Mask_0"].tolist() == [[[[1, 6]]]]
    inputs = {"X": pooled["Out_0"], "Indices": pooled["Mask_0"]}
    (back,) = run("unpool", inputs, {"Out": 1}, ksize=[2, 2], output_size=[2, 4]).values()
    assert back.tolist() == [[[[0, 5, 0, 0], [0, 0, 8, 0]]]]


def test_a_sum_of_truths_has_the_type_that_is_asked_for() -> None:
    truths = np.array([True, True, False])
    (got,) = run("reduce_sum", {"X": truths}, {"Out": 1}, reduce_all=True, out_dtype=6).values()
    assert got.dtype == np.float64 and got == 2
