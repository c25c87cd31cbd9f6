"""FieldTagger from training to fields of a document: a data set that is made up, a run, an artifact, the reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.config import build
from framework.core.errors import ConfigError, FormatError, InputError
from framework.nn import functional_core
from framework.vision import image
from framework.vision.sample import Sample
from framework.workflow.export.export import export_config
from framework.workflow.train import run as train
from ocr.data.forms import tag_names
from ocr.documents.field_model import open_fields
from ocr.fields.features import NUM_FEATURES, NUM_PLACES
from ocr.fields.field_stage import FieldReader
from ocr.fields.rules import find_fields
from ocr.models.field_tagger import FieldTagger, FieldTaggerConfig
from ocr.results.lines import Line
from ocr.results.pages import Page
from ocr.tasks.fields import FieldExtraction

CONFIG = """
domain: ocr
model:
  {type: FieldTagger, num_classes: 5, buckets: 512, width: 16, depth: 1, num_heads: 2, dropout: 0, feature_dropout: 0}
task: {type: FieldExtraction, buckets: 512, kinds: {total: amount}}
data:
  train:
    dataset: {type: FormFiles, root: ROOT, labels: [labels.txt], classes: [company, total]}
    transforms: [{type: PerturbTexts, misread: 0.0, join: 0.0}]
    batch_size: 4
    num_workers: 0
    buckets: [32]
  eval:
    dataset: {type: FormFiles, root: ROOT, labels: [labels.txt], classes: [company, total]}
    batch_size: 8
    num_workers: 0
    buckets: [32]
optim: {type: Adam, learning_rate: 0.01}
train: {epochs: 15, log_every: 100, eval_every: 1000}
export:
  precisions: [float32]
  inputs:
    features: {shape: [n, t, 32], dtype: int32}
    places: {shape: [n, t, 14], dtype: float32}
    mask: {shape: [n, t], dtype: bool}
