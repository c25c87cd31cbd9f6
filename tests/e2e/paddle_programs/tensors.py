"""The Tensor: making, shape, type, indexing, arithmetic, broadcasting, NumPy, gradients."""

import numpy as np
import paddle
from exchange import report

one = paddle.to_tensor([2.0, 3.0, 4.0])
two = paddle.to_tensor([[1, 2, 3], [4, 5, 6]])
three = paddle.to_tensor(
    np.arange(24, dtype="float32").reshape(2, 3, 4), place=paddle.CPUPlace(), stop_gradient=False
)
print(one, two, three.shape, three.ndim, three.size, three.dtype, three.place, three.stop_gradient)
assert two.dtype == paddle.int64 and one.dtype == paddle.float32
report("made", paddle.full([2, 3], 1.5) + paddle.zeros([2, 3]) + paddle.ones([3]))
report("made", paddle.arange(1, 5, 2))
report("made", paddle.linspace(1, 10, 5))
report("made", paddle.eye(3) + paddle.diag(paddle.to_tensor([1.0, 2.0, 3.0])))
report("made", paddle.full_like(three, 2) * paddle.tril(paddle.ones_like(three)))

# shape
report("shape", paddle.reshape(three, [2, -1]))
report("shape", three.transpose([2, 0, 1]).flatten())
report("shape", three.unsqueeze(0).squeeze().expand([2, 2, 3, 4])[1])
report("shape", paddle.tile(one, [2, 2]))
first, second = paddle.split(three, num_or_sections=[1, -1], axis=1)
report("shape", first.sum() - second.sum())
report("shape", paddle.stack([one, one + 1], axis=1))
report("shape", paddle.chunk(three, 2, axis=-1)[1])

# type
report("type", paddle.cast(one, "int64") // 2)
report("type", one.astype("float64") / 3)
print((two / 2).dtype, (two + 1.5).dtype, (one > 2).dtype)

# indexing
report("index", three[0, 1:, ::2])
report("index", three[:, -1, [0, 3]])
report("index", three[..., 0])
report("index", three[three > 5].sum())
report("index", paddle.where(three > 5, three, -three))
changed = paddle.zeros([3, 4])
changed[0] = 1.0
changed[:, 1] = paddle.to_tensor([7.0, 8.0, 9.0])
changed[1:, 2:] = paddle.ones([2, 2]) * 3
report("index", changed)

# arithmetic
report("math", (one + 1) * 2 - one / 3)
report("math", one**2 % 3)
report("math", paddle.matmul(three, three, transpose_y=True))
report("math", three.mean(axis=[0, 2]))
report("math", paddle.max(three, axis=1, keepdim=True))
report("math", three.std())
report("math", paddle.cumsum(two, axis=1))
report("math", two.prod(axis=0))
report("math", paddle.norm(three, p=2))
report("math", paddle.dot(one, one))
report("math", paddle.clip(one.exp().log1p().rsqrt(), 0.2, 0.9))
values, indices = paddle.topk(three, k=2, axis=-1)
report("math", values)
report("math", indices)
report("math", paddle.argsort(one, descending=True))
report("math", paddle.einsum("ijk,k->ij", three, paddle.ones([4])))
print(paddle.allclose(one, one + 1e-9), bool((one == one).all()), paddle.equal_all(one, one))

# in place
copy = one.clone()
copy.add_(paddle.to_tensor([1.0, 1.0, 1.0])).scale_(2.0)
copy[0] += 1
report("in_place", copy)
assert one.numpy().tolist() == [2.0, 3.0, 4.0]

# gradients
x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]], stop_gradient=False)
y = (x**3).sum() + (x @ x.T).mean()
y.backward()
report("gradient", x.grad)
x.clear_gradient()
z = paddle.tanh(x)
(g,) = paddle.grad(z.sum(), x, create_graph=True)
(h,) = paddle.grad(g.sum(), x)
report("gradient", g)
report("gradient", h)
w = paddle.rand([3, 2])
assert w.shape == [3, 2] and float(w.min()) >= 0 and float(w.max()) < 1
for row in paddle.unbind(x, axis=0):
    report("rows", row.detach())
print(len(x), [float(v) for v in x[0]], x.tolist(), np.asarray(x) + 1)
