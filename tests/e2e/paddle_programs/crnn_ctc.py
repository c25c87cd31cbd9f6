"""A CRNN with CTC reads number plates."""

import cv2
import numpy as np
import paddle
import paddle.nn as nn
from exchange import STEPS, data, report, start
from paddle.io import DataLoader, Dataset

HEIGHT, WIDTH, LENGTH = 32, 96, 7


class Plates(Dataset):
    def __init__(self, count=160):
        super().__init__()
        folder = data("plates_lpr")
        if folder is None:
            rng = np.random.RandomState(0)
            self.texts = ["".join("0123456789"[i] for i in rng.randint(0, 10, LENGTH)) for _ in range(count)]
            self.images = rng.randint(0, 255, (count, HEIGHT, WIDTH)).astype("uint8")
        else:
            lines = (folder / "labels.txt").read_text(encoding="utf-8").splitlines()
            rows = [line.split("\t") for line in lines]
            rows = [row for row in rows if len(row[1]) == LENGTH][:count]
            self.texts = [text for _, text in rows]
            self.images = [
                cv2.resize(cv2.imread(str(folder / name), cv2.IMREAD_GRAYSCALE), (WIDTH, HEIGHT))
                for name, _ in rows
            ]
        self.alphabet = sorted(set("".join(self.texts)))

    def __getitem__(self, index):
        image = self.images[index].astype("float32")[None] / 127.5 - 1
        label = np.array([self.alphabet.index(c) + 1 for c in self.texts[index]], "int32")  # 0 is the blank
        return image, label

    def __len__(self):
        return len(self.texts)


class CRNN(nn.Layer):
    def __init__(self, num_classes, hidden=48):
        super().__init__()

        def block(in_channels, out_channels, pool):
            return nn.Sequential(
                nn.Conv2D(in_channels, out_channels, 3, padding=1),
                nn.BatchNorm2D(out_channels),
                nn.LeakyReLU(0.1),
                nn.MaxPool2D(pool, stride=pool),
            )

        self.backbone = nn.Sequential(
            block(1, 16, 2), block(16, 32, 2), block(32, 64, (2, 1)), block(64, 64, (4, 1))
        )
        self.rnn = nn.LSTM(64, hidden, num_layers=2, direction="bidirectional")
        self.head = nn.Linear(2 * hidden, num_classes)

    def forward(self, x):
        x = self.backbone(x)  # [N, C, 1, T]
        x = paddle.transpose(x.squeeze(2), [0, 2, 1])
        x, _ = self.rnn(x)
        return self.head(x)


def greedy(logits, alphabet):
    texts = []
    for row in logits.argmax(axis=-1).numpy():
        kept = [i for n, i in enumerate(row) if i != 0 and (n == 0 or row[n - 1] != i)]
        texts.append("".join(alphabet[i - 1] for i in kept))
    return texts


dataset = Plates()
loader = DataLoader(dataset, batch_size=16, shuffle=False, drop_last=True, num_workers=0)
model = start(CRNN(len(dataset.alphabet) + 1))
ctc = nn.CTCLoss(blank=0, reduction="mean")
clip = nn.ClipGradByGlobalNorm(5.0)
optimizer = paddle.optimizer.Adam(learning_rate=2e-3, parameters=model.parameters(), grad_clip=clip)
step = 0
while step < STEPS:
    for images, labels in loader:
        if step == STEPS:
            break
        logits = paddle.transpose(model(images), [1, 0, 2])  # [T, N, C]
        frames = paddle.full([images.shape[0]], logits.shape[0], dtype="int64")
        lengths = paddle.full([images.shape[0]], labels.shape[1], dtype="int64")
        loss = ctc(logits, labels, frames, lengths)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        report("loss", loss)
        step += 1
print("loss", float(loss), greedy(model(images[:2]), dataset.alphabet))
