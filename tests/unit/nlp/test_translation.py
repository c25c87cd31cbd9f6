"""Translation from a config to a program: eight sentences are learnt by heart and translated by the artifact."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from framework import nn
from framework.config import build
from framework.core.errors import ConfigError, InputError
from framework.text.sample import TextSample
from framework.text.tokenizer import Tokenizer
from framework.workflow.export.export import export_config
from framework.workflow.train import run as workflow
from nlp import predictor
from nlp.analyzer import TextAnalyzer
from nlp.contracts import Tokens
from nlp.models.transformer import TransformerConfig
from nlp.results import Translated
from nlp.tasks.translation import Translation
from tools import infer

COLOURS = (("black", "schwarze"), ("white", "weiße"))
ANIMALS = (("dog", "Dogge"), ("cat", "Katze"), ("duck", "Ente"), ("cow", "Kuh"))
PAIRS = [
    (f"the {colour} {animal} is here.", f"die {farbe} {tier} ist hier.")
    for (colour, farbe), (animal, tier) in itertools.product(COLOURS, ANIMALS)
]
IDS = np.array([2, 5, 6, 3], np.int32)
SAMPLE = TextSample("a", target="b", ids=IDS, target_ids=np.array([2, 7, 8, 9, 3], np.int32))


class Trained(NamedTuple):
    scores: dict[str, float]
    folder: Path
    translate: TextAnalyzer


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("translation")
    for place, name in enumerate(("en", "de")):
        (folder / f"text.{name}").write_text("\n".join(pair[place] for pair in PAIRS), encoding="utf-8")
    tokenizer = Tokenizer.train("bpe", [text for pair in PAIRS for text in pair], 320)
    path = tokenizer.save(folder / "tokenizer.json")
    feed = f"""
    dataset: {{type: ParallelText, source: {folder}/text.en, target: {folder}/text.de}}
    transforms: [{{type: Tokenize, tokenizer: {path}, max_length: 16}}]
    batch_size: 8
    num_workers: 0
    buckets: [16]"""
    config = folder / "net.yml"
    config.write_text(
        f"""domain: nlp
model: {{type: Transformer, variant: small, vocab_size: {tokenizer.vocab_size}, hidden_size: 32, num_heads: 2,
  num_layers: 1, feed_forward: 32, dropout: 0.0, max_length: 24}}
task: {{type: Translation, label_smoothing: 0.0, beam_size: 2, max_length: 20,
  scores: [{{type: BLEU, tokenizer: {path}}}, {{type: Perplexity}}]}}
data:
  train:{feed}
  eval:{feed}
optim: {{type: Adam, learning_rate: 0.01}}
train: {{iters: 60, log_every: 60, eval_every: 60}}
weights: {folder}/run
export:
  inputs: {{input_ids: {{shape: [n, t], dtype: int32}}, mask: {{shape: [n, t], dtype: bool}}}}
  precisions: [float32]
