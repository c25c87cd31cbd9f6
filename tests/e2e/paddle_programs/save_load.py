"""Saving and loading: Tensors, states of layers and optimizers, training that goes on, deployed programs."""

import numpy as np
import paddle
import paddle.nn as nn
from exchange import report, start
from paddle.static import InputSpec

rng = np.random.RandomState(0)
X = paddle.to_tensor(rng.standard_normal((16, 5)).astype("float32"))
Y = paddle.to_tensor(rng.randint(0, 3, (16,)).astype("int64"))


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc1, self.norm = nn.Linear(5, 8, bias_attr=False), nn.BatchNorm1D(8)
        self.fc2 = nn.Linear(8, 3)

    def forward(self, x):
        return self.fc2(nn.functional.relu(self.norm(self.fc1(x))))


def made():
    net = Net()
    schedule = paddle.optimizer.lr.ExponentialDecay(0.05, gamma=0.9)
    return net, paddle.optimizer.Adam(schedule, parameters=net.parameters()), schedule


def train(net, optimizer, schedule, steps):
    for _ in range(steps):
        loss = nn.functional.cross_entropy(net(X), Y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        schedule.step()
        report("loss", loss)


net, optimizer, schedule = made()
start(net)
train(net, optimizer, schedule, 4)
paddle.save(net.state_dict(), "net.pdparams")
paddle.save(optimizer.state_dict(), "adam.pdopt")
paddle.save({"epoch": 4, "names": ["a", "b"], "tensor": X[0], "nested": {"list": [1, 2.5]}}, "note.pkl")
train(net, optimizer, schedule, 2)

other, adam, other_schedule = made()
state = paddle.load("net.pdparams")
assert list(state) == list(other.state_dict())
other.set_state_dict(state)
moments = paddle.load("adam.pdopt")
names = dict(zip((p.name for p in net.parameters()), (p.name for p in other.parameters())))


def renamed(key):
    """The second network of a process has other names of parameters, and states of optimizers go by them."""
    return next((new + key[len(old) :] for old, new in names.items() if key.startswith(f"{old}_")), key)


adam.set_state_dict({renamed(key): value for key, value in moments.items()})
train(other, adam, other_schedule, 2)
report("rate", adam.get_lr())
note = paddle.load("note.pkl")
print(note["epoch"], note["names"], note["nested"], type(note["tensor"]).__name__)
report("note", note["tensor"])
arrays = paddle.load("net.pdparams", return_numpy=True)
assert all(isinstance(value, np.ndarray) for value in arrays.values())

paddle.save(X, "x.pdtensor")
report("tensor", paddle.load("x.pdtensor").sum())
net.eval()
report("eval", net(X[:2]))
paddle.jit.save(net, "served/net", input_spec=[InputSpec(shape=[None, 5], dtype="float32", name="x")])
served = paddle.jit.load("served/net")
served.eval()
report("served", served(X[:3]))
report("served", served(X))
