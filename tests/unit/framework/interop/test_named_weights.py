import numpy as np

from framework.interop.named_weights import named_weights


def test_values_depend_on_name_and_shape_alone() -> None:
    one = named_weights({"a.weight": (4, 3, 3, 3), "b.bias": (5,)})
    two = named_weights({"b.bias": [5], "a.weight": [4, 3, 3, 3], "c": ()})
    np.testing.assert_array_equal(one["a.weight"], two["a.weight"])
    np.testing.assert_array_equal(one["b.bias"], two["b.bias"])
    assert not np.array_equal(one["b.bias"], named_weights({"d.bias": (5,)})["d.bias"])
    assert two["c"].shape == () and two["c"].dtype == np.float32


def test_scales() -> None:
    made = named_weights(
        {"conv.weight": (64, 32, 3, 3), "fc.weight": (200, 100), "dw.weight": (640, 1, 3, 3)}
        | {"bn.weight": (999,), "bn._variance": (999,), "bn._mean": (999,)}
    )
    assert abs(made["conv.weight"].std() / np.sqrt(2 / 288) - 1) < 0.05
    assert abs(made["fc.weight"].std() / np.sqrt(2 / 200) - 1) < 0.05
    assert abs(made["dw.weight"].std() / (0.5 / 3) - 1) < 0.05
    assert made["bn.weight"].min() >= 0.5 and made["bn.weight"].max() <= 1.5
    assert made["bn._variance"].min() >= 1.0 and made["bn._variance"].max() <= 3.0
    assert abs(made["bn._mean"].std() - 0.1) < 0.01