predict: {transforms: []}
"""
NAMES = ("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Hazel", "Juniper")


def receipt(number: int) -> list[tuple[str, str]]:
    """Lines with their labels: another name, other amounts, on every page."""
    price, name = 3 + number, NAMES[number % len(NAMES)]
    return [
        ("Welcome", "other"),
        (f"{name} Stores Ltd", "company"),
        (f"Tea {price}.25", "other"),
        ("Total", "other"),
        (f"{price}.50", "total"),
        ("Change 0.50", "other"),
    ]


def boxes() -> np.ndarray:
    places = [(10, 0), (10, 20), (10, 40), (10, 60), (120, 60), (10, 80)]
    return np.array([[x, y, x + 80, y + 10] for x, y in places], np.float32)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model that was trained for some seconds, with what it scored beside it."""
    folder = tmp_path_factory.mktemp("fields")
    image.write(folder / "page.png", np.full((110, 220, 3), 255, np.uint8))
    lines = []
    for number in range(8):
        page = [
            {"transcription": text, "points": box.reshape(2, 2).tolist(), "label": label}
            for (text, label), box in zip(receipt(number), boxes())
        ]
        lines.append(f"page.png\t{json.dumps(page)}\n")
    (folder / "labels.txt").write_text("".join(lines), encoding="utf-8")
    config = folder / "fields.yml"
    config.write_text(CONFIG.replace("ROOT", folder.as_posix()), encoding="utf-8")
    scores = train.train(config, output_dir=folder / "run")
    (folder / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    made = export_config(config, (f"weights={(folder / 'run').as_posix()}",))
    made.save(folder / "artifact")
    return folder / "artifact"


def page(number: int, **changes: Any) -> Page:
    lines = tuple(
        Line(text, 1.0, ((x1, y1), (x2, y1), (x2, y2), (x1, y2)))
        for (text, _), (x1, y1, x2, y2) in zip(receipt(number), boxes().tolist())
    )
    return Page(lines, **{"page": 1, "width": 220, "height": 110, **changes})


def test_a_run_learns_the_fields(artifact: Path) -> None:
    scores = json.loads((artifact.parent / "scores.json").read_text(encoding="utf-8"))
    assert scores["exact"] == 1.0 and scores["hmean"] > 0.9


def test_fields_of_a_page_that_was_not_seen(artifact: Path) -> None:
    read = open_fields(artifact)
    assert isinstance(read, FieldReader)
    fields = {field.name: field for field in read(page(12, page=3))}
    assert fields["company"].value == f"{NAMES[4]} Stores Ltd" and fields["company"].page == 3
    total = fields["total"]
    assert total.value == "15.50" and total.score > 0.5
    np.testing.assert_allclose(total.boxes, [(120, 60, 200, 70)])
    assert read(Page((), page=1, width=9, height=9)) == []


def test_fields_of_a_model_go_before_those_of_rules(artifact: Path) -> None:
    read = open_fields(artifact)
    found = find_fields([page(12)], read)
    assert [field.name for field in found[:2]] == ["company", "total"]
    assert {field.name: field.value for field in found}["total"] == "15.50"
    # Of several pages the more certain one; rules fill in what the model does not know.
    date = Line("Date: 25/03/2018", 1.0, ((0, 95), (90, 95), (90, 105), (0, 105)))
    both = find_fields([page(12), Page((date,), page=2, width=220, height=110)], read)
    assert {field.name: field.page for field in both}["date"] == 2


def test_the_options_of_the_document_reader(artifact: Path, tmp_path: Path) -> None:
    import ocr
    from framework.commands import document as command
    from tests.unit.ocr.documents.pdf_pages import PdfPage, make_pdf

    content = PdfPage()
    for (text, _), (x, y, *_) in zip(receipt(9), boxes().tolist()):
        content.text(20 + x, 30 + y, text)
    (tmp_path / "a.pdf").write_bytes(make_pdf(content))
    doc = ocr.document(tmp_path / "a.pdf", text_layer="always", fields_model=str(artifact))
    assert {field.name: field.value for field in doc.fields}["total"] == "12.50"
    flags = ["--fields_model", str(artifact), "--text_layer", "always", "--format", "json"]
    assert command.main([str(tmp_path / "a.pdf"), *flags, "--output", str(tmp_path / "out")]) == 0
    (written,) = (tmp_path / "out").glob("*_fields.json")
    assert "12.50" in written.read_text(encoding="utf-8")


def test_what_is_said_of_other_models(artifact: Path) -> None:
    import ocr

    with pytest.raises(FormatError, match="reads no images") as caught:
        ocr.predictor(artifact)
    assert "--fields_model" in str(caught.value)
    with pytest.raises(FormatError, match="finds no fields"):
        open_fields("oar_latin")
    with pytest.raises(InputError):
        open_fields("no_such_model")


def small(**changes: Any) -> FieldTagger:
    sizes: dict[str, Any] = {"num_classes": 3, "buckets": 64, "width": 8, "depth": 1, "num_heads": 2}
    return build(FieldTaggerConfig(**{**sizes, **changes}))  # type: ignore[return-value]


def inputs(count: int = 5) -> tuple[jax.Array, jax.Array, jax.Array]:
    rng = np.random.default_rng(0)
    features = jnp.asarray(rng.integers(0, 64, (2, count, NUM_FEATURES)), jnp.int32)
    places = jnp.asarray(rng.standard_normal((2, count, NUM_PLACES)), jnp.float32)
    return features, places, jnp.ones((2, count), bool)


def test_padding_changes_nothing() -> None:
    model = small().eval()
    features, places, mask = inputs()
    padded = (
        jnp.pad(features, ((0, 0), (0, 3), (0, 0))),
        jnp.pad(places, ((0, 0), (0, 3), (0, 0))),
        jnp.pad(mask, ((0, 0), (0, 3))),
    )
    np.testing.assert_allclose(model(*padded)[:, :5], model(features, places, mask), atol=1e-5)


def test_gradients_reach_all_parameters() -> None:
    model = small(dropout=0.0, feature_dropout=0.0)
    graphdef, params, buffers = nn.split(model)
    key = jax.random.key(0)

    def loss(params: Any) -> jax.Array:
        logits = functional_core.apply(graphdef, params, buffers, key, *inputs())[0]
        return (logits * jnp.arange(3.0)).sum()

    for name, gradient in jax.grad(loss)(params).items():
        assert bool(jnp.isfinite(gradient).all()) and bool((gradient != 0).any()), name


@pytest.mark.parametrize("wrong", [{"num_heads": 3}, {"kernel": 4}, {"buckets": 1}])
def test_sizes_that_do_not_fit(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="this is no FieldTagger"):
        small(**wrong)


def test_settings_that_do_not_fit() -> None:
    with pytest.raises(ConfigError, match="hash features to other numbers"):
        FieldExtraction(buckets=32).check(small(), tag_names(("a",)))
    with pytest.raises(ConfigError, match="different numbers of classes"):
        FieldExtraction(buckets=64).check(small(), tag_names(("a", "b")))
    tags = tag_names(("Total",))
    FieldExtraction(kinds={"total": "amount"}, buckets=64).check(small(), tags)
    FieldExtraction(kinds={"total": "amount"}, buckets=64).check(small(), ())  # where no labels are known
    for name, fix in (
        ("totl", "did you mean 'total'"),
        ("TOTAL", "did you mean 'total'"),
        ("date", "_inherited_: false"),
    ):
        with pytest.raises(ConfigError, match=f"task.kinds: no label has this name[^$]*{name}[^$]*{fix}"):
            FieldExtraction(kinds={name: "amount"}, buckets=64).check(small(), tags)
    with pytest.raises(ConfigError, match="no such score"):
        FieldExtraction(main="best")
    with pytest.raises(InputError, match="no labelled lines"):
        FieldExtraction().pack(Sample(np.zeros((4, 4, 3), np.uint8)))
