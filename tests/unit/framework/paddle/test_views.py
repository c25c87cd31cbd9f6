"""Tensors over the memory of another one: values asked of Paddle 2.6.2, gradients of those of the new values."""

from __future__ import annotations

import copy
import pickle
import weakref

import numpy as np
import pytest

import framework.paddle as paddle


def _numbers(*shape: int) -> paddle.Tensor:
    return paddle.arange(float(np.prod(shape))).reshape(list(shape)).clone()


VIEWS = {
    "position": lambda x: x[1],
    "position from behind": lambda x: x[-1],
    "position in a Tensor": lambda x: x[paddle.to_tensor(1)],
    "slice": lambda x: x[:, 1:],
    "slice of fixed length": lambda x: x[:, 1:3],
    "slice with a step": lambda x: x[:, ::2],
    "slice backwards": lambda x: x[:, ::-1],
    "new axis": lambda x: x[None, 0],
    "ellipsis": lambda x: x[..., 1],
    "whole": lambda x: x[:],
    "iteration": lambda x: list(x)[1],
    "reshape": lambda x: paddle.reshape(x=x, shape=[6, 4]),
    "view": lambda x: x.view([4, 6]),
    "view_as": lambda x: x.view_as(paddle.zeros([4, 6])),
    "flatten": lambda x: x.flatten(1),
    "squeeze": lambda x: x.reshape([2, 1, 12]).squeeze(1),
    "unsqueeze": lambda x: x.unsqueeze([0, 2]),
    "unflatten": lambda x: paddle.unflatten(x, 2, [2, 2]),
    "transpose": lambda x: x.transpose([2, 0, 1]),
    "transpose and a part": lambda x: x.transpose([2, 0, 1])[1, :, 2:],
    "reshape of transposed axes": lambda x: x.transpose([2, 0, 1]).reshape([4, 6]),
    "t": lambda x: x[0].t(),
    "T": lambda x: x.T,
    "moveaxis": lambda x: paddle.moveaxis(x, [0, 1], [-1, 0]),
    "unbind": lambda x: x.unbind(1)[2],
    "slice of names": lambda x: paddle.slice(x, [1], [0], [2]),
    "strided_slice": lambda x: paddle.strided_slice(x, [1], [0], [3], [2]),
    "diagonal": lambda x: paddle.diagonal(x, 1, axis1=1, axis2=2),
    "diagonal below": lambda x: paddle.diagonal(x, -1, axis1=1, axis2=2),
    "as_strided": lambda x: paddle.as_strided(x, [4, 3], [6, 2]),
    "unfold": lambda x: x.flatten().unfold(0, 4, 4),
    "detach": lambda x: x.detach(),
}
COPIES = {
    "list": lambda x: x[[0, 1]],
    "mask": lambda x: x[x > -1],
    "split": lambda x: paddle.split(x, 3, 1)[1],
    "chunk": lambda x: x.chunk(2)[0],
    "unstack": lambda x: paddle.unstack(x)[1],
    "crop": lambda x: paddle.crop(x, [1, 2, 2], [0, 0, 0]),
    "expand": lambda x: x.expand([2, 3, 4]),
    "astype": lambda x: x.astype("float32"),
    "clone": lambda x: x.clone(),
    "assign": lambda x: paddle.assign(x),
    "flatten of transposed axes": lambda x: x.transpose([1, 0, 2]).flatten(),
    "contiguous": lambda x: x.T.contiguous(),
}


@pytest.mark.parametrize("name", VIEWS)
def test_both_see_what_is_written_to_one(name):
    x = _numbers(2, 3, 4)
    numbers = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    view = VIEWS[name](x)
    seen = view.numpy().astype(int).ravel()  # the elements of x that the view is of
    view.scale_(2.0)
    numbers.ravel()[seen] *= 2
    np.testing.assert_array_equal(x.numpy(), numbers)
    x.add_(paddle.to_tensor(5.0))
    np.testing.assert_array_equal(view.numpy().ravel(), numbers.ravel()[seen] + 5)


@pytest.mark.parametrize("name", COPIES)
def test_what_paddle_copies_is_a_copy(name):
    x = _numbers(2, 3, 4)
    part = COPIES[name](x)
    before = part.numpy()
    x.fill_(-1.0)
    np.testing.assert_array_equal(part.numpy(), before)
    part.fill_(7.0)
    assert (x.numpy() == -1).all()


def test_chained_indices_assign():
    x = paddle.zeros([3, 3])
    for i in range(3):
        for j in range(3):
            x[i][j] += i + j / 10
    x[0][paddle.to_tensor([1, 2])] = 9.0
    np.testing.assert_allclose(x.numpy(), [[0, 9, 9], [1, 1.1, 1.2], [2, 2.1, 2.2]], rtol=1e-6)


@pytest.mark.parametrize(
    "write",
    [
        lambda view: view.set_value(np.ones(3, np.float32)),
        lambda view: view.copy_(paddle.ones([3]), True),
        lambda view: paddle.assign(paddle.ones([3]), view),
        lambda view: view.fill_(1.0),
        lambda view: paddle.nn.initializer.Constant(1.0)(view),
    ],
)
def test_every_way_to_write_reaches_the_other(write):
    x = paddle.zeros([2, 3])
    write(x[1])
    np.testing.assert_array_equal(x.numpy(), [[0, 0, 0], [1, 1, 1]])


