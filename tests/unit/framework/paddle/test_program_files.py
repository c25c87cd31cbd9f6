"""`paddle.save` of a program and `static.save`: what is read back computes the same. Paddle 2.6.2 ran the files of the
same programs, with the same values.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from framework import paddle
from framework.paddle import static
from framework.paddle.nn import functional as F
from framework.paddle.static.program_description import ProgramDesc

IMAGE, TABLE, LABEL, FLAGS = "image", "table", "label", "flags"
Build = Callable[[Mapping[str, paddle.Tensor]], object]


@pytest.fixture(autouse=True)
def static_mode() -> Iterator[None]:
    paddle.enable_static()
    with paddle.utils.unique_name.guard():
        yield
    paddle.disable_static()


def _program(build: Build) -> tuple[static.Program, list[paddle.Tensor]]:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        inputs = {
            IMAGE: static.data(IMAGE, [None, 4, 4, 4], "float32"),
            TABLE: static.data(TABLE, [None, 4], "float32"),
            LABEL: static.data(LABEL, [None, 1], "int64"),
            FLAGS: static.data(FLAGS, [None, 4], "bool"),
        }
        made = build(inputs)
    static.Executor().run(startup)
    return main, list(made) if isinstance(made, list | tuple) else [made]  # type: ignore[list-item]


def _feed() -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(0)
    return {
        IMAGE: numbers.normal(size=(3, 4, 4, 4)).astype("float32"),
        TABLE: numbers.uniform(0.1, 1, size=(3, 4)).astype("float32"),
        LABEL: numbers.integers(0, 3, (3, 1)),
        FLAGS: numbers.uniform(size=(3, 4)) > 0.5,
    }


PROGRAMS: dict[str, Build] = {
    "fully connected": lambda v: static.nn.fc(v[TABLE], 3, activation="softmax"),
    "numbers": lambda v: [1 - v[TABLE] * 3 / 2 + 1, v[TABLE] ** 2, v[TABLE] > 0.5, 2 * v[LABEL], -v[TABLE]],
    "convolution": lambda v: static.nn.conv2d(v[IMAGE], 2, 3, stride=2, padding=1, act="relu"),
    "normalization": lambda v: paddle.nn.GroupNorm(2, 4)(
        static.nn.batch_norm(v[IMAGE]) + paddle.nn.InstanceNorm2D(4)(v[IMAGE])
    ),
    "layer norm": lambda v: paddle.nn.LayerNorm(4)(F.dropout(v[TABLE], 0.5)),
    "pooling": lambda v: [
        F.max_pool2d(v[IMAGE], 2),
        F.avg_pool2d(v[IMAGE], 3, 2, 1),
        F.adaptive_max_pool2d(v[IMAGE], 2),
        F.adaptive_avg_pool2d(v[IMAGE], 1),
    ],
    "sizes of images": lambda v: [
        F.pad(v[IMAGE], [1, 0, 2, 1]),
        F.interpolate(v[IMAGE], scale_factor=2, mode="bilinear"),
    ],
    "shapes": lambda v: paddle.concat(
        [
            paddle.reshape(v[IMAGE], [-1, 8, 8]),
            paddle.transpose(paddle.flatten(v[IMAGE], 2).reshape([-1, 8, 8]), [0, 2, 1]),
            paddle.stack(paddle.split(v[IMAGE].reshape([-1, 64]), 8, 1), 1),
        ],
        1,
    ),
    "slices": lambda v: [v[IMAGE][:, 1], v[IMAGE][:, -1:], v[IMAGE][:, :, ::2], v[TABLE][:, 1:3]],
    "tables": lambda v: [static.nn.embedding(v[LABEL], [5, 3]), F.one_hot(v[LABEL], 4)],
    "choices": lambda v: [
        paddle.argmax(v[TABLE], 1),
        *paddle.topk(v[TABLE], 2),
        paddle.where(v[FLAGS], v[TABLE], v[TABLE]),
    ],
    "losses": lambda v: [
        F.cross_entropy(v[TABLE], v[LABEL]),
        F.cross_entropy(v[TABLE], v[LABEL], reduction="none"),
        F.mse_loss(v[TABLE], v[TABLE]),
        static.accuracy(v[TABLE], v[LABEL]),
        F.normalize(v[TABLE]),
    ],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_was_saved_computes_the_same(name: str, tmp_path: Path) -> None:
    main, fetches = _program(PROGRAMS[name])
    path, test = str(tmp_path / "net"), main.clone(for_test=True)
    executor = static.Executor()
    expected = executor.run(test, feed=_feed(), fetch_list=fetches)
    static.save(main, path)
    paddle.save(test, path + ".pdmodel")
    loaded = paddle.load(path + ".pdmodel")
    loaded.set_state_dict(paddle.load(path + ".pdparams"))
    found = executor.run(loaded, feed=_feed(), fetch_list=[tensor.name for tensor in fetches])
    for value, other in zip(found, expected, strict=True):
        one, other = np.asarray(value), np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_saved_program_has_the_operators_of_paddle(tmp_path: Path) -> None:
    main, _ = _program(lambda v: F.cross_entropy(static.nn.fc(v[TABLE], 3), v[LABEL]))
    paddle.save(main, str(tmp_path / "net.pdmodel"))
    description = ProgramDesc()
    description.parse_from_string((tmp_path / "net.pdmodel").read_bytes())
    operators = description.block(0).operators
    assert [one.type() for one in operators] == [
        "mul",
        "elementwise_add",
        "softmax_with_cross_entropy",
        "reduce_mean",
    ]
    assert operators[0].get_attr_map()["x_num_col_dims"] == 1
    assert operators[2].inputs()["Label"] == [LABEL]


def test_training_is_left_out_and_added_to_what_is_loaded(tmp_path: Path) -> None:
    def build(v: Mapping[str, paddle.Tensor]) -> object:
        loss = F.mse_loss(static.nn.fc(v[TABLE], 1), v[TABLE][:, :1])
        paddle.optimizer.SGD(0.1).minimize(loss)
        return loss

    main, (loss,) = _program(build)
    executor = static.Executor()
    path = str(tmp_path / "net")
    static.save(main, path)
    first, second = (executor.run(main, feed=_feed(), fetch_list=[loss])[0] for _ in range(2))
    assert float(np.asarray(second)) < float(np.asarray(first))
    loaded, startup = paddle.load(path + ".pdmodel"), static.Program()
    with static.program_guard(loaded, startup):
        paddle.optimizer.SGD(0.1).minimize(loaded.global_block().var(loss.name))
    executor.run(startup)
    loaded.set_state_dict(paddle.load(path + ".pdparams"))
    again = [executor.run(loaded, feed=_feed(), fetch_list=[loss.name])[0] for _ in range(2)]
    np.testing.assert_allclose(again, [first, second], rtol=1e-6)


def test_constants_are_saved_with_the_program(tmp_path: Path) -> None:
    weights = paddle.to_tensor(np.array([1.0, 2.0, 3.0, 4.0], np.float32))
    main, (out,) = _program(lambda v: v[TABLE] * weights)
    paddle.save(main, str(tmp_path / "net.pdmodel"))
    loaded = paddle.load(str(tmp_path / "net.pdmodel"))
    found = static.Executor().run(loaded, feed=_feed(), fetch_list=[out.name])[0]
    np.testing.assert_allclose(found, _feed()[TABLE] * [1, 2, 3, 4], rtol=1e-6)


def test_a_warning_names_operations_that_will_not_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    main, _ = _program(lambda v: paddle.kron(v[TABLE], v[TABLE]))
    with caplog.at_level(logging.WARNING, "oar"):
        paddle.save(main, str(tmp_path / "net.pdmodel"))
    assert "do not run when it is loaded: kron" in caplog.text


@pytest.mark.parametrize("op_type", ["softmax_with_cross_entropy", "determinant", "elementwise_fmax"])
def test_operators_with_a_newer_kernel_run_by_their_older_name(op_type: str) -> None:
    from framework.paddle._kernel.kernels import run_by_name

    paddle.disable_static()

    x = paddle.Tensor(np.array([[2.0, 1.0], [1.0, 3.0]], np.float32))
    label = paddle.Tensor(np.array([[0], [1]]))
    slots = {"softmax_with_cross_entropy": {"Logits": [x], "Label": [label]}, "determinant": {"Input": [x]}}
    made = run_by_name(op_type, slots.get(op_type, {"X": [x], "Y": [x]}), {}, {"Out": 1})
    expected = {
        "softmax_with_cross_entropy": ("Loss", [[np.log1p(np.exp(-1))], [np.log1p(np.exp(-2))]]),
        "determinant": ("Out", 5.0),
    }
    slot, values = expected.get(op_type, ("Out", np.asarray(x.numpy())))
    np.testing.assert_allclose(made[slot][0].numpy(), values, rtol=1e-5)
