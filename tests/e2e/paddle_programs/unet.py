"""A small U-Net finds cell membranes."""

import itertools

import cv2
import numpy as np
import paddle
import paddle.nn.functional as F
from exchange import STEPS, data, report, start
from paddle import nn


def membrane(size=96):
    """Patches [N, 1, H, W] of microscope images, and their labels [N, H, W]."""
    folder, rng = data("membrane"), np.random.RandomState(3)
    if folder is None:
        images = rng.rand(16, 1, size, size).astype("float32")
        return images, (images[:, 0] > 0.5).astype("int64")
    images, labels = [], []
    for file in sorted((folder / "train" / "image").glob("*.png"), key=lambda path: int(path.stem)):
        image = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE)
        label = cv2.imread(str(folder / "train" / "label" / file.name), cv2.IMREAD_GRAYSCALE)
        y, x = rng.randint(0, 512 - size, 2)
        images.append(image[None, y : y + size, x : x + size].astype("float32") / 255)
        labels.append((label[y : y + size, x : x + size] > 127).astype("int64"))
    return np.stack(images), np.stack(labels)


class DoubleConv(nn.Layer):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2D(in_channels, out_channels, 3, padding=1),
            nn.BatchNorm2D(out_channels),
            nn.ReLU(),
            nn.Conv2D(out_channels, out_channels, 3, padding=1),
            nn.BatchNorm2D(out_channels),
            nn.ReLU(),
        )

    def forward(self, x):
        return self.layers(x)


class Up(nn.Layer):
    def __init__(self, in_channels, out_channels, learned):
        super().__init__()
        self.learned = learned
        if learned:
            self.up = nn.Conv2DTranspose(in_channels, in_channels // 2, 2, stride=2)
        else:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.narrow = nn.Conv2D(in_channels, in_channels // 2, 1)
        self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x, skip):
        x = self.up(x)
        if not self.learned:
            x = self.narrow(x)
        dy, dx = skip.shape[2] - x.shape[2], skip.shape[3] - x.shape[3]
        x = F.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.conv(paddle.concat([skip, x], axis=1))


class UNet(nn.Layer):
    def __init__(self, num_classes=2, width=8):
        super().__init__()
        widths = [width * 2**i for i in range(4)]
        self.stem = DoubleConv(1, width)
        self.downs = nn.LayerList([DoubleConv(a, b) for a, b in itertools.pairwise(widths)])
        self.pool = nn.MaxPool2D(2)
        self.ups = nn.LayerList(
            [Up(widths[3], widths[2], True), Up(widths[2], widths[1], False), Up(widths[1], widths[0], True)]
        )
        self.head = nn.Conv2D(width, num_classes, 1)

    def forward(self, x):
        skips = [self.stem(x)]
        for down in self.downs:
            skips.append(down(self.pool(skips[-1])))
        x = skips.pop()
        for up in self.ups:
            x = up(x, skips.pop())
        return self.head(x)


def dice_loss(logits, labels):
    probability = F.softmax(logits, axis=1)[:, 1]
    target = labels.astype("float32")
    inside = paddle.sum(probability * target, axis=[1, 2])
    total = paddle.sum(probability + target, axis=[1, 2])
    return 1 - ((2 * inside + 1) / (total + 1)).mean()


images, labels = membrane()
model = start(UNet())
weight = paddle.to_tensor([2.0, 1.0])
optimizer = paddle.optimizer.AdamW(learning_rate=2e-3, parameters=model.parameters(), weight_decay=0.01)
for step in range(STEPS):
    batch = np.arange(4 * step, 4 * step + 4) % len(images)
    x, y = paddle.to_tensor(images[batch]), paddle.to_tensor(labels[batch])
    logits = model(x)
    loss = F.cross_entropy(logits.transpose([0, 2, 3, 1]), y, weight=weight) + dice_loss(logits, y)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    report("loss", loss)
model.eval()
found = paddle.argmax(model(x), axis=1)
both = paddle.logical_and(found == 1, y == 1).sum()
either = paddle.logical_or(found == 1, y == 1).sum()
print("loss", loss.item(), "IoU", float(both) / max(float(either), 1))
