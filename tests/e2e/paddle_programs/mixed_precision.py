"""Automatic mixed precision in bfloat16, and the loss scaler."""

import numpy as np
import paddle
import paddle.nn as nn
from exchange import report, start

rng = np.random.RandomState(0)
X = paddle.to_tensor(rng.standard_normal((32, 16)).astype("float32"))
Y = paddle.to_tensor(rng.standard_normal((32, 4)).astype("float32"))


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(16, 64), nn.Linear(64, 4)

    def forward(self, x):
        return self.fc2(nn.functional.relu(self.fc1(x)))


def train(name, level):
    net = start(Net())
    optimizer = paddle.optimizer.SGD(learning_rate=0.05, parameters=net.parameters())
    scaler = paddle.amp.GradScaler(init_loss_scaling=1024, enable=level != "O0")
    for _ in range(10):
        with paddle.amp.auto_cast(
            enable=level != "O0", level=level, dtype="bfloat16", custom_black_list={"mean"}
        ):
            out = net(X)
            loss = nn.functional.mse_loss(out.astype("float32"), Y)
        scaled = scaler.scale(loss)
        scaled.backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()
        report(name, loss)
    print(name, out.dtype, float(loss))


train("plain", "O0")
train("mixed", "O1")  # which Paddle 2.6 does on GPUs alone: float32 stays float32 on the CPU
with paddle.amp.auto_cast(dtype="bfloat16"):
    product = paddle.matmul(X, X, transpose_y=True)
    total = paddle.nn.functional.softmax(product)
print(product.dtype, total.dtype)
report("softmax", total.astype("float32").sum())
model, optimizer = paddle.amp.decorate(
    models=Net(), optimizers=paddle.optimizer.SGD(parameters=[]), level="O1", dtype="bfloat16"
)
print(model.fc1.weight.dtype)
