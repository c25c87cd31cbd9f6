"""Translation by two GRUs and additive attention."""

import collections

import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from exchange import STEPS, data, report, start

PAD, BOS, EOS, UNK = range(4)
LENGTH = 12


def sentences(language, count=320):
    folder = data("multi30k_en_de")
    if folder is None:
        rng = np.random.RandomState(len(language) + ord(language[0]))
        return [[f"w{i}" for i in rng.randint(0, 50, rng.randint(3, LENGTH))] for _ in range(count)]
    with open(folder / f"train.{language}", encoding="utf-8") as file:
        return [line.lower().replace(".", " .").split()[: LENGTH - 1] for line, _ in zip(file, range(count))]


def encode(rows):
    counts = collections.Counter(word for row in rows for word in row)
    words = {word: i + 4 for i, (word, _) in enumerate(counts.most_common(600))}
    ids = np.full((len(rows), LENGTH), PAD, "int64")
    for n, row in enumerate(rows):
        row = [words.get(word, UNK) for word in row] + [EOS]
        ids[n, : len(row)] = row
    return ids, len(words) + 4


class Encoder(nn.Layer):
    def __init__(self, vocab, size):
        super().__init__()
        self.embedding = nn.Embedding(vocab, size, padding_idx=PAD)
        self.gru = nn.GRU(size, size, direction="bidirect")
        self.join = nn.Linear(2 * size, size)

    def forward(self, tokens, lengths):
        outputs, final = self.gru(self.embedding(tokens), sequence_length=lengths)
        return self.join(outputs), paddle.tanh(final[0] + final[1])


class Attention(nn.Layer):
    def __init__(self, size):
        super().__init__()
        self.query, self.key = nn.Linear(size, size), nn.Linear(size, size)
        self.score = nn.Linear(size, 1, bias_attr=False)

    def forward(self, state, memory, mask):
        scores = self.score(paddle.tanh(self.query(state).unsqueeze(1) + self.key(memory))).squeeze(-1)
        weights = F.softmax(scores + (1.0 - mask) * -1e9, axis=-1)
        return paddle.bmm(weights.unsqueeze(1), memory).squeeze(1)


class Decoder(nn.Layer):
    def __init__(self, vocab, size):
        super().__init__()
        self.embedding = nn.Embedding(vocab, size)
        self.attention = Attention(size)
        self.cell = nn.GRUCell(2 * size, size)
        self.output = nn.Linear(2 * size, vocab)

    def step(self, tokens, state, memory, mask):
        context = self.attention(state, memory, mask)
        _, state = self.cell(paddle.concat([self.embedding(tokens), context], axis=-1), state)
        return self.output(paddle.concat([state, context], axis=-1)), state


class Seq2Seq(nn.Layer):
    def __init__(self, source_vocab, target_vocab, size=48):
        super().__init__()
        self.encoder = Encoder(source_vocab, size)
        self.decoder = Decoder(target_vocab, size)

    def forward(self, source, target):
        mask = (source != PAD).astype("float32")
        memory, state = self.encoder(source, (source != PAD).sum(axis=1))
        tokens = paddle.full([source.shape[0]], BOS, "int64")
        logits = []
        for t in range(target.shape[1]):
            scores, state = self.decoder.step(tokens, state, memory, mask)
            logits.append(scores)
            tokens = target[:, t]  # teacher forcing
        return paddle.stack(logits, axis=1)

    @paddle.no_grad()
    def translate(self, source):
        mask = (source != PAD).astype("float32")
        memory, state = self.encoder(source, (source != PAD).sum(axis=1))
        tokens, found = paddle.full([source.shape[0]], BOS, "int64"), []
        for _ in range(LENGTH):
            scores, state = self.decoder.step(tokens, state, memory, mask)
            tokens = paddle.argmax(scores, axis=-1)
            found.append(tokens)
        return paddle.stack(found, axis=1)


source, source_vocab = encode(sentences("en"))
target, target_vocab = encode(sentences("de"))
model = start(Seq2Seq(source_vocab, target_vocab))
optimizer = paddle.optimizer.Adam(
    learning_rate=paddle.optimizer.lr.NoamDecay(48, 400, learning_rate=1.0),
    parameters=model.parameters(),
    grad_clip=nn.ClipGradByGlobalNorm(1.0),
)
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
for step in range(STEPS):
    rows = np.arange(16 * step, 16 * step + 16) % len(source)
    x, y = paddle.to_tensor(source[rows]), paddle.to_tensor(target[rows])
    logits = model(x, y)
    loss = criterion(logits.reshape([-1, target_vocab]), y.reshape([-1]))
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    optimizer._learning_rate.step()
    report("loss", loss)
print("loss", float(loss), "perplexity", float(paddle.exp(loss)), model.translate(x[:2]).numpy())
