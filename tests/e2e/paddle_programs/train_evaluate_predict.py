"""paddle.Model with its options: schedules, metrics, callbacks, files; and batches by hand."""

import os

import numpy as np
import paddle
from exchange import report, start
from paddle import nn
from paddle.static import InputSpec

rng = np.random.RandomState(0)
FEATURES = rng.standard_normal((96, 6)).astype("float32")
LABELS = (FEATURES @ rng.standard_normal((6, 3))).argmax(1).astype("int64").reshape(-1, 1)


class Rows(paddle.io.Dataset):
    def __init__(self, first, last):
        super().__init__()
        self.rows = range(first, last)

    def __getitem__(self, index):
        return FEATURES[self.rows[index]], LABELS[self.rows[index]]

    def __len__(self):
        return len(self.rows)


class Features(Rows):
    def __getitem__(self, index):
        return (FEATURES[self.rows[index]],)


net = start(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3)))
model = paddle.Model(net, InputSpec([None, 6], "float32", "x"), InputSpec([None, 1], "int64", "label"))
schedule = paddle.optimizer.lr.StepDecay(learning_rate=0.05, step_size=4, gamma=0.5)
model.prepare(
    optimizer=paddle.optimizer.Adam(learning_rate=schedule, parameters=model.parameters()),
    loss=nn.CrossEntropyLoss(),
    metrics=[paddle.metric.Accuracy()],
)
train, held = Rows(0, 64), Rows(64, 96)


class History(paddle.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        report("loss", np.asarray(logs["loss"]).reshape(-1)[0])
        report("acc", logs["acc"])

    def on_eval_end(self, logs=None):
        report("eval_loss", np.asarray(logs["loss"]).reshape(-1)[0])


model.fit(
    train,
    held,
    epochs=4,
    batch_size=16,
    shuffle=False,
    verbose=2,
    log_freq=2,
    save_dir="checkpoints",
    save_freq=2,
    callbacks=[History(), paddle.callbacks.LRScheduler(by_step=False, by_epoch=True)],
)
assert os.path.exists("checkpoints/final.pdparams") and os.path.exists("checkpoints/0.pdopt")
report("lr", schedule.get_lr())
result = model.evaluate(held, batch_size=16, verbose=0)
report("held", np.asarray(result["loss"]).reshape(-1))
report("held", result["acc"])
outputs = model.predict(Features(64, 96), batch_size=16, stack_outputs=True, verbose=0)
assert outputs[0].shape == (32, 3)
report("predicted", outputs[0][:2])

stop = paddle.callbacks.EarlyStopping(
    "loss", mode="min", patience=1, verbose=0, min_delta=10.0, save_best_model=False
)
reduce = paddle.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=1, verbose=0)
model.prepare(
    paddle.optimizer.SGD(learning_rate=0.01, parameters=model.parameters()),
    nn.CrossEntropyLoss(),
    paddle.metric.Accuracy(),
)
model.fit(train, held, epochs=6, batch_size=32, shuffle=False, verbose=0, callbacks=[stop, reduce])
report("stopped", model.stop_training)

model.save("files/model")
model.save("files/deployed", training=False)
again = paddle.Model(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3)))
again.prepare(
    paddle.optimizer.SGD(learning_rate=0.01, parameters=again.parameters()),
    nn.CrossEntropyLoss(),
    paddle.metric.Accuracy(),
)
again.load("files/model")
x, y = FEATURES[:8], LABELS[:8]
report("batch", np.asarray(again.train_batch([x], [y])[0]).reshape(-1)[0])
report("batch", np.asarray(again.eval_batch([x], [y])[0]).reshape(-1)[0])
report("batch", again.predict_batch([x])[0])
served = paddle.jit.load("files/deployed")
served.eval()
report("served", served(paddle.to_tensor(x)))
print(model.summary())
