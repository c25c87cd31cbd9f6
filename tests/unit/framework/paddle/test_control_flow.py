"""Control flow over Tensors in to_static functions: the same results as eager, for every branch."""

from __future__ import annotations

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import TraceError
from framework.paddle.jit import to_static


def early_return(x):
    if x > 3:
        return x * 2
    return x + 1


def counted(x):
    i = 0
    while x < 100.0:
        x = x * 2
        i += 1
    return x, i


def broken(x):
    y = x
    for i in range(5):
        if y > 10.0:
            break
        if i == 1:
            continue
        y = y * 2
    return y


def logic(x):
    if (x > 0 and x < 5) or not x > -3:
        y = x * 2
    elif x > 100:
        z = x + 1
        y = z * z
    else:
        y = -x
    return y


def chained(x):
    if 0 < x < 2:
        if x > 1:
            return x * 10
        y = x * 3
    else:
        y = x
    y = y + 1
    if y > 5:
        return y
    return y * 7


def helper(x):
    if x > 2:
        return x * x
    return x


def called(x):
    return helper(x) + (x if x > 1 else -x)


def endless(x):
    while True:
        x = x * 2
        if x.abs() > 50.0:
            break
    return x


def ranged(x):
    total = x * 0
    for i in range(paddle.cast(x.abs(), "int64")):
        total = total + i
    return total


def nested(x):
    k = x * 0
    while k < 3:
        j = k * 0
        while j < x:
            j = j + 1
            x = x - 0.25
        k = k + 1
    return x, k


