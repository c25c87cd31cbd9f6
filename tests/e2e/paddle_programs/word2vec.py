"""Skip-gram with negative sampling."""

import collections

import numpy as np
import paddle
from exchange import STEPS, data, report, start
from paddle.nn import Embedding, Layer
from paddle.nn import functional as F

WINDOW, NEGATIVES, BATCH, VOCAB, SIZE = 3, 4, 256, 1000, 32


def words(count=20000):
    folder = data("lm_text")
    if folder is None:
        return [f"w{i}" for i in np.random.RandomState(0).zipf(1.5, count) % 500]
    return (folder / "tinyshakespeare.train.txt").read_text(encoding="utf-8").lower().split()[:count]


def pairs(text, rng):
    """Centre words [N], context words [N, 1 + NEGATIVES] and labels of the same shape."""
    counts = collections.Counter(text).most_common(VOCAB - 1)
    ids = {word: i + 1 for i, (word, _) in enumerate(counts)}
    corpus = [ids.get(word, 0) for word in text]
    centres, contexts = [], []
    for i, centre in enumerate(corpus):
        reach = rng.randint(1, WINDOW + 1)
        for j in range(max(0, i - reach), min(len(corpus), i + reach + 1)):
            if j != i:
                centres.append(centre)
                contexts.append([corpus[j], *rng.randint(0, VOCAB, NEGATIVES)])
    labels = np.zeros((len(centres), 1 + NEGATIVES), "float32")
    labels[:, 0] = 1
    return np.array(centres, "int64"), np.array(contexts, "int64"), labels


class SkipGram(Layer):
    def __init__(self, vocab, size):
        super(SkipGram, self).__init__()  # noqa: UP008
        init = paddle.nn.initializer.Uniform(-0.5 / size, 0.5 / size)
        attr = paddle.ParamAttr(name="centre_table", initializer=init)
        self.centre = Embedding(vocab, size, weight_attr=attr)
        self.context = Embedding(vocab, size, weight_attr=paddle.ParamAttr(initializer=init))

    def forward(self, centre, context):
        scores = paddle.sum(self.centre(centre).unsqueeze(1) * self.context(context), axis=-1)
        return scores


rng = np.random.RandomState(0)
centres, contexts, labels = pairs(words(), rng)
order = rng.permutation(len(centres))
model = start(SkipGram(VOCAB, SIZE))
optimizer = paddle.optimizer.Adagrad(learning_rate=0.2, parameters=model.parameters())
for step in range(STEPS):
    rows = order[np.arange(BATCH * step, BATCH * (step + 1)) % len(order)]
    scores = model(paddle.to_tensor(centres[rows]), paddle.to_tensor(contexts[rows]))
    loss = F.binary_cross_entropy_with_logits(scores, paddle.to_tensor(labels[rows]))
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    report("loss", loss)

table = F.normalize(model.centre.weight, axis=1)
similarity = paddle.matmul(table[:5], table, transpose_y=True)
values, nearest = paddle.topk(similarity, k=3)
report("similarity", values[:, 1:])
print("loss", float(loss), nearest.numpy().tolist())