def test_views_of_views_have_one_memory():
    x = paddle.zeros([2, 3, 4])
    first, second = x[1], x[1].transpose([1, 0])
    second[0] = 5.0
    flat = x.reshape([-1])
    flat[-1] = 9.0
    assert first.numpy().tolist() == [[5, 0, 0, 0], [5, 0, 0, 0], [5, 0, 0, 9]]
    assert second.numpy().tolist() == first.numpy().T.tolist()


def test_the_memory_outlives_its_first_tensor():
    x = paddle.zeros([6])
    rows, flat = x.reshape([2, 3]), x.reshape([1, 6])
    gone = weakref.ref(x)
    del x
    assert gone() is None
    rows[1][0] = 4.0
    assert flat.numpy().tolist() == [[0, 0, 0, 4, 0, 0]]


def test_a_view_does_not_keep_the_history_of_what_it_is_of():
    weight = paddle.ones([3])
    weight.stop_gradient = False
    loss = (weight * 2).sum()
    kept, history = loss.detach(), weakref.ref(loss)
    del loss
    assert history() is None and kept.item() == 6


def test_gradients_are_those_of_the_new_values():
    leaf = paddle.arange(6.0).reshape([2, 3]).clone()
    leaf.stop_gradient = False
    value = paddle.to_tensor([9.0], stop_gradient=False)
    x = leaf + 1
    x[0][1] = value
    (x * paddle.arange(1.0, 7).reshape([2, 3])).sum().backward()
    assert leaf.grad.numpy().tolist() == [[1, 0, 3], [4, 5, 6]] and value.grad.item() == 2

    leaf.clear_grad()
    x = leaf * 2
    x.reshape([6]).scale_(3.0)
    (x * x).sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), 72 * leaf.numpy())

    leaf.clear_grad()
    x = leaf * 2
    row = x[0]
    x.scale_(3.0)
    (row * row).sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), [[0, 72, 144], [0, 0, 0]])


def test_a_row_of_a_parameter_is_set():
    embedding = paddle.nn.Embedding(4, 3)
    with paddle.no_grad():
        embedding.weight[1].fill_(0.0)
    assert (embedding.weight.numpy()[1] == 0).all() and embedding.weight.is_leaf
    row = embedding.weight[2]
    embedding(paddle.to_tensor([2])).sum().backward()
    optimizer = paddle.optimizer.SGD(0.5, parameters=embedding.parameters())
    before = row.numpy()
    optimizer.step()
    np.testing.assert_allclose(row.numpy(), before - 0.5)  # Paddle's view sees the step
    row.sum().backward()
    assert embedding.weight.grad.numpy().sum() == 6


def test_a_new_shape_keeps_the_memory_and_a_new_type_does_not():
    x = paddle.zeros([2, 3])
    row = x[0]
    x.reshape_([6])
    x[0] = 3.0
    assert row.numpy().tolist() == [3, 0, 0]
    x.cast_("int32")
    x[1] = 8
    assert row.numpy().tolist() == [3, 0, 0] and x.numpy().tolist() == [3, 8, 0, 0, 0, 0]
    y = paddle.zeros([2, 3])
    column = y[:, 0]
    y.transpose_([1, 0])
    y.fill_(1.0)
    assert column.numpy().tolist() == [0, 0]


def test_compiled_functions_write_through_views():
    class Counter(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.register_buffer("rows", paddle.zeros([2, 3]))

        def forward(self, i, value):
            self.rows[i][1] = value
            return self.rows.sum()

    counter = Counter()
    row = counter.rows[1]
    compiled = paddle.jit.to_static(counter.forward)
    position = paddle.to_tensor(1)
    totals = [compiled(position, paddle.to_tensor(value)).item() for value in (2.0, 3.0, 4.0)]
    assert totals == [2, 3, 4]
    assert counter.rows.numpy().tolist() == [[0, 0, 0], [0, 4, 0]] and row.numpy().tolist() == [0, 4, 0]


def test_copies_of_views_are_their_own():
    x = paddle.zeros([2, 3])
    view = x[0]
    x.fill_(2.0)
    for other in (copy.deepcopy(view), pickle.loads(pickle.dumps(view))):
        assert other.numpy().tolist() == [2, 2, 2]
        other.fill_(5.0)
    assert (x.numpy() == 2).all()


def test_strides():
    x = paddle.zeros([2, 3, 4])
    view = x.transpose([2, 0, 1])
    assert view.get_strides() == [1, 12, 4] and not view.is_contiguous() and x.is_contiguous()
    assert view.contiguous().get_strides() == [6, 3, 1] and x[1].get_strides() == [4, 1]


def test_nothing_is_kept_of_views_that_are_gone():
    x = paddle.zeros([4, 4])
    kept = x[0]
    for i in range(100):
        x[i % 4].sum()
    assert len(kept._link.storage.views) < 20
    del kept
    assert x._link() is None


def test_programs_of_free_sizes_write_through_views(tmp_path):
    class Marked(paddle.nn.Layer):
        def forward(self, x):
            y = x.transpose([0, 2, 1]) * 1
            y[:, 1:][:, :, 0] = 5.0
            return y

    marked = Marked()
    marked.eval()
    spec = paddle.static.InputSpec([None, None, 4], "float32")
    paddle.jit.save(marked, str(tmp_path / "marked"), input_spec=[spec])
    x = _numbers(2, 3, 4)
    out = paddle.jit.load(str(tmp_path / "marked"))(x).numpy()
    np.testing.assert_array_equal(out, marked(x).numpy())
    assert (out[:, 1:, 0] == 5).all()
