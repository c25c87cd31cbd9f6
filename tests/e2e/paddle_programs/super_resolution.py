"""Images three times as large by sub-pixel convolution."""

import math

import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from exchange import STEPS, data, report, start
from paddle.io import DataLoader, Dataset
from paddle.vision.transforms import CenterCrop, Compose, Resize
from PIL import Image

FACTOR, SIZE = 3, 96


class Patches(Dataset):
    def __init__(self, count=80):
        folder = data("imagenet_samples")
        crop = Compose([Resize(112), CenterCrop(SIZE)])
        if folder is None:
            rng = np.random.RandomState(0)
            images = [Image.fromarray(rng.randint(0, 255, (120, 130, 3), "uint8")) for _ in range(count)]
        else:
            files = sorted((folder / "images").glob("*.jpg"))[:count]
            images = [Image.open(file).convert("RGB") for file in files]
        self.large = [crop(image).convert("YCbCr").split()[0] for image in images]

    def __getitem__(self, index):
        large = self.large[index]
        small = large.resize((SIZE // FACTOR, SIZE // FACTOR), Image.BICUBIC)
        to_array = lambda image: np.asarray(image, "float32")[None] / 255  # noqa: E731
        return to_array(small), to_array(large)

    def __len__(self):
        return len(self.large)


class SubPixel(nn.Layer):
    def __init__(self, factor):
        super().__init__()
        self.conv1 = nn.Conv2D(1, 32, 5, padding=2, weight_attr=nn.initializer.KaimingNormal())
        self.conv2 = nn.Conv2D(32, 32, 3, padding="same")
        self.conv3 = nn.Conv2D(32, 16, 3, padding=1)
        self.conv4 = nn.Conv2D(16, factor**2, 3, padding=1)
        self.shuffle = nn.PixelShuffle(factor)
        self.factor = factor

    def forward(self, x):
        smooth = F.interpolate(x, scale_factor=self.factor, mode="bicubic", align_corners=False)
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.relu(self.conv3(x))
        return smooth + self.shuffle(self.conv4(x))


loader = DataLoader(Patches(), batch_size=4, shuffle=False)
model = start(SubPixel(FACTOR))
optimizer = paddle.optimizer.Adam(learning_rate=1e-3, parameters=model.parameters())
step = 0
while step < STEPS:
    for small, large in loader:
        if step == STEPS:
            break
        out = model(small)
        loss = F.mse_loss(out, large) + 0.1 * F.l1_loss(out, large)
        loss.backward()
        optimizer.minimize(loss)
        model.clear_gradients()
        report("loss", loss)
        step += 1
print("loss", float(loss), "PSNR", 10 * math.log10(1 / float(F.mse_loss(out.clip(0, 1), large))))
