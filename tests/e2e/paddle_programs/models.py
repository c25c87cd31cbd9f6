"""Building networks: Layer, Sequential, LayerList, parameters, buffers, hooks, state, zoo models."""

import itertools

import numpy as np
import paddle
from exchange import report, start
from paddle import nn


class Mlp(nn.Layer):
    def __init__(self, sizes, name=None):
        super().__init__(name)
        self.layers = nn.LayerList([nn.Linear(a, b) for a, b in itertools.pairwise(sizes)])
        self.scale = self.create_parameter([1], default_initializer=nn.initializer.Constant(2.0))
        self.add_parameter("shift", self.create_parameter([sizes[-1]], is_bias=True))
        self.register_buffer("calls", paddle.zeros([1], dtype="int64"))
        self.act = nn.GELU()

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = self.act(layer(x))
        self.calls += 1
        return self.layers[-1](x) * self.scale + self.shift


x = paddle.to_tensor(np.linspace(-1, 1, 12).reshape(3, 4).astype("float32"))
mlp = start(Mlp([4, 6, 6, 2]))
report("out", mlp(x))
report("calls", mlp.calls)
names = [name for name, _ in mlp.named_parameters()]
print(names, [name for name, _ in mlp.named_sublayers()], len(mlp.sublayers()), len(list(mlp.children())))
assert names[:2] == ["scale", "shift"] and "layers.0.weight" in names
assert set(mlp.state_dict()) == {*names, "calls"}
print(mlp)
report("count", sum(int(np.prod(p.shape)) for p in mlp.parameters() if p.trainable))

net = nn.Sequential(
    ("conv", nn.Conv2D(3, 8, 3, padding=1)),
    ("norm", nn.BatchNorm2D(8)),
    ("act", nn.ReLU()),
    ("pool", nn.AdaptiveAvgPool2D((2, 2))),
    ("flat", nn.Flatten()),
    ("fc", nn.Linear(32, 5)),
)
start(net)
image = paddle.to_tensor(np.random.RandomState(0).rand(2, 3, 9, 7).astype("float32"))
report("trained", net(image))
report("mean", net.norm._mean)
net.eval()
report("evaluated", net(image))
net.train()

shapes = []
handle = net["conv"].register_forward_post_hook(lambda layer, inputs, output: shapes.append(output.shape))
before = net[1].register_forward_pre_hook(lambda layer, inputs: (inputs[0] * 2,))
report("hooked", net(image))
handle.remove()
before.remove()
net(image)
assert shapes == [[2, 8, 9, 7]]

twin = Mlp([4, 6, 6, 2])
missing, unexpected = twin.set_state_dict(mlp.state_dict())
assert not missing and not unexpected
report("twin", twin(x) - mlp(x))
for parameter in twin.layers[0].parameters():
    parameter.stop_gradient = True
loss = twin(x).sum()
loss.backward()
assert twin.layers[0].weight.grad is None and twin.layers[1].weight.grad is not None
report("grad", twin.layers[1].bias.grad)

sizes = nn.LayerDict({"a": nn.Linear(4, 1), "b": nn.Identity()})
assert list(sizes.keys()) == ["a", "b"]
listed = nn.ParameterList([paddle.create_parameter([2, 2], "float32") for _ in range(3)])
assert len(listed) == 3


def ones(layer):
    if isinstance(layer, nn.Linear):
        layer.weight.set_value(paddle.ones_like(layer.weight))
        layer.bias.set_value(np.zeros(layer.bias.shape, "float32"))


mlp.apply(ones)
report("ones", mlp(x))
resnet = paddle.vision.models.resnet18(num_classes=7)
report("resnet", sum(int(np.prod(p.shape)) for p in resnet.parameters()))
resnet.eval()
print(resnet(paddle.rand([1, 3, 64, 64])).shape, paddle.summary(net, (1, 3, 8, 8)))
half = nn.Linear(2, 2).to(dtype="float64")
assert half.weight.dtype == paddle.float64
