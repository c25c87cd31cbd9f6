"""Sentiment of sentences by an LSTM."""

import numpy as np
import paddle
import paddle.nn as nn
from exchange import STEPS, data, report, start
from paddle.io import BatchSampler, DataLoader, Dataset

MAX_LENGTH = 24


def read(count=640):
    folder, rng = data("sst2_trec"), np.random.RandomState(0)
    if folder is None:
        return [(i % 2, [f"w{w}" for w in rng.randint(0, 60, rng.randint(4, 30))]) for i in range(count)]
    lines = (folder / "sst2.train.txt").read_text(encoding="latin-1").splitlines()
    rows = [lines[i].split() for i in rng.permutation(len(lines))[:count]]
    return [(int(row[0]), row[1:]) for row in rows]


class Sentences(Dataset):
    def __init__(self, rows):
        self.rows = rows
        words = sorted({word for _, row in rows for word in row})
        self.vocab = {word: i + 1 for i, word in enumerate(words)}

    def __getitem__(self, index):
        label, row = self.rows[index]
        return [self.vocab[word] for word in row[:MAX_LENGTH]], label

    def __len__(self):
        return len(self.rows)


def collate(samples):
    longest = MAX_LENGTH
    ids = np.zeros((len(samples), longest), "int64")
    for n, (row, _) in enumerate(samples):
        ids[n, : len(row)] = row
    lengths = np.array([len(row) for row, _ in samples], "int64")
    return ids, lengths, np.array([[label] for _, label in samples], "int64")


class Classifier(nn.Layer):
    def __init__(self, vocab, size=48, hidden=48):
        super().__init__()
        self.embedding = nn.Embedding(vocab, size, padding_idx=0)
        self.dropout = nn.Dropout(0.0)
        self.lstm = nn.LSTM(size, hidden, num_layers=2, direction="bidirectional", dropout=0.0)
        self.norm = nn.LayerNorm(2 * hidden)
        self.fc = nn.Linear(2 * hidden, 2)

    def forward(self, tokens, lengths):
        _outputs, (hidden, _cell) = self.lstm(self.dropout(self.embedding(tokens)), sequence_length=lengths)
        last = paddle.concat((hidden[-2, :, :], hidden[-1, :, :]), axis=1)
        return self.fc(self.norm(last))


dataset = Sentences(read())
sampler = BatchSampler(dataset, batch_size=32, shuffle=False, drop_last=True)
loader = DataLoader(dataset, batch_sampler=sampler, collate_fn=collate, return_list=True)
model = start(Classifier(len(dataset.vocab) + 1))
optimizer = paddle.optimizer.RMSProp(learning_rate=1e-3, rho=0.9, parameters=model.parameters())
criterion, metric = nn.CrossEntropyLoss(), paddle.metric.Accuracy(topk=(1,))
step = 0
while step < STEPS:
    for tokens, lengths, labels in loader():
        if step == STEPS:
            break
        logits = model(tokens, lengths)
        loss = criterion(logits, labels)
        optimizer.clear_grad()
        loss.backward()
        optimizer.step()
        metric.update(metric.compute(logits, labels))
        report("loss", loss)
        step += 1
model.eval()
tokens, lengths, labels = next(iter(loader))
report("logits", model(tokens, lengths)[:4])
print("loss", loss.numpy(), "accuracy", metric.accumulate())
