"""A ResNet of 20 layers on CIFAR-10."""

import io
import zipfile

import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from exchange import STEPS, data, report, start
from paddle.vision import transforms as T
from PIL import Image


class Cifar(paddle.io.Dataset):
    def __init__(self, transform):
        super().__init__()
        self.transform = transform
        folder = data("cifar10_jpg")
        if folder is None:
            rng = np.random.RandomState(0)
            self.samples = [
                (Image.fromarray(rng.randint(0, 255, (32, 32, 3), "uint8")), i % 10) for i in range(640)
            ]
            return
        with zipfile.ZipFile(folder / "train.zip") as archive:
            names = sorted(name for name in archive.namelist() if name.endswith(".jpg"))
            classes = sorted({name.split("/")[-2] for name in names})
            order = np.random.RandomState(0).permutation(len(names))[:640]
            self.samples = [
                (
                    Image.open(io.BytesIO(archive.read(names[i]))).convert("RGB"),
                    classes.index(names[i].split("/")[-2]),
                )
                for i in order
            ]

    def __getitem__(self, index):
        image, label = self.samples[index]
        return self.transform(image), np.array([label], "int64")

    def __len__(self):
        return len(self.samples)


class BasicBlock(nn.Layer):
    def __init__(self, in_channels, out_channels, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2D(in_channels, out_channels, 3, stride=stride, padding=1, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(out_channels)
        self.conv2 = nn.Conv2D(out_channels, out_channels, 3, padding=1, bias_attr=False)
        self.bn2 = nn.BatchNorm2D(out_channels)
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2D(in_channels, out_channels, 1, stride=stride, bias_attr=False),
                nn.BatchNorm2D(out_channels),
            )
        else:
            self.shortcut = nn.Identity()

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + self.shortcut(x))


class ResNet20(nn.Layer):
    def __init__(self, num_classes=10):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2D(3, 16, 3, padding=1, bias_attr=False), nn.BatchNorm2D(16), nn.ReLU()
        )
        blocks, channels = [], 16
        for width in (16, 32, 64):
            for i in range(3):
                blocks.append(BasicBlock(channels, width, 2 if i == 0 and width != 16 else 1))
                channels = width
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2D(1)
        self.fc = nn.Linear(64, num_classes)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.fc(paddle.flatten(self.pool(x), 1))


paddle.seed(7)
transform = T.Compose([T.Resize(32), T.ToTensor(), T.Normalize([0.491, 0.482, 0.447], [0.247, 0.243, 0.262])])
loader = paddle.io.DataLoader(Cifar(transform), batch_size=32, shuffle=False, drop_last=True)
model = start(ResNet20())
schedule = paddle.optimizer.lr.LinearWarmup(
    paddle.optimizer.lr.CosineAnnealingDecay(0.01, T_max=200), warmup_steps=200, start_lr=0.0, end_lr=0.01
)
optimizer = paddle.optimizer.Momentum(
    schedule, momentum=0.9, parameters=model.parameters(), weight_decay=paddle.regularizer.L2Decay(5e-4)
)
criterion = nn.CrossEntropyLoss()
accuracy = paddle.metric.Accuracy()
step = 0
model.train()
while step < STEPS:
    for images, labels in loader:
        if step == STEPS:
            break
        logits = model(images)
        loss = criterion(logits, labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        schedule.step()
        accuracy.update(accuracy.compute(logits, labels))
        report("loss", loss)
        step += 1
model.eval()
with paddle.no_grad():
    report("eval", F.softmax(model(images)).max(axis=1)[:4])
print("loss", float(loss), "accuracy", accuracy.accumulate(), "lr", optimizer.get_lr())
