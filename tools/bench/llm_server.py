"""A server of a language model under streaming clients beside its engine, which writes texts of the same prompts.

Both have a slot a client and write in float32; they take turns. Prompts have 8 to 100 tokens, texts half to one and a
half times `tokens`, drawn with a seed each. The clients are connections of this process. Each text has to be the one
that the server writes when nobody else asks. Without a model, shapes of 18 million weights get random ones. Any model
gets a tokenizer of as many words as it has tokens, so that texts tell all tokens apart.

What counts on a machine that others use too is CPU time a token: of the server's whole process, and of the engine's.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.bench.peers import Run, Worker, opened, serve
from tools.bench.serving import running_server, server_cpu_seconds

_SHAPES: Mapping[str, object] = {
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    "vocab_size": 8192,
    "hidden_size": 384,
    "num_hidden_layers": 8,
    "num_attention_heads": 6,
    "num_key_value_heads": 6,
    "intermediate_size": 1280,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e4,
    "tie_word_embeddings": True,
    "initializer_range": 0.1,
    "torch_dtype": "float32",
}
_DTYPE = "float32"


@dataclass(frozen=True)
class _Work:
    """A prompt and the text to be written."""

    ids: Sequence[int]
    count: int
    seed: int


@dataclass(frozen=True)
class _Answer:
    """What a client saw: the text, its tokens, and the seconds to the first of them."""

    text: str
    tokens: int
    first: float


def serve_clients(model: str | None, clients: int, tokens: int, rounds: int, threads: int) -> None:
    """Print a line for the engine, one for the server, their ratio, and whether texts are right."""
    with tempfile.TemporaryDirectory() as work:
        folder = _write_folder(Path(work) / "model", model)
        words = (str(folder), str(clients), str(tokens))
        workers = opened(
            [Worker("engine", sys.executable, "tools.bench.llm_server", *words, threads=threads)]
        )
        if not workers:
            raise SystemExit(1)
        requests = _draw(clients, tokens, _vocab_size(folder))
        options = {"slots": clients, "dtype": _DTYPE}
        with running_server(str(folder), options=options) as port:
            alone = [asyncio.run(_ask_all(port, [one]))[0] for one in requests]
            rows, answers = [], []
            for turn in range(rounds + 1):
                workers[0].step()
                began, cpu = time.perf_counter(), server_cpu_seconds(port)
                answers = asyncio.run(_ask_all(port, requests))
                took = time.perf_counter() - began, server_cpu_seconds(port) - cpu
                if turn:  # the first one warms both up
                    rows.append((*took, answers, workers[0].steps[-1]))
        workers[0].close()
    _report(rows, alone)


def _report(rows: Sequence[tuple[float, float, list[_Answer], dict[str, Any]]], alone: list[_Answer]) -> None:
    count = sum(one.tokens for one in alone)

    def line(name: str, wall: Sequence[float], cpu: Sequence[float]) -> tuple[float, float]:
        rate, cost = count / statistics.median(wall), statistics.median(cpu) / count * 1000
        print(
            f"  {name:<7} {rate:8.1f} tokens/s (best {count / min(wall):.1f})  {cost:7.3f} ms of CPU a token"
        )
        return rate, cost

    engine = line("engine", [row[3]["wall"] for row in rows], [row[3]["cpu"] for row in rows])
    server = line("server", [row[0] for row in rows], [row[1] for row in rows])
    pairs = statistics.median(row[3]["wall"] / row[0] for row in rows)
    first = sorted(one.first for row in rows for one in row[2])
    wrong = sum(one.text != own.text for row in rows for one, own in zip(row[2], alone, strict=True))
    both = sum(text != own.text for row in rows for text, own in zip(row[3]["result"], alone, strict=True))
    print(
        f"  server/engine {server[0] / engine[0]:.3f} by medians, {pairs:.3f} by turns; CPU a token "
        f"{server[1] / engine[1]:.3f}; first token p50 {first[len(first) // 2]:.3f} s, "
        f"p95 {first[int(0.95 * (len(first) - 1))]:.3f} s"
    )
    total = len(rows) * len(alone)
    print(
        f"  {total - wrong} of {total} texts of the server are those made alone; of the engine {total - both}"
    )


# -- the model -----------------------------------------------------------------------------------------------------


def _write_folder(folder: Path, model: str | None) -> Path:
    """The files of a model, or random weights, with a tokenizer of as many words as there are tokens."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    from framework.core import rng
    from zoo.layers.decoder_weights import build_decoder, save_decoder

    folder.mkdir()
    if model is None:
        (folder / "config.json").write_text(json.dumps(_SHAPES), encoding="utf-8")
        rng.seed(0)
        save_decoder(build_decoder(folder), folder)
    else:
        for path in sorted(Path(model).expanduser().resolve().iterdir()):
            if path.name == "config.json" or ".safetensors" in path.name:
                (folder / path.name).symlink_to(path)
    words = {f"w{number}": number for number in range(_vocab_size(folder))}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"unk_token": "w0"}', encoding="utf-8")
    return folder


def _vocab_size(folder: Path) -> int:
    return int(json.loads((folder / "config.json").read_text(encoding="utf-8"))["vocab_size"])


def _draw(clients: int, tokens: int, vocab_size: int) -> list[_Work]:
    import numpy as np

    rng = np.random.default_rng(0)
    return [
        _Work(
            rng.integers(0, vocab_size, rng.integers(8, 100)).tolist(),
            int(rng.integers(max(tokens // 2, 1), tokens + tokens // 2 + 1)),
            number,
        )
        for number in range(clients)
    ]


# -- clients ---------------------------------------------------------------------------------------------------------


async def _ask_all(port: int, requests: Sequence[_Work]) -> list[_Answer]:
    return list(await asyncio.gather(*(_ask(port, one) for one in requests)))


async def _ask(port: int, work: _Work) -> _Answer:
    body = json.dumps(
        {
            "model": "model",
            "prompt": list(work.ids),
            "max_tokens": work.count,
            "seed": work.seed,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ).encode()
    began, first = time.perf_counter(), 0.0
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
    )
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    lines: list[bytes] = []
    while line := await reader.readline():
        if line.startswith(b"data: "):
            first = first or time.perf_counter() - began
            lines.append(line)
    writer.close()
    if not lines or lines[-1] != b"data: [DONE]\n":
        raise SystemExit(f"the server ended a text too soon: {lines[-1:]}")
    events = [json.loads(line[6:]) for line in lines[:-1]]
    text = "".join(choice["text"] for one in events for choice in one["choices"])
    return _Answer(text, events[-1]["usage"]["completion_tokens"], first)


# -- the engine --------------------------------------------------------------------------------------------------------


def engine(folder: str, clients: int, tokens: int) -> Run:
    """All texts at once by the engine that a server would have."""
    from nlp import llm
    from nlp.generation.settings import TextGenerationOptions

    generator = llm.load(folder, dtype=_DTYPE).make_generator(TextGenerationOptions(slots=clients))
    requests = _draw(clients, tokens, _vocab_size(Path(folder)))

    def run() -> list[str]:
        started = [
            generator.start(one.ids, {"max_tokens": one.count, "seed": one.seed, "ignore_eos": True})[0]
            for one in requests
        ]
        texts = []
        for one in started:
            text = []
            while delta := one.next_delta():
                text.append(delta.text)
            texts.append("".join(text))
        return texts

    return run


if __name__ == "__main__":
    folder_, clients_, tokens_ = sys.argv[1:]
    serve(lambda: (engine(folder_, int(clients_), int(tokens_)), {}))
