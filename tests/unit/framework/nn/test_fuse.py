import numpy as np

from framework.nn.reparam import fold_batch_norm


def test_fold_scales_each_output_channel_and_moves_the_bias() -> None:
    weight = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)[:, :, None, None]
    # scale = gamma / sqrt(variance): 2 / 1 and 3 / 2
    w, b = fold_batch_norm(
        weight, np.array([1.0, 0.0]), [2.0, 3.0], [10.0, 20.0], [0.5, 4.0], [1.0, 4.0], epsilon=0.0
    )
    np.testing.assert_allclose(w[:, :, 0, 0], [[2.0, 4.0], [4.5, 6.0]])
    np.testing.assert_allclose(b, [10 + (1 - 0.5) * 2, 20 + (0 - 4) * 1.5])
    assert w.dtype == b.dtype == np.float32


def test_fold_along_the_second_axis_and_without_a_bias() -> None:
    weight = np.ones((1, 2, 1, 1), np.float32)  # IOHW of a transposed convolution
    w, b = fold_batch_norm(
        weight, None, [2.0, 3.0], [0.0, 0.0], [1.0, 1.0], [3.0, 8.0], epsilon=1.0, out_axis=1
    )
    np.testing.assert_allclose(w[0, :, 0, 0], [1.0, 1.0])
    np.testing.assert_allclose(b, [-1.0, -1.0])
