"""Model: training, files, callbacks, summary and flops."""

from __future__ import annotations

import re

import numpy as np
import pytest

from framework import paddle
from framework.paddle import callbacks
from framework.paddle.hapi.progressbar import ProgressBar

X = np.random.default_rng(0).standard_normal((40, 4)).astype(np.float32)
Y = (X.sum(axis=1) > 0).astype(np.int64)[:, None]


class Data(paddle.io.Dataset):
    def __getitem__(self, idx):
        return X[idx], Y[idx]

    def __len__(self):
        return len(X)


def _model(rate=0.1):
    with paddle.utils.unique_name.guard():
        network = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.ReLU(), paddle.nn.Linear(8, 2))
    for n, parameter in enumerate(network.parameters()):
        values = np.random.default_rng(n).standard_normal(parameter.shape).astype(np.float32)
        parameter.set_value(paddle.to_tensor(values))
    model = paddle.Model(network, paddle.static.InputSpec([None, 4], "float32", "x"))
    optimizer = paddle.optimizer.Adam(rate, parameters=network.parameters())
    model.prepare(optimizer, paddle.nn.CrossEntropyLoss(), paddle.metric.Accuracy())
    return model


class Order(callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.calls = []

    def on_train_begin(self, logs=None):
        self.calls.append(("train", self.params["steps"], self.params["metrics"]))

    def on_epoch_end(self, epoch, logs=None):
        self.calls.append(("epoch", epoch, sorted(logs)))

    def on_eval_end(self, logs=None):
        self.calls.append(("eval", logs["batch_size"]))


def test_fit_trains_evaluates_saves_and_prints(tmp_path, capsys):
    model, order = _model(), Order()
    before = model.evaluate(Data(), batch_size=40, verbose=0)
    model.fit(
        Data(),
        Data(),
        batch_size=8,
        epochs=3,
        log_freq=2,
        verbose=2,
        save_dir=str(tmp_path),
        callbacks=[order],
    )
    after = model.evaluate(Data(), batch_size=40, verbose=0)
    assert after["loss"][0] < before["loss"][0] / 3 and after["acc"] > before["acc"]
    assert order.calls[0] == ("train", 5, ["loss", "acc"])
    assert order.calls[1:3] == [("epoch", 0, ["acc", "batch_size", "loss", "step"]), ("eval", 8)]
    out = capsys.readouterr().out
    assert (
        re.search(r"Epoch 3/3\nstep 2/5 - loss: \d\.\d{4} - acc: 0\.\d{4} - ", out)
        and "Eval samples: 40" in out
    )
    assert {p.name for p in tmp_path.iterdir()} >= {"0.pdparams", "2.pdopt", "final.pdparams"}


def test_a_resumed_training_goes_on_alike(tmp_path):
    one, other = _model(), _model()
    one.train_batch([X], [Y])
    one.save(str(tmp_path / "m"))
    other.load(str(tmp_path / "m"))
    for _ in range(2):
        (a,), (b,) = (m.train_batch([X], [Y])[0] for m in (one, other))
        np.testing.assert_allclose(a, b, rtol=1e-6)
    wider = paddle.Model(paddle.nn.Sequential(paddle.nn.Linear(5, 8)))
    with pytest.raises(ValueError, match="shape"):
        wider.load(str(tmp_path / "m"))
    wider.load(str(tmp_path / "m"), skip_mismatch=True)


def test_gradients_of_several_batches_make_one_step():
    one, other = _model(), _model()
    one.train_batch([X[:20]], [Y[:20]], update=False)
    one.train_batch([X[20:]], [Y[20:]])
    loss = other.network(paddle.to_tensor(X[:20]))
    loss = other._loss(loss, paddle.to_tensor(Y[:20])) + other._loss(
        other.network(paddle.to_tensor(X[20:])), paddle.to_tensor(Y[20:])
    )
    loss.backward()
    other._optimizer.step()
    np.testing.assert_allclose(
        one.network[0].weight.numpy(), other.network[0].weight.numpy(), rtol=1e-5, atol=1e-6
    )


def test_predict():
    model = _model()
    parts = model.predict(Data(), batch_size=16, verbose=0)
    assert [p.shape for p in parts[0]] == [(16, 2), (16, 2), (8, 2)]
    (stacked,) = model.predict(Data(), batch_size=16, verbose=0, stack_outputs=True)
    np.testing.assert_allclose(stacked, model.predict_batch([X])[0], rtol=1e-5, atol=1e-6)


def test_num_iters_ends_the_training():
    order = Order()
    _model().fit(Data(), batch_size=8, num_iters=7, verbose=0, callbacks=[order])
    assert [call[0] for call in order.calls] == ["train", "epoch", "epoch"]


def test_callbacks_stop_and_lower_the_rate(capsys):
    model = _model(0.0)  # nothing becomes better
    model.fit(
        Data(),
        Data(),
        batch_size=40,
        epochs=9,
        verbose=0,
        callbacks=[callbacks.EarlyStopping("loss", patience=3, save_best_model=False)],
    )
    assert "Epoch 4: Early stopping." in capsys.readouterr().out
    model = _model(0.5)
    plateau = callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=2)
    plateau.set_model(model)
    for loss in (1.0, 1.0, 1.0):
        plateau.on_eval_end({"loss": [loss]})
    assert model._optimizer.get_lr() == 0.25
    model = _model(paddle.optimizer.lr.StepDecay(0.1, 5))
    model.fit(Data(), batch_size=8, epochs=1, verbose=0)
    assert model._optimizer.get_lr() == pytest.approx(0.01)


