"""Sequences per second of BERT-base, inference and training, against torch in the same run.

python tools/bench/nlp.py [--modes inference training] [--precisions float32 bfloat16] [--rounds 5]

Both run a classifier on BERT-base: 128 tokens, half of the texts shorter and padded, batch 8. Training is forward with
dropout, backward and the update by AdamW. Oar's inference is the engine that serves an exported model, its training the
engine's own step; torch runs eagerly, with its fused attention. bfloat16 is `precision="bfloat16"` and autocast O1 in
Oar, autocast in torch. Before it is timed, inference of both is compared on the same weights.

Every competitor is a process of its own, and they take turns: one step each, `--rounds` times. Beside the median of the
wall time stands that of the CPU time of the process, which is the fairer one where a machine is shared. A ratio above 1
says that Oar is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

VARIANT, WIDTH, DEPTH, HEADS, CLASSES = "bert-base-uncased", 768, 12, 12, 2
PEERS = ("oar", "torch")
LEARNING_RATE = 2e-5


def batch(size, tokens):
    """ids [N, T] and mask [N, T], label [N]."""
    import numpy as np

    rng = np.random.default_rng(0)
    lengths = np.where(np.arange(size) % 2, rng.integers(tokens // 4, tokens, size), tokens)
    mask = np.arange(tokens) < lengths[:, None]
    ids = np.where(mask, rng.integers(1000, 30000, (size, tokens)), 0)
    return ids.astype(np.int32), mask, rng.integers(0, CLASSES, size).astype(np.int32)


def weights():
    """The same for both, by Oar's names."""
    from framework.config import build
    from framework.interop.named_weights import named_weights
    from nlp.models.sequence_classification import SequenceClassifierConfig
    from zoo.text.bert import BertConfig

    model = build(SequenceClassifierConfig(BertConfig(VARIANT), CLASSES))
    return model, named_weights(model.state_shapes())


# -- competitors: each gives a function that does one step and returns an array of numbers to compare -----------------


def oar(mode, precision, ids, mask, label):
    import jax

    from framework import nn
    from framework.inference import keep_memory
    from nlp.contracts import Tokens

    os.environ["OAR_COMPILATION_CACHE"] = "off"  # the compile time is reported, too
    keep_memory()
    model, values = weights()
    model.set_state_dict(values)
    if mode == "inference":
        from framework.core.dtypes import precision_scope
        from framework.inference import compile_options

        graphdef, params, buffers = nn.split(model.eval())

        def forward(params, buffers, ids, mask):
            with precision_scope(precision):
                return nn.apply(graphdef, params, buffers, None, Tokens(ids, mask))[0]

        run = jax.jit(forward).lower(params, buffers, ids, mask)
        run = run.compile(compile_options(jax.local_devices()[0]))
        return lambda: jax.block_until_ready(run(params, buffers, ids, mask)).reshape(-1).tolist()

    from framework.engine.experiment import TrainOptions
    from framework.engine.step import init_state, train_step
    from framework.optimizer import AdamW
    from nlp.tasks import SequenceClassification

    options = TrainOptions(iters=1, amp=precision)
    optimizer = AdamW(LEARNING_RATE, weight_decay=0.01).resolve(1)
    how = optimizer.param_groups(model)
    graphdef, params, buffers = nn.split(model.train())
    state = init_state(params, buffers, how, optimizer, options)
    device = jax.local_devices()[0]
    step = train_step(graphdef, SequenceClassification(), optimizer, optimizer.schedule, how, options, device)
    data = {"input_ids": jax.numpy.asarray(ids), "mask": jax.numpy.asarray(mask)}
    data["label"] = jax.numpy.asarray(label)

    def train():
        nonlocal state
        state, log = step(state, data)
        jax.block_until_ready(state)
        return [float(log["loss"])]

    return train


