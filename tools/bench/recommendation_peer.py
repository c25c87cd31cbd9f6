"""Training steps of DeepCTR-Torch's models and of a plain SASRec in torch; run by an interpreter that has them.

Prints CPU milliseconds a step, on one thread, of the model that its argument names.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

FIELDS, ROWS_A_FIELD, BATCH, ITEMS, LENGTH, USERS = 39, 927, 256, 1671, 50, 128


def click_model(name: str) -> tuple[nn.Module, Callable[[], None]]:
    """A model of DeepCTR-Torch with the page's sizes, and one step of its `fit`."""
    from deepctr_torch.inputs import SparseFeat, get_feature_names
    from deepctr_torch.models import DCNMix, DeepFM
    from deepctr_torch.models.dcn import DCN

    columns = [SparseFeat(f"f{k}", ROWS_A_FIELD, 8) for k in range(FIELDS)]
    sizes: dict[str, Any] = {"dnn_hidden_units": (128, 128), "task": "binary", "device": "cpu"}
    if name == "deepfm":
        model = DeepFM(columns, columns, **sizes)
    elif name == "dcn_v2":
        model = DCN(columns, columns, cross_num=2, cross_parameterization="matrix", **sizes)
    else:
        model = DCNMix(columns, columns, cross_num=2, low_rank=32, num_experts=4, **sizes)
    model.compile("adam", "binary_crossentropy")
    rng = np.random.default_rng(0)
    ids = torch.from_numpy(rng.integers(0, ROWS_A_FIELD, (BATCH, FIELDS)).astype(np.float32))
    label = torch.from_numpy((rng.random(BATCH) < 0.25).astype(np.float32))
    assert len(get_feature_names(columns)) == FIELDS

    def step() -> None:  # the body of its fit
        predicted = model(ids).squeeze()
        model.optim.zero_grad()
        loss = (
            model.loss_func(predicted, label, reduction="sum")
            + model.get_regularization_loss()
            + model.aux_loss
        )
        loss.backward()
        model.optim.step()

    return model.train(), step


class Block(nn.Module):
    def __init__(self, width: int, inner: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.dense = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.first, self.second = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        count, length, width = x.shape

        def split(y: torch.Tensor) -> torch.Tensor:
            return y.view(count, length, self.heads, -1).transpose(1, 2)

        query, key, value = split(self.query(x)), split(self.key(x)), split(self.value(x))
        scores = query @ key.transpose(2, 3) / (width // self.heads) ** 0.5 + mask
        y = F.dropout(scores.softmax(-1), 0.5) @ value
        x = self.first(x + F.dropout(self.dense(y.transpose(1, 2).reshape(count, length, width)), 0.5))
        return self.second(x + F.dropout(self.down(F.gelu(self.up(x))), 0.5))


class SASRec(nn.Module):
    """RecBole's structure and sizes; a loss at every position, over all items."""

    def __init__(self) -> None:
        super().__init__()
        self.items, self.positions = nn.Embedding(ITEMS + 1, 64, padding_idx=0), nn.Embedding(LENGTH, 64)
        self.norm = nn.LayerNorm(64, 1e-12)
        self.blocks = nn.ModuleList([Block(64, 256, 2) for _ in range(2)])

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        before, after = rows[:, :-1], rows[:, 1:]
        x = F.dropout(self.norm(self.items(before) + self.positions.weight), 0.5)
        ahead = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
        mask = torch.where(ahead[None, None] | (before == 0)[:, None, None], -1e9, 0.0)
        for block in self.blocks:
            x = block(x, mask)
        logits = x @ self.items.weight.T
        return F.cross_entropy(logits.flatten(0, 1), after.flatten(), ignore_index=0)


def sequence_model() -> tuple[nn.Module, Callable[[], None]]:
    model = SASRec().train()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    rows = torch.from_numpy(np.random.default_rng(0).integers(1, ITEMS + 1, (USERS, LENGTH + 1)))

    def step() -> None:
        optimizer.zero_grad()
        model(rows).backward()
        optimizer.step()

    return model, step


def main() -> None:
    torch.set_num_threads(1)
    name, count = sys.argv[1], int(sys.argv[2])
    _, step = sequence_model() if name == "sasrec" else click_model(name)
    times = []
    for _ in range(count + 3):
        start = time.process_time()
        step()
        times.append(1000 * (time.process_time() - start))
    print(json.dumps(times[3:]))


if __name__ == "__main__":
    main()
