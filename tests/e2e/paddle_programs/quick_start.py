"""Quick start: LeNet on handwritten digits by paddle.Model."""

import os

import numpy as np
import paddle
from exchange import STEPS, data, report, start
from paddle.metric import Accuracy
from paddle.vision.transforms import Compose, Normalize

EPOCHS = int(os.environ.get("PROGRAM_EPOCHS", "0"))  # of all data; 0: some steps only

transform = Compose([Normalize(mean=[127.5], std=[127.5], data_format="CHW")])
folder = data("mnist_t10k")
if folder:
    train, test = (
        paddle.vision.datasets.MNIST(
            image_path=str(folder / f"{part}-images-idx3-ubyte.gz"),
            label_path=str(folder / f"{part}-labels-idx1-ubyte.gz"),
            mode=part,
            transform=transform,
        )
        for part in ("train", "test")
    )
else:
    rng = np.random.RandomState(0)
    digits = [
        (rng.randint(0, 255, (1, 28, 28)).astype("float32") / 127.5 - 1, np.array([i % 10]))
        for i in range(640)
    ]
    train = test = digits
print(len(train), "images to train on,", len(test), "to test")

paddle.seed(1)
lenet = paddle.vision.models.LeNet(num_classes=10)
start(lenet)
model = paddle.Model(lenet)
rate = 0.001
if EPOCHS:
    rate = paddle.optimizer.lr.CosineAnnealingDecay(0.002, T_max=EPOCHS * (len(train) // 64 + 1))
model.prepare(
    paddle.optimizer.Adam(learning_rate=rate, parameters=model.parameters()),
    paddle.nn.CrossEntropyLoss(),
    Accuracy(topk=(1, 2)),
)


class Record(paddle.callbacks.Callback):
    def on_train_batch_end(self, step, logs=None):
        report("loss", np.asarray(logs["loss"]).reshape(-1)[0])


if EPOCHS:
    model.fit(train, epochs=EPOCHS, batch_size=64, verbose=2, log_freq=40, shuffle=True)
else:
    model.fit(train, epochs=1, batch_size=32, verbose=1, shuffle=False, num_iters=STEPS, callbacks=[Record()])
    test = paddle.io.Subset(test, range(256))
result = model.evaluate(test, batch_size=64, verbose=0)
print(result)
report("accuracy" if EPOCHS else "eval_loss", result["acc_top1"] if EPOCHS else np.asarray(result["loss"])[0])
outputs = model.predict_batch([np.stack([np.asarray(test[i][0]) for i in range(3)])])
report("prediction", outputs[0] if not EPOCHS else 0)
print("digits", np.argmax(outputs[0], axis=1))
