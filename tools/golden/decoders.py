"""Networks of transformers that write texts: sizes, tokens and weights, which tests draw too, and what they give."""

from __future__ import annotations

import functools
import importlib
import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.golden.thinning import thin
from tools.golden.network import Arrays, Row, named_weights, spell
from tools.golden.tables import network_table

Shapes = Mapping[str, tuple[int, ...]]
VOCABULARY, LENGTHS, TARGET, NEW_TOKENS, KEPT_ROW = 97, (20, 11, 3), 12, 64, 400

CASES = network_table("decoders")


class Tokens(NamedTuple):
    ids: np.ndarray
    """[N, T] int32: texts, or sources, of LENGTHS, padded with 0"""
    valid: np.ndarray
    """[N, T] bool"""
    target: np.ndarray
    """[N, S] int32, of networks with an encoder"""


@functools.cache
def tokens() -> Tokens:
    rng = np.random.RandomState(3)
    shape = (len(LENGTHS), max(LENGTHS))
    ids = rng.randint(3, VOCABULARY, shape)
    valid = np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, None]
    target = rng.randint(3, VOCABULARY, (len(LENGTHS), TARGET))
    return Tokens(np.where(valid, ids, 0).astype(np.int32), valid, target.astype(np.int32))


def drawn(shapes: Shapes) -> Arrays:
    """Values for a file of weights, from its names. Rows of embeddings are small beside what the layers add: else a
    network whose embedding scores the vocabulary would repeat its last token."""
    values = named_weights(shapes)
    for name, value in values.items():
        if re.search(r"(embed_tokens|wte|wpe|shared|embed_positions)\.weight$", name):
            value *= np.float32(0.1 / value.std())
        elif re.search(r"(gate|router)\.weight$", name):
            value *= np.float32(0.5 / value.std())
        elif name.endswith(
            "encoder_attn.out_proj.weight"
        ):  # else a source decides alone, and all tokens are one
            value *= np.float32(0.2)
        elif name.endswith(("correction_bias", "final_logits_bias")):
            value *= np.float32(0.05 / value.std())
    return values


def file_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Of the arrays of a folder's model.safetensors."""
    with open(folder / "model.safetensors", "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return {name: tuple(entry["shape"]) for name, entry in header.items() if name != "__metadata__"}


def _open(row: Row, folder: Path) -> tuple[Any, dict[str, tuple[int, ...]], str]:
    """The model with weights from the names of its file; these names with shapes, and its config.json."""
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    save_file = importlib.import_module("safetensors.torch").save_file
    torch.manual_seed(0)
    config = getattr(transformers, row["config"])(**{**row["settings"]})
    kind = getattr(transformers, row["model"])
    model = kind(config)
    if row.get("untied"):  # transformers 5 ties them, if not told otherwise by a file
        model.lm_head.weight = torch.nn.Parameter(torch.zeros_like(model.lm_head.weight))
    model.save_pretrained(folder)
    shapes = file_shapes(folder)
    weights = {name: torch.from_numpy(value) for name, value in drawn(shapes).items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return kind.from_pretrained(folder).eval(), shapes, (folder / "config.json").read_text(encoding="utf-8")


def decoder(reference: None, row: Row) -> Arrays:
    """Logits of each text alone, and the tokens that follow each by greedy search, all computed without a cache; and of
    networks with experts the loss that balances them, for the first text."""
    torch, x = importlib.import_module("torch"), tokens()
    with tempfile.TemporaryDirectory() as folder:
        model, shapes, settings = _open(row, Path(folder))
    stored = {"keys": spell(shapes), "config": np.array(settings.encode())}
    has_encoder = bool(row.get("encoder"))
    with torch.no_grad():
        for number, length in enumerate(LENGTHS):
            ids = torch.from_numpy(x.ids[number : number + 1, :length]).long()
            target = torch.from_numpy(x.target[number : number + 1]).long()
            start = torch.tensor([[model.config.decoder_start_token_id]]) if has_encoder else ids

            def scores(text: Any, source: Any = ids) -> Any:
                more = (
                    {"input_ids": source, "decoder_input_ids": text} if has_encoder else {"input_ids": text}
                )
                return model(**more, use_cache=False).logits

            stored[f"logits.{number}"] = thin(scores(target if has_encoder else ids).numpy(), KEPT_ROW)
            text = start
            for _ in range(NEW_TOKENS):
                text = torch.cat([text, scores(text)[:, -1:].argmax(-1)], 1)
            stored[f"greedy.{number}"] = text[0, start.shape[1] :].numpy().astype(np.int32)
        if row.get("balance"):
            ids = torch.from_numpy(x.ids[:1]).long()
            out = model(input_ids=ids, output_router_logits=True, use_cache=False)
            package = importlib.import_module(type(model).__module__)
            experts = {key: getattr(model.config, key) for key in ("num_experts", "num_experts_per_tok")}
            loss = package.load_balancing_loss_func(out.router_logits, *experts.values())
            stored["balance"] = np.float32(loss)
    distinct = len({int(token) for number in range(3) for token in stored[f"greedy.{number}"]})
    assert distinct >= 6, f"{distinct} different tokens say little"
    return stored
