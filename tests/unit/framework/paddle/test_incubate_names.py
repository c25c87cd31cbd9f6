"""Names of paddle.incubate, paddle.base and the callbacks that Paddle's own tests import."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from framework import paddle
from framework.paddle import static
from framework.paddle.incubate.nn import attn_bias


def test_graphs_under_their_older_names() -> None:
    row, colptr = paddle.to_tensor([1, 2, 0, 2, 0]), paddle.to_tensor([0, 2, 4, 5])
    nodes = paddle.to_tensor([0, 1])
    around, count = paddle.incubate.graph_sample_neighbors(row, colptr, nodes)
    source, target, every = paddle.incubate.graph_reindex(nodes, around, count)
    assert (source.tolist(), target.tolist(), every.tolist()) == ([1, 2, 0, 2], [0, 0, 1, 1], [0, 1, 2])
    source, target, every, positions = paddle.incubate.graph_khop_sampler(row, colptr, nodes, [-1, -1])
    edges = {(int(every[int(s)]), int(every[int(t)])) for s, t in zip(source, target, strict=True)}
    assert edges == {(1, 0), (2, 0), (0, 1), (2, 1), (0, 2)} and positions.tolist() == [0, 1]
    with pytest.raises(ValueError, match="both buffers"):
        paddle.incubate.graph_reindex(nodes, around, count, flag_buffer_hashtable=True)


def test_biases_of_attention() -> None:
    triangle = attn_bias.LowerTriangularMask().materialize([1, 2, 2])
    assert triangle.tolist() == [[[0.0, -np.inf], [0.0, 0.0]]]
    x, y = paddle.ones([2, 1, 3]), paddle.zeros([1, 2, 3])
    mask, joined = attn_bias.BlockDiagonalMask.from_tensor_list([x, y])
    assert joined.shape == [1, 4, 3]
    values = mask.make_causal().materialize([4, 4]).numpy()
    assert (values == 0).astype(int).tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]
    assert [part.shape for part in mask.split(joined)] == [[2, 1, 3], [1, 2, 3]]
    padded = attn_bias.BlockDiagonalCausalWithOffsetPaddedKeysMask.from_seqlens([1, 1], 2, [2, 1])
    assert (padded.materialize([2, 4]).numpy() == 0).astype(int).tolist() == [[1, 0, 0, 0], [0, 0, 1, 0]]


def test_layers_for_recommendation() -> None:
    from framework.paddle.incubate import layers

    paddle.enable_static()
    try:
        with static.program_guard(static.Program()):
            x, y = static.data("x", [2, 3]), static.data("y", [2, 3])
            joined, total = layers.partial_concat([x, y], 1, 1), layers.partial_sum([x, y], 1, 2)
            rate = layers.pow2_decay_with_linear_warmup(2, 6, 0.4, 0.0)
            feed = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "y": np.ones((2, 3), np.float32)}
            rates, first, second = [], None, None
            for _ in range(7):
                first, second, third = static.Executor().run(feed=feed, fetch_list=[joined, total, rate])
                rates.append(float(np.asarray(third).reshape(())))
    finally:
        paddle.disable_static()
    assert np.asarray(first).tolist() == [[1.0, 1.0], [4.0, 1.0]]
    assert np.asarray(second).tolist() == [[2.0, 3.0], [5.0, 6.0]]
    np.testing.assert_allclose(rates, [0.2, 0.4, 0.225, 0.1, 0.025, 0.0, 0.0], atol=1e-6)


def test_names_of_core_and_executor() -> None:
    from framework.paddle.base import core, executor

    tensors = [paddle.ones([50], kind) for kind in ("float32", "float64", "float32", "float32")]
    assert core.eager_assign_group_by_size(tensors, [False] * 4, [400]) == [[0, 2], [1], [3]]
    assert core.eager.scale(paddle.ones([2]), 2.0, 1.0, False, False).tolist() == [4.0, 4.0]
    assert np.asarray(executor._as_lodtensor([1, 2], None, "int32")).tolist() == [1, 2]
    with pytest.raises(AssertionError):
        executor._as_lodtensor(1, None)
    x = paddle.to_tensor([4.0])
    assert paddle.tensor.sqrt_(x) is x and x.tolist() == [2.0]


def test_callbacks_are_completed_and_called() -> None:
    from framework.paddle.hapi.callbacks import Callback, config_callbacks

    class Counter(Callback):
        def __init__(self) -> None:
            super().__init__()
            self.calls: list[object] = []

        def on_train_begin(self, logs: object = None) -> None:
            self.calls.append("begin")

        def on_train_batch_end(self, step: int, logs: object = None) -> None:
            self.calls.append(step)

        def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
            self.calls.append(("epoch", epoch))

    counter = Counter()
    calls = config_callbacks(counter, paddle.Model(paddle.nn.Linear(1, 1)), verbose=0)
    calls.on_begin("train", {})
    calls.on_batch_end("train", 3, {})
    calls.on_epoch_begin(1, {})
    assert counter.calls == ["begin", 3, ("epoch", 1)] and len(calls.callbacks) == 3


def test_branches_that_are_none() -> None:
    yes = paddle.to_tensor(True)
    for pairs in (1, [1], [(1, 2, 3)], [(1, lambda: yes)], [(yes, 2)]):
        with pytest.raises(TypeError):
            static.nn.case(pairs)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        static.nn.switch_case(paddle.to_tensor(1), {"a": lambda: yes})
    with pytest.raises(ValueError, match="twice"):
        static.nn.switch_case(paddle.to_tensor(1), [(1, lambda: yes), (1, lambda: yes)])


def test_hooks_are_called_before_a_layer_is_saved(tmp_path: Path) -> None:
    from framework.paddle.jit import api

    calls: list[object] = []
    remover = api._register_save_pre_hook(lambda layer, spec, configs: calls.append(configs))
    layer, specs = paddle.nn.Linear(2, 2), [static.InputSpec([1, 2], "float32")]
    paddle.jit.save(layer, str(tmp_path / "one"), specs)
    remover.remove()
    paddle.jit.save(layer, str(tmp_path / "two"), specs)
    assert calls == [{}]


def test_zero_sizes_and_fractions() -> None:
    empty = paddle.zeros([0, 2])
    shapes = ([-1, 0], [2, -1], [2, 3, 0], [0])
    assert [paddle.reshape(empty, shape).shape for shape in shapes] == [[0, 2], [2, 0], [2, 3, 0], [0]]
    for shape in ([0, -1], [2, 0, -1]):
        with pytest.raises(ValueError, match="elements"):
            paddle.reshape(paddle.zeros([0]), shape)
    with pytest.raises(TypeError):
        paddle.trapezoid(paddle.ones([2, 2], "int64"))
    assert sorted(paddle.reader.shuffle(lambda: iter(range(3)), 0)()) == [0, 1, 2]


def test_names_of_parameters_are_reset() -> None:
    from framework.paddle.utils import unique_name

    with unique_name.guard():
        paddle.create_parameter([1], "float32", attr=paddle.ParamAttr("reset_name"))
        unique_name.dygraph_parameter_name_checker._name_set = set()
        paddle.create_parameter([1], "float32", attr=paddle.ParamAttr("reset_name"))


def test_positions_of_take_may_be_fed() -> None:
    paddle.enable_static()
    try:
        with static.program_guard(static.Program()):
            x, index = static.data("x", [2, 2]), static.data("index", [1], "int64")
            out = paddle.take(x, index)
            feed = {"x": np.arange(4, dtype=np.float32).reshape(2, 2), "index": np.array([-1])}
            assert static.Executor().run(feed=feed, fetch_list=[out])[0] == [3.0]
    finally:
        paddle.disable_static()


def test_heads_of_paddles_operator_tests_can_be_imported() -> None:
    from framework.paddle.autograd.ir_backward import grad
    from framework.paddle.decomposition import decompose

    from framework.paddle.incubate.autograd import primapi

    for function in (grad, decompose, primapi.to_prim):
        with pytest.raises(AttributeError, match="no counterpart"):
            function(None)
    assert primapi.forward_grad is paddle.incubate.autograd.forward_grad


def test_memory_of_the_host_is_told_where_the_system_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    core = paddle.base.core
    now, most = (
        getattr(core, f"host_memory_stat_{kind}_value")("Allocated", 0) for kind in ("current", "peak")
    )
    assert 0 < now <= most * 1.01
    monkeypatch.setitem(sys.modules, "resource", None)  # as on Windows
    assert core.host_memory_stat_peak_value("Allocated", 0) == 0


def test_operations_of_programs_stay_whole() -> None:
    from framework.paddle.incubate.autograd import prim2orig

    with paddle.static.program_guard(paddle.static.Program()):
        block = paddle.static.default_main_program().current_block()
        prim2orig(block)
        with pytest.raises(AssertionError, match="current block"):
            prim2orig(paddle.static.Program().global_block())


def test_memory_efficient_attention_is_the_plain_formula() -> None:
    from framework.paddle.incubate.nn.memory_efficient_attention import memory_efficient_attention

    paddle.seed(3)
    q, k, v = (paddle.randn([1, 3, 2, 4]) for _ in range(3))
    scores = 0.7 * np.einsum("nqhd,nkhd->nhqk", q.numpy(), k.numpy()) + np.triu(np.full((3, 3), -np.inf), 1)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    expected = np.einsum("nhqk,nkhd->nqhd", weights, v.numpy())
    out = memory_efficient_attention(q, k, v, attn_bias.LowerTriangularMask(), scale=0.7)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
def test_unpadded_attention_is_that_of_each_sequence(causal: bool) -> None:
    from framework.paddle.nn.functional import flash_attention as module

    paddle.seed(4)
    q, k, v = (paddle.randn([5, 2, 4]) for _ in range(3))
    starts = paddle.to_tensor([0, 2, 5], "int32")
    out, weights = module.flash_attn_unpadded(q, k, v, starts, starts, 3, 3, 0.5, causal=causal)
    each = [
        module.flash_attention(*(x[begin:end].unsqueeze(0) for x in (q, k, v)), causal=causal)[0].squeeze(0)
        for begin, end in ((0, 2), (2, 5))
    ]
    np.testing.assert_allclose(out.numpy(), paddle.concat(each).numpy(), rtol=1e-5, atol=1e-6)
    assert weights is None
    with pytest.raises(NotImplementedError, match="weights"):
        module.flash_attn_unpadded(q, k, v, starts, starts, 3, 3, 0.5, return_softmax=True)