def torch(mode, precision, ids, mask, label):
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
            self.linear1, self.linear2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH, 1e-12), nn.LayerNorm(WIDTH, 1e-12)
            self.dropout = nn.Dropout(0.1)

        def forward(self, x, mask):
            n, t, c = x.shape
            q, k, v = (
                part(x).view(n, t, HEADS, c // HEADS).transpose(1, 2) for part in (self.q, self.k, self.v)
            )
            mixed = F.scaled_dot_product_attention(q, k, v, mask, 0.1 if self.training else 0.0)
            mixed = mixed.transpose(1, 2).reshape(n, t, c)
            x = self.norm1(x + self.dropout(self.out(mixed)))
            return self.norm2(x + self.dropout(self.linear2(F.gelu(self.linear1(x)))))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.positions = nn.Embedding(30522, WIDTH), nn.Embedding(512, WIDTH)
            self.types, self.norm = nn.Embedding(2, WIDTH), nn.LayerNorm(WIDTH, 1e-12)
            self.layers = nn.ModuleList([Block() for _ in range(DEPTH)])
            self.pooler, self.classifier = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES)
            self.dropout = nn.Dropout(0.1)

        def forward(self, ids, mask):
            x = self.words(ids) + self.positions.weight[: ids.shape[1]] + self.types.weight[0]
            x = self.dropout(self.norm(x))
            for layer in self.layers:
                x = layer(x, mask)
            return self.classifier(self.dropout(torch.tanh(self.pooler(x[:, 0]))))

    net = Net()
    names = {
        "bert.embeddings.word_embeddings": "words",
        "bert.embeddings.position_embeddings": "positions",
        "bert.embeddings.token_type_embeddings": "types",
        "bert.embeddings.layer_norm": "norm",
        "bert.encoder.": "",
        "bert.pooler.dense": "pooler",
        **{f"self_attn.{part}_proj": part for part in ("q", "k", "v", "out")},
    }
    state = {}
    for name, value in weights()[1].items():
        value = value.T if value.ndim == 2 and "embeddings" not in name else value
        for theirs, ours in names.items():
            name = name.replace(theirs, ours)
        state[name] = torch.from_numpy(value)
    net.load_state_dict(state)
    x, seen = torch.from_numpy(ids).long(), torch.from_numpy(mask)[:, None, None]
    y, low = torch.from_numpy(label).long(), precision == "bfloat16"
    if mode == "inference":
        net.eval()

        def run():
            with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=low):
                return net(x, seen).float().reshape(-1).tolist()

        return run
    net.train()
    optimizer = torch.optim.AdamW(net.parameters(), LEARNING_RATE, weight_decay=0.01)

    def train():
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            loss = F.cross_entropy(net(x, seen), y)
        loss.backward()
        optimizer.step()
        return [float(loss.detach())]

    return train


# -- processes --------------------------------------------------------------------------------------------------------


def work(peer, mode, precision, size, tokens):
    """Answer every line of the standard input with one step: its numbers, wall and CPU seconds, as JSON."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print must not come between
    try:
        run = {"oar": oar, "torch": torch}[peer](mode, precision, *batch(size, tokens))
        started = time.perf_counter()
        numbers = run()
        ready = {"first": time.perf_counter() - started, "numbers": numbers}
        print(json.dumps(ready), file=answers, flush=True)
    except Exception as error:  # whatever a peer lacks, the other is measured
        print(json.dumps({"error": f"{type(error).__name__}: {error}"[:300]}), file=answers, flush=True)
        return
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        print(json.dumps(took), file=answers, flush=True)


class Worker:
    """A competitor in its own process."""

    def __init__(self, peer, mode, precision, args):
        env = {**os.environ, "OMP_NUM_THREADS": str(args.threads), "JAX_PLATFORMS": "cpu"}
        size = ("--batch_size", str(args.batch_size), "--tokens", str(args.tokens))
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--worker", peer, mode, precision, *size],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env=env,
        )
        self.name, self.steps = peer, []
        self.ready = self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"the process ended with {self.process.wait()}"}

    def step(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.steps.append(self._answer())

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def median(self, key):
        return statistics.median(step[key] for step in self.steps)


def compare(mode, precision, args):
    """Run the competitors in turn and print a table."""
    print(f"\n{mode} {precision}, batch {args.batch_size}, {args.tokens} tokens, {args.threads} threads")
    workers = []
    try:
        for peer in args.peers:
            worker = Worker(peer, mode, precision, args)
            workers.append(worker)
            if "error" in worker.ready:
                print(f"  {peer:<7} skipped: {worker.ready['error']}")
                workers.pop().close()
        if mode == "inference" and len(workers) == 2:
            first, second = (worker.ready["numbers"] for worker in workers)
            apart = max(abs(a - b) for a, b in zip(first, second)) / max(map(abs, first))
            print(f"  outputs are {apart:.1e} of the largest one apart")
        for number in range(args.rounds + 1):
            for worker in workers:
                worker.step()
                if number == 0:
                    worker.steps.clear()  # it warmed the allocator up
        own = next((worker for worker in workers if worker.name == "oar"), None)
        for worker in workers:
            wall, cpu = worker.median("wall"), worker.median("cpu")
            least = min(step["wall"] for step in worker.steps)
            line = f"  {worker.name:<7} {args.batch_size / wall:7.2f} sequences/s  wall {wall * 1e3:6.0f} ms"
            line += (
                f" (min {least * 1e3:.0f})  cpu {cpu * 1e3:6.0f} ms  first step {worker.ready['first']:.1f} s"
            )
            if own is not None and worker is not own:
                line += f"  oar is {wall / own.median('wall'):.2f}x by wall, {cpu / own.median('cpu'):.2f}x by cpu"
            print(line, flush=True)
    finally:
        for worker in workers:
            worker.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--modes", nargs="+", default=["inference", "training"])
    parser.add_argument("--precisions", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=PEERS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(*args.worker, args.batch_size, args.tokens)
        return 0
    if hasattr(
        os, "sched_setaffinity"
    ):  # inherited by the processes; XLA makes as many threads as it sees cores
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.threads])
    for mode in args.modes:
        for precision in args.precisions:
            compare(mode, precision, args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
