"""LeNet on handwritten digits, trained, evaluated and asked by hand."""

import os

import numpy as np
import paddle
import paddle.nn.functional as F
from exchange import STEPS, data, report, start
from paddle.vision.transforms import ToTensor

EPOCHS = int(os.environ.get("PROGRAM_EPOCHS", "0"))  # of all data; 0: some steps only


class LeNet(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv1 = paddle.nn.Conv2D(in_channels=1, out_channels=6, kernel_size=5, stride=1, padding=2)
        self.max_pool1 = paddle.nn.MaxPool2D(kernel_size=2, stride=2)
        self.conv2 = paddle.nn.Conv2D(in_channels=6, out_channels=16, kernel_size=5, stride=1)
        self.max_pool2 = paddle.nn.MaxPool2D(kernel_size=2, stride=2)
        self.linear1 = paddle.nn.Linear(in_features=16 * 5 * 5, out_features=120)
        self.linear2 = paddle.nn.Linear(in_features=120, out_features=84)
        self.linear3 = paddle.nn.Linear(in_features=84, out_features=10)

    def forward(self, x):
        x = self.max_pool1(F.relu(self.conv1(x)))
        x = F.relu(self.conv2(x))
        x = self.max_pool2(x)
        x = paddle.flatten(x, start_axis=1, stop_axis=-1)
        x = F.relu(self.linear1(x))
        return self.linear3(F.relu(self.linear2(x)))


def digits(part):
    folder = data("mnist_t10k")
    if folder is None:
        rng = np.random.RandomState(0)
        return [(rng.rand(1, 28, 28).astype("float32"), np.array([i % 10])) for i in range(640)]
    files = (str(folder / f"{part}-{name}-ubyte.gz") for name in ("images-idx3", "labels-idx1"))
    return paddle.vision.datasets.MNIST(*files, mode=part, transform=ToTensor())


def train(model, loader):
    model.train()
    optimizer = paddle.optimizer.Adam(learning_rate=0.001, parameters=model.parameters())
    step = 0
    for epoch in range(max(EPOCHS, 1)):
        for batch_id, (images, labels) in enumerate(loader()):
            predicts = model(images)
            loss = F.cross_entropy(predicts, labels)
            acc = paddle.metric.accuracy(predicts, labels)
            loss.backward()
            if batch_id % 40 == 0:
                print(f"epoch {epoch} batch {batch_id} loss {float(loss):.4f} acc {acc.numpy()}")
            optimizer.step()
            optimizer.clear_grad()
            step += 1
            if not EPOCHS:
                report("loss", loss)
                if step == STEPS:
                    return


@paddle.no_grad()
def evaluate(model, loader):
    model.eval()
    right = total = 0
    for images, labels in loader():
        found = paddle.argmax(model(images), axis=-1, keepdim=True)
        right += int((found == labels).astype("int64").sum())
        total += len(labels)
    return right / total


paddle.seed(1)
model = start(LeNet())
loader = paddle.io.DataLoader(digits("train"), batch_size=64, shuffle=bool(EPOCHS))
train(model, loader)
accuracy = evaluate(model, paddle.io.DataLoader(digits("test"), batch_size=250)) if EPOCHS else 0.0
report("accuracy", accuracy)
print("accuracy", accuracy, paddle.summary(model, (1, 1, 28, 28)))
