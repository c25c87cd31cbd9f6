"""A DCGAN draws digits."""

import gzip

import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from exchange import STEPS, data, report, start

NOISE, WIDTH, BATCH = 32, 8, 32


def digits(count=640):
    folder = data("mnist_t10k")
    if folder is None:
        return np.random.RandomState(0).rand(count, 28, 28).astype("float32")
    with gzip.open(folder / "train-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), "uint8", offset=16)
    return pixels.reshape(-1, 28, 28)[:count].astype("float32") / 127.5 - 1


def init(layer):
    if isinstance(layer, (nn.Conv2D, nn.Conv2DTranspose)):
        nn.initializer.Normal(0.0, 0.02)(layer.weight)
    elif isinstance(layer, nn.BatchNorm2D):
        layer.weight.set_value(1 + 0.02 * paddle.randn(layer.weight.shape))


class Generator(nn.Layer):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2DTranspose(NOISE, WIDTH * 4, 4, 1, 0, bias_attr=False),
            nn.BatchNorm2D(WIDTH * 4),
            nn.ReLU(),
            nn.Conv2DTranspose(WIDTH * 4, WIDTH * 2, 4, 2, 1, bias_attr=False),
            nn.BatchNorm2D(WIDTH * 2),
            nn.ReLU(),
            nn.Conv2DTranspose(WIDTH * 2, WIDTH, 4, 2, 1, bias_attr=False),
            nn.BatchNorm2D(WIDTH),
            nn.ReLU(True),
            nn.Conv2DTranspose(WIDTH, 1, 4, 2, 1, bias_attr=False),
            nn.Tanh(),
        )

    def forward(self, x):
        return self.net(x)


class Discriminator(nn.Layer):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2D(1, WIDTH, 4, 2, 1, bias_attr=False),
            nn.LeakyReLU(0.2),
            nn.Conv2D(WIDTH, WIDTH * 2, 4, 2, 1, bias_attr=False),
            nn.BatchNorm2D(WIDTH * 2),
            nn.LeakyReLU(0.2),
            nn.Conv2D(WIDTH * 2, WIDTH * 4, 4, 2, 1, bias_attr=False),
            nn.BatchNorm2D(WIDTH * 4),
            nn.LeakyReLU(0.2),
            nn.Conv2D(WIDTH * 4, 1, 4, 1, 0, bias_attr=False),
        )

    def forward(self, x):
        return self.net(x).reshape([-1])


images, rng = digits(), np.random.RandomState(1)
generator, discriminator = Generator(), Discriminator()
generator.apply(init)
discriminator.apply(init)
start(generator, "generator")
start(discriminator, "discriminator")
criterion = nn.BCEWithLogitsLoss()
optimizer_g = paddle.optimizer.Adam(2e-4, beta1=0.5, beta2=0.999, parameters=generator.parameters())
optimizer_d = paddle.optimizer.Adam(2e-4, beta1=0.5, beta2=0.999, parameters=discriminator.parameters())
ones, zeros = paddle.ones([BATCH]), paddle.zeros([BATCH])
for step in range(STEPS):
    rows = np.arange(BATCH * step, BATCH * (step + 1)) % len(images)
    real = F.interpolate(paddle.to_tensor(images[rows]).unsqueeze(1), size=[32, 32], mode="bilinear")
    noise = paddle.to_tensor(rng.standard_normal((BATCH, NOISE, 1, 1)).astype("float32"))

    optimizer_d.clear_grad()
    fake = generator(noise)
    loss_d = criterion(discriminator(real), ones) + criterion(discriminator(fake.detach()), zeros)
    loss_d.backward()
    optimizer_d.step()

    optimizer_g.clear_grad()
    loss_g = criterion(discriminator(fake), ones)
    loss_g.backward()
    optimizer_g.step()
    report("loss_d", loss_d)
    report("loss_g", loss_g)
print("loss_d", float(loss_d), "loss_g", float(loss_g))