""",
        encoding="utf-8",
    )
    scores = workflow.train(config, output_dir=folder / "run")
    export_config(config).save(folder / "net")
    path.unlink()  # the artifact has its own
    return Trained(scores, folder, predictor(folder / "net", device="cpu"))


def test_what_was_learnt_is_translated(trained: Trained) -> None:
    assert trained.scores["bleu"] == pytest.approx(100) and 1 <= trained.scores["perplexity"] < 1.2
    found = trained.translate([text for text, _ in PAIRS])
    assert [(one.text, one.translation) for one in found] == PAIRS
    assert all(isinstance(one, Translated) and -0.5 < one.score <= 0 for one in found)


def test_the_tool_writes_text_and_translation(trained: Trained, tmp_path: Path) -> None:
    text, translation = PAIRS[3]
    arguments = ["--model_dir", str(trained.folder / "net"), "--text", text, "--output_dir", str(tmp_path)]
    assert infer.main(arguments) == 0
    (line,) = (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()
    row = json.loads(line)
    assert row.keys() == {"text", "translation", "score"}
    assert (row["text"], row["translation"]) == (text, translation) and row["score"] <= 0


def test_empty_and_odd_texts(trained: Trained) -> None:
    for text in ("", "  \n", "\ud800", "天气 😀", "\x00"):
        found = trained.translate(text)
        assert found.text == text and isinstance(found.translation, str) and np.isfinite(found.score)
        assert text.strip() or found == Translated(text, "", 0.0)
    with pytest.raises(InputError, match=r"(?s)a translation is of one text.*a pair"):
        trained.translate(("a", "b"))
    with pytest.raises(InputError, match="an input must be text"):
        trained.translate(5)


def test_a_long_text_is_translated_sentence_by_sentence(trained: Trained) -> None:
    found = trained.translate(" ".join(text for text, _ in PAIRS) + "\n")
    assert found.translation == " ".join(text for _, text in PAIRS)
    endless = "the black " * 40
    found = trained.translate(endless)
    assert found.text == endless and len(found.translation) > 40  # in parts that fit; nothing is cut off


def test_companions_and_threads_change_nothing(trained: Trained) -> None:
    texts = [text for text, _ in PAIRS] + ["the dog", "a", "is the white white cow here"]
    alone = [trained.translate(text) for text in texts]
    with ThreadPoolExecutor(3) as pool:
        for found in (trained.translate(texts), list(pool.map(trained.translate, texts))):
            assert [one.translation for one in found] == [one.translation for one in alone]
            assert [one.score for one in found] == pytest.approx([one.score for one in alone], abs=1e-4)


def test_arrays_of_a_sample() -> None:
    arrays = Translation().pack(SAMPLE)
    assert arrays["input_ids"].tolist() == [2, 5, 6, 3] and arrays["mask"].all()
    assert arrays["target_ids"].tolist() == [2, 7, 8, 9] and arrays["next_ids"].tolist() == [7, 8, 9, 3]
    assert Translation().length(SAMPLE) == 4
    assert Translation().length(SAMPLE.replace(target_ids=np.arange(9))) == 8


def test_the_loss_is_of_the_tokens_that_are_there() -> None:
    sizes: Any = {"hidden_size": 8, "num_heads": 2, "num_layers": 1, "feed_forward": 8, "max_length": 8}
    task = Translation(0.0, beam_size=1, max_length=2)
    graphdef, params, buffers = nn.split(build(TransformerConfig(12, **sizes)).eval())
    model: Any = graphdef.bind(params, buffers)
    run = jax.jit(lambda batch: (task.loss(model, batch).total, task.infer(model, batch)["losses"]))
    short, long = task.pack(SAMPLE.replace(target_ids=np.array([2, 7, 3], np.int32))), task.pack(SAMPLE)
    short = {
        name: np.pad(x, (0, 4 - len(x)), constant_values=task.padding[name]) for name, x in short.items()
    }
    total, losses = run({name: np.stack([short[name], long[name]]) for name in long})
    everything = np.ones((1, 4), bool)
    source, target = Tokens(IDS[None], everything), Tokens(long["target_ids"][None], everything)
    logits = np.asarray(model(source, target))[0]
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    assert float(losses[1]) == pytest.approx(-logs[range(4), long["next_ids"]].sum(), abs=1e-4)
    assert float(total) == pytest.approx(float(losses.sum()) / 6, abs=1e-5)
    short["target_ids"][2:] = 9  # padding
    assert run({name: np.stack([short[name], long[name]]) for name in long})[0] == total
    smooth = Translation(0.1).loss(model, {name: value[None] for name, value in long.items()}).total
    expected = 0.9 * -logs[range(4), long["next_ids"]].mean() - 0.1 * logs.mean()
    assert float(smooth) == pytest.approx(expected, abs=1e-4)


def test_errors() -> None:
    for target in (None, np.array([3], np.int32)):
        with pytest.raises(InputError, match=r"(?s)a text has no translation.*ParallelText"):
            Translation().pack(SAMPLE.replace(target_ids=target))
    with pytest.raises(InputError, match="not divided into tokens"):
        Translation().pack(TextSample("a", target="b"))
    for name, value in (
        ("label_smoothing", 1.0),
        ("beam_size", 0),
        ("length_penalty", -0.1),
        ("max_length", 0),
    ):
        settings: Any = {name: value}
        with pytest.raises(ConfigError, match=f"(?s){name}: a setting is out of range"):
            Translation(**settings)
    model = build(TransformerConfig(12, max_length=30))
    with pytest.raises(ConfigError, match=r"(?s)longer than the model's positions.*64.*up to 30"):
        Translation().check(model, ())
