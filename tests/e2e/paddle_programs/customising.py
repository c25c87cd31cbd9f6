"""An own loss, metric, callback, layer, activation and gradient, with paddle.Model and without."""

import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from exchange import report, start
from paddle.autograd import PyLayer

rng = np.random.RandomState(0)
FEATURES = rng.standard_normal((64, 4)).astype("float32")
TARGETS = (FEATURES.sum(1, keepdims=True) > 0).astype("float32")


class Noisy(nn.Layer):
    """A linear layer whose weight is normed by rows."""

    def __init__(self, inputs, outputs, weight_attr=None, bias_attr=None):
        super().__init__()
        self.weight = self.create_parameter([inputs, outputs], attr=weight_attr)
        self.bias = self.create_parameter([outputs], attr=bias_attr, is_bias=True)

    def forward(self, x):
        return F.linear(x, self.weight / paddle.norm(self.weight, axis=0, keepdim=True), self.bias)

    def extra_repr(self):
        return f"{self.weight.shape}"


class FocalLoss(nn.Layer):
    def __init__(self, gamma=2.0):
        super().__init__()
        self.gamma = gamma

    def forward(self, logits, label):
        p = F.sigmoid(logits)
        right = p * label + (1 - p) * (1 - label)
        return paddle.mean(-((1 - right) ** self.gamma) * paddle.log(right + 1e-6))


class Precision(paddle.metric.Metric):
    def __init__(self, name="own_precision"):
        super().__init__()
        self._name = name
        self.reset()

    def compute(self, predicted, label):
        return (F.sigmoid(predicted) > 0.5).astype("float32"), label

    def update(self, found, label):
        found, label = np.asarray(found), np.asarray(label)
        self.true += float((found * label).sum())
        self.all += float(found.sum())
        return self.true / max(self.all, 1.0)

    def accumulate(self):
        return self.true / max(self.all, 1.0)

    def reset(self):
        self.true = self.all = 0.0

    def name(self):
        return self._name


class Losses(paddle.callbacks.Callback):
    def on_train_begin(self, logs=None):
        print("starts with", self.params["epochs"], "epochs of", self.params["steps"], "steps")

    def on_train_batch_end(self, step, logs=None):
        report("loss", np.asarray(logs["loss"]).reshape(-1)[0])

    def on_epoch_end(self, epoch, logs=None):
        report("precision", logs["own_precision"])


class Cube(PyLayer):
    @staticmethod
    def forward(ctx, x, scale=1.0):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return scale * x**3

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return dy * 3 * ctx.scale * x**2


class Clamped(nn.Layer):
    def forward(self, x):
        return paddle.clip(Cube.apply(x, scale=0.5), -1.0, 1.0)


class Rows(paddle.io.Dataset):
    def __getitem__(self, index):
        return FEATURES[index], TARGETS[index]

    def __len__(self):
        return len(FEATURES)


net = nn.Sequential(Noisy(4, 8), Clamped(), Noisy(8, 1, bias_attr=paddle.ParamAttr(learning_rate=0.5)))
start(net)
print(net)
model = paddle.Model(net)
rates = paddle.optimizer.lr.LambdaDecay(learning_rate=0.05, lr_lambda=lambda epoch: 0.9**epoch)
model.prepare(
    paddle.optimizer.Momentum(rates, parameters=net.parameters(), grad_clip=nn.ClipGradByNorm(1.0)),
    FocalLoss(),
    Precision(),
)
model.fit(Rows(), batch_size=16, epochs=3, shuffle=False, verbose=0, callbacks=[Losses()])


class WarmRestarts(paddle.optimizer.lr.LRScheduler):
    def __init__(self, learning_rate, period):
        self.period = period
        super().__init__(learning_rate)

    def get_lr(self):
        return self.base_lr * (1 - (self.last_epoch % self.period) / self.period)


schedule = WarmRestarts(0.1, 3)
groups = [{"params": net[0].parameters()}, {"params": net[2].parameters(), "learning_rate": 0.1}]
sgd = paddle.optimizer.SGD(schedule, parameters=groups)
norms = []


def doubled(gradient):
    norms.append(float(gradient.norm()))
    return gradient * 2


hook = net[0].weight.register_hook(doubled)
for _ in range(5):
    loss = F.smooth_l1_loss(F.sigmoid(net(paddle.to_tensor(FEATURES))), paddle.to_tensor(TARGETS))
    loss.backward()
    sgd.step()
    sgd.clear_grad()
    schedule.step()
    report("by_hand", loss)
    report("rates", sgd.get_lr())
hook.remove()
report("norms", norms)
