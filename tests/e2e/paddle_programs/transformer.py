"""Translation by paddle.nn.Transformer, with label smoothing and warm-up."""

import collections
import math

import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from exchange import STEPS, data, report, start

PAD, BOS, EOS = 0, 1, 2
LENGTH, SIZE = 14, 32


def corpus(language, count=256):
    folder = data("multi30k_en_de")
    if folder is None:
        rng = np.random.RandomState(ord(language[0]))
        rows = [[str(i) for i in rng.randint(0, 40, 8)] for _ in range(count)]
    else:
        text = (folder / f"val.{language}").read_text(encoding="utf-8").lower()
        rows = [line.split()[: LENGTH - 2] for line in text.splitlines()[:count]]
    counts = collections.Counter(word for row in rows for word in row)
    vocab = {word: i + 3 for i, word in enumerate(sorted(counts, key=lambda w: (-counts[w], w)))}
    ids = np.zeros((len(rows), LENGTH), "int64")
    for n, row in enumerate(rows):
        ids[n, : len(row) + 2] = [BOS, *[vocab[w] for w in row], EOS]
    return ids, len(vocab) + 3


class PositionalEncoding(nn.Layer):
    def __init__(self, size, length):
        super().__init__()
        position = paddle.arange(length, dtype="float32").unsqueeze(1)
        rate = paddle.exp(paddle.arange(0, size, 2, dtype="float32") * (-math.log(10000.0) / size))
        table = paddle.zeros([length, size])
        table[:, 0::2] = paddle.sin(position * rate)
        table[:, 1::2] = paddle.cos(position * rate)
        self.register_buffer("table", table, persistable=False)

    def forward(self, x):
        return x + self.table[: x.shape[1]]


class Translator(nn.Layer):
    def __init__(self, source_vocab, target_vocab):
        super().__init__()
        self.source = nn.Embedding(source_vocab, SIZE)
        self.target = nn.Embedding(target_vocab, SIZE)
        self.position = PositionalEncoding(SIZE, LENGTH)
        self.transformer = nn.Transformer(
            d_model=SIZE,
            nhead=4,
            num_encoder_layers=2,
            num_decoder_layers=2,
            dim_feedforward=64,
            dropout=0.0,
            activation="gelu",
            normalize_before=True,
        )
        self.output = nn.Linear(SIZE, target_vocab)

    def forward(self, source, target):
        blocked = (source == PAD).astype(paddle.get_default_dtype()) * -1e4
        blocked = paddle.unsqueeze(blocked, axis=[1, 2])
        causal = self.transformer.generate_square_subsequent_mask(target.shape[1])
        x = self.position(self.source(source) * SIZE**0.5)
        y = self.position(self.target(target) * SIZE**0.5)
        return self.output(self.transformer(x, y, src_mask=blocked, tgt_mask=causal, memory_mask=blocked))


def smoothed(logits, labels, epsilon=0.1):
    classes = logits.shape[-1]
    soft = F.label_smooth(F.one_hot(labels, classes), epsilon=epsilon)
    loss = F.cross_entropy(logits, soft, soft_label=True, reduction="none").squeeze(-1)
    mask = (labels != PAD).astype(loss.dtype)
    return (loss * mask).sum() / mask.sum()


source, source_vocab = corpus("de")
target, target_vocab = corpus("en")
model = start(Translator(source_vocab, target_vocab))
schedule = paddle.optimizer.lr.LinearWarmup(
    paddle.optimizer.lr.PolynomialDecay(2e-3, decay_steps=100, end_lr=1e-4),
    warmup_steps=8,
    start_lr=0.0,
    end_lr=2e-3,
)
optimizer = paddle.optimizer.AdamW(
    learning_rate=schedule,
    beta2=0.98,
    parameters=model.parameters(),
    weight_decay=0.01,
    apply_decay_param_fun=lambda name: "w" in name,
)
for step in range(STEPS):
    rows = np.arange(16 * step, 16 * (step + 1)) % len(source)
    x, y = paddle.to_tensor(source[rows]), paddle.to_tensor(target[rows])
    loss = smoothed(model(x, y[:, :-1]), y[:, 1:])
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    schedule.step()
    report("loss", loss)

model.eval()
with paddle.no_grad():
    tokens = paddle.full([2, 1], BOS, dtype="int64")
    for _ in range(5):
        following = model(x[:2], tokens)[:, -1].argmax(axis=-1, keepdim=True)
        tokens = paddle.concat([tokens, following], axis=1)
print("loss", float(loss), tokens.tolist())