def test_summary_and_flops(capsys):
    network = paddle.nn.Sequential(paddle.nn.Conv2D(3, 4, 3), paddle.nn.ReLU(), paddle.nn.Flatten())
    assert paddle.summary(network, (None, 3, 8, 8)) == {"total_params": 112, "trainable_params": 112}
    text = capsys.readouterr().out
    assert "[[1, 3, 8, 8]]" in text and "Total params: 112" in text
    assert paddle.flops(network, [1, 3, 8, 8]) == 4 * 6 * 6 * (3 * 9 + 1)
    assert network.training and not network[0]._forward_post_hooks
    paddle.flops(network, [1, 3, 8, 8], print_detail=True)
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert table[0].endswith("| Input Shape  | Output Shape | Params | Flops |")
    assert table[1].endswith("| [1, 3, 8, 8] | [1, 4, 6, 6] |  112   |  4032 |")


def test_settings_are_checked():
    model = _model()
    with pytest.raises(ValueError, match="O0, O1 or O2"):
        model.prepare(amp_configs="O9")
    with pytest.raises(ValueError, match="amp_configs has no"):
        model.prepare(amp_configs={"level": "O1", "scaling": 1})
    with pytest.raises(AssertionError):
        paddle.Model(paddle.nn.Linear(1, 1)).train_batch([X], [Y])


@pytest.mark.parametrize(("k", "share"), [(1, 0.0), (2, 0.5), (3, 1.0)])
def test_accuracy_counts_labels_among_the_k_best(k: int, share: float) -> None:
    scores = paddle.to_tensor([[0.1, 0.5, 0.4], [0.2, 0.3, 0.5]])
    assert float(paddle.metric.accuracy(scores, paddle.to_tensor([[2], [0]]), k=k)) == share


def test_the_line_of_progress_counts_from_its_start(capsys):
    with pytest.raises(TypeError, match="above 0"):
        ProgressBar(-1)
    bar = ProgressBar(2, 30, 2, False, None, "batch")
    bar.start()
    bar.update(2.0, [("loss", 0.5)])
    assert capsys.readouterr().out.startswith("batch 2/2 - loss: 0.5000 - ")