@pytest.mark.parametrize(
    "function", [early_return, counted, broken, logic, chained, called, endless, ranged, nested]
)
def test_converted_functions_do_what_they_did(function):
    static = to_static(function)
    for value in (0.5, 1.5, 4.0, 7.0):
        expected, found = function(paddle.to_tensor(value)), static(paddle.to_tensor(value))
        for a, b in zip(np.atleast_1d(expected), np.atleast_1d(found), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


def test_gradients_take_the_branch_that_ran():
    static = to_static(early_return)
    for value, expected in ((4.0, 2.0), (1.0, 1.0)):
        x = paddle.to_tensor(value, stop_gradient=False)
        static(x).backward()
        assert float(x.grad) == expected


def test_gradients_reach_what_a_branch_gives_back_as_it_is():
    def either(a, b):
        return paddle.static.nn.cond(a.sum() < b.sum(), lambda: a, lambda: b * 2)

    for static in (either, to_static(either)):
        for start, expected in ((0.0, [1.0, None]), (2.0, [None, 2.0])):
            a = paddle.to_tensor([start], stop_gradient=False)
            b = paddle.to_tensor([1.0], stop_gradient=False)
            static(a, b).backward()
            assert [None if t.grad is None else float(t.grad) or None for t in (a, b)] == expected


def test_a_loop_of_unknown_length_has_no_gradient_and_says_so():
    x = paddle.to_tensor(1.0, stop_gradient=False)
    out, _ = to_static(counted)(x)
    assert float(out) == 128
    with pytest.raises(TraceError, match="no gradient"):
        out.backward()


class Inner(paddle.nn.Layer):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return x * 0


def test_layers_in_containers_are_converted():
    net = to_static(paddle.nn.Sequential(Inner(), paddle.nn.ReLU()))
    assert net(paddle.to_tensor([1.0, 2.0])).numpy().tolist() == [1, 2]
    assert net(paddle.to_tensor([-1.0, 0.0])).numpy().tolist() == [0, 0]


def test_branches_of_different_kinds_are_refused():
    @to_static(full_graph=True)
    def run(x):
        if x > 0:
            y = x
        else:
            y = paddle.ones([3])
        return y

    with pytest.raises(TraceError, match="different things"):
        run(paddle.to_tensor(1.0))


def test_a_variable_of_one_branch_cannot_be_used():
    @to_static(full_graph=True)
    def run(x):
        if x > 0:
            only = x
        return only + 1

    with pytest.raises(TraceError, match="'only'"):
        run(paddle.to_tensor(1.0))


def _items(x):
    items = {"a": 1, "b": [x, x]}
    if x.sum() > 2:
        items["a"] = 2
        items["b"][0] = x * 2
    else:
        items["a"] = 3
    return items


def test_a_branch_that_is_not_taken_leaves_lists_and_dicts_alone():
    run = to_static(_items)
    for values, expected in (([1.0, 2.0], 2), ([0.0, 1.0], 3)):
        x = paddle.to_tensor(values)
        items, plain = run(x), _items(x)
        assert int(items["a"]) == expected
        assert [t.tolist() for t in items["b"]] == [t.tolist() for t in plain["b"]]


def test_branches_append_to_lists_and_share_none():
    def appended(x, outputs):
        if x.sum() > 2:
            outputs.append(x + 1)
        else:
            outputs.append(x - 1)
        return outputs[0]

    run = to_static(appended)
    assert run(paddle.to_tensor([3.0]), []).tolist() == [4.0]
    assert run(paddle.to_tensor([1.0]), []).tolist() == [0.0]


def test_loops_set_items_of_lists_and_dicts():
    def counted(x):
        last, seen = {"i": -1}, [[0, x]]
        for i in range(paddle.shape(x)[0]):
            last["i"] = i
            seen[0][0] = seen[0][0] + i
        return last["i"], seen[0][0], seen[0][1]

    last, total, same = to_static(counted)(paddle.to_tensor([5.0, 6.0, 7.0]))
    assert (int(last), int(total), same.tolist()) == (2, 3, [5.0, 6.0, 7.0])


def test_a_list_that_grows_in_a_loop_is_refused():
    def grown(x):
        outputs = []
        i = paddle.zeros([], "int64")
        while i < x.sum():
            outputs.append(i)
            i = i + 1
        return outputs

    with pytest.raises(TraceError, match="changes its size in a loop"):
        to_static(grown, full_graph=True)(paddle.to_tensor([3.0]))


class _Settings:
    def __init__(self):
        self.kind, self.total, self.names = 1, paddle.zeros([]), [0]


def test_a_branch_that_is_not_taken_leaves_attributes_alone():
    def run(x):
        settings = _Settings()
        if x.sum() > 2:
            settings.kind = 2
        else:
            settings.kind = 3
            settings.total = x.sum()
            settings.names[0] = 4
        for i in range(paddle.shape(x)[0]):
            settings.total = settings.total + i
        return settings.kind, settings.total, settings.names[0]

    compiled = to_static(run, full_graph=True)
    for values in ([1.0, 2.0, 3.0], [0.0, 1.0, 0.5]):
        x = paddle.to_tensor(values)
        assert [float(v) for v in compiled(x)] == [float(v) for v in run(x)]


def test_layers_keep_their_attributes_in_branches():
    class Counter(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", paddle.zeros([]))

        def forward(self, x):
            if x.sum() > 2:
                self.count = self.count + 1
            return x + self.count

    layer = to_static(Counter())
    assert [layer(paddle.to_tensor([v])).item() for v in (3.0, 1.0, 3.0)] == [4.0, 2.0, 5.0]
    assert layer.count.item() == 2


def test_what_a_loop_sets_has_its_last_value_after_it():
    """Also the counter; the values are those of Paddle 2.6.2."""

    @paddle.jit.to_static
    def run(x, count):
        for i in range(count):
            y = x * i
            if y.sum() > 20:
                break
        return y, i

    y, i = run(paddle.to_tensor([1.0, 2.0]), paddle.to_tensor(10))
    assert y.tolist() == [7, 14] and int(i) == 7


def test_what_a_turn_reads_of_the_turn_before_is_not_zero():
    @paddle.jit.to_static
    def run(count):
        total = paddle.zeros([1])
        for i in range(count):
            if i > 0:
                total = total + kept  # noqa: F821
            kept = total + i  # noqa: F841
        return total

    assert run(paddle.to_tensor(3)).item() == 1  # run as Python: the first turn has no `kept`


def test_a_number_in_a_loop_takes_the_type_of_the_tensor_before_it():
    @paddle.jit.to_static
    def run(count):
        x, i = paddle.to_tensor(1.5), paddle.zeros([], "int64")
        while i < count:
            x = 2
            i += 1
        return x

    two, first = run(paddle.to_tensor(3)), run(paddle.to_tensor(0))
    assert two.dtype == paddle.float32 and (two.item(), first.item()) == (2, 1.5)
