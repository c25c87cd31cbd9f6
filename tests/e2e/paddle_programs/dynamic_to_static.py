"""to_static: functions, layers, branches and loops over Tensors, saving and serving."""

import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from exchange import report, start
from paddle.jit import to_static
from paddle.static import InputSpec


@to_static
def scaled(x, limit=10.0):
    if paddle.mean(x) > 0:
        y = x - 1
    else:
        y = x + 1
    i = paddle.zeros([1], dtype="int32")
    while paddle.abs(y).sum() < limit and i < 20:
        y = y * 2
        i = i + 1
    return y, i


for sign in (1.0, -1.0):
    y, i = scaled(paddle.to_tensor([1.5, 2.25, 0.5]) * sign)
    report("loop", y)
    report("loop", i)


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc1, self.norm = nn.Linear(6, 12, bias_attr=False), nn.BatchNorm1D(12)
        self.fc2 = nn.Linear(12, 3)

    @to_static(input_spec=[InputSpec(shape=[None, 6], dtype="float32", name="x")])
    def forward(self, x):
        x = F.relu(self.norm(self.fc1(x)))
        for _ in range(2):
            x = x + paddle.tanh(x)
        return self.fc2(x)


rng = np.random.RandomState(0)
X = paddle.to_tensor(rng.standard_normal((24, 6)).astype("float32"))
Y = paddle.to_tensor(rng.randint(0, 3, (24, 1)).astype("int64"))
net = start(Net())
optimizer = paddle.optimizer.Adam(learning_rate=0.02, parameters=net.parameters())
for _ in range(10):
    loss = F.cross_entropy(net(X), Y)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    report("loss", loss)
net.eval()
report("eval", net(X[:2]))
paddle.jit.save(net, "net")
served = paddle.jit.load("net")
report("served", served(X[:5]))

plain = start(nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2)))
compiled = paddle.jit.to_static(plain)
report("compiled", compiled(X))


@paddle.jit.to_static
def total(x, n):
    out = paddle.zeros([1])
    for i in range(n):
        if i % 2 == 0:
            out += x.sum() * i
        else:
            out -= x.mean()
    return out


report("total", total(X, 5))
report("total", total(X, paddle.to_tensor(4)))
with paddle.no_grad():
    report("total", total(X, 3))
