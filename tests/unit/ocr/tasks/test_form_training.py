"""SER and RE from upstream's configs, in small settings, on forms that are made up: training, scores, the artifact."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from framework.config import build, load
from framework.core.errors import FormatError, InputError
from framework.engine.experiment import bind_experiment
from framework.interop import write_safetensors
from framework.text.xlm_roberta import FILE
from framework.vision import image
from framework.workflow.export.export import export_config
from framework.workflow.train import run as train
from ocr.data.forms import tag_names
from ocr.data.transforms.forms import TokenizeForm
from ocr.documents.field_model import open_fields
from ocr.fields.form_stage import FormReader
from ocr.fields.rules import find_fields
from ocr.results.lines import Line
from ocr.results.pages import Page
from tests.unit.ocr.documents.pdf_pages import PdfPage, make_pdf

KIE = Path(__file__).resolve().parents[4] / "configs" / "ocr" / "kie"
CONFIGS = KIE / "vi_layoutxlm"
SMALL = (
    "model.vocab_size=40",
    "model.hidden_size=48",
    "model.num_layers=2",
    "model.num_heads=4",
    "model.intermediate_size=96",
    "model.dropout=0.0",
    "pretrained=null",
    "train.log_every=1000",
    "train.eval_every=1000",
    "optim.learning_rate=0.003",
)
KEYS = ("Name", "Age", "Town")
VALUES = ("Ann", "Bob", "Cid", "Dan", "Eve", "Fay")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forms of a title and three pairs each, and a tokenizer of their letters."""
    library = pytest.importorskip("sentencepiece")
    root = tmp_path_factory.mktemp("xfund")
    (root / "layoutxlm").mkdir()
    lines = [" ".join((*KEYS, *VALUES, "Form"))] * 30
    with (root / "layoutxlm" / FILE).open("wb") as file:
        library.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=file, vocab_size=26, minloglevel=2
        )
    rng = np.random.default_rng(0)
    for split in ("train", "val"):
        pages = []
        for number in range(8):
            image.write(root / split / f"{number}.png", np.full((100, 200, 3), 255, np.uint8))
            pages.append(f"{number}.png\t{json.dumps(form(rng))}\n")
        (root / f"{split}.json").write_text("".join(pages), encoding="utf-8")
    return root


def form(rng: np.random.Generator) -> list[dict[str, object]]:
    found = [line("Form", (80, 0), "header", 0, [])]
    for row, key in enumerate(KEYS):
        link = [[2 * row + 1, 2 * row + 2]]
        value = VALUES[int(rng.integers(len(VALUES)))]
        found.append(line(key, (10, 30 * row + 25), "question", 2 * row + 1, link))
        found.append(line(value, (110, 30 * row + 25), "answer", 2 * row + 2, link))
    return found


def line(
    text: str, at: tuple[int, int], label: str, number: int, links: list[list[int]]
) -> dict[str, object]:
    (x, y), width = at, 10 * len(text)
    points = [[x, y], [x + width, y], [x + width, y + 12], [x, y + 12]]
    return {"transcription": text, "points": points, "label": label, "id": number, "linking": links}


def settings(folder: Path, *own: str) -> tuple[str, ...]:
    tokens = f"[{{type: TokenizeForm, tokenizer: {(folder / 'layoutxlm').as_posix()}}}]"
    data = [
        f"data.{part}.{key}"
        for part, split in (("train", "train"), ("eval", "val"))
        for key in (
            f"dataset.root={(folder / split).as_posix()}",
            f"dataset.labels=[../{split}.json]",
            f"transforms={tokens}",
            "num_workers=0",
            "batch_size=4",
        )
    ]
    shapes = {"input_ids": "[n, 64]", "bbox": "[n, 64, 4]", "mask": "[n, 64]"}
    inputs = [f"export.inputs.{name}.shape={shape}" for name, shape in shapes.items()]
    return (*SMALL, *data, *inputs, "task.max_seq_len=64", "export.precisions=[float32]", *own)


def page(folder: Path) -> Page:
    """The first page of the validation set as if it had been recognised."""
    first = (folder / "val.json").read_text(encoding="utf-8").splitlines()[0].partition("\t")[2]
    lines = [
        Line(one["transcription"], 1.0, tuple((float(x), float(y)) for x, y in one["points"]))
        for one in json.loads(first)
    ]
    return Page(tuple(lines), page=2, width=200, height=120)


def export(config: Path, weights: Path, given: tuple[str, ...], into: Path | None = None) -> Path:
    made = export_config(config, (*given, f"weights={weights.as_posix()}"))
    folder = (into or weights) / "artifact"
    made.save(folder)
    return folder


def test_ser_learns_the_kinds_of_lines(folder: Path, tmp_path: Path) -> None:
    config = CONFIGS / "ser_vi_layoutxlm_xfund_zh.yml"
    given = settings(folder, "train.epochs=16")
    scores = train.train(config, given, output_dir=tmp_path)
    assert scores["hmean"] > 0.95, scores
    artifact = export(config, tmp_path, given)
    seen = page(folder)
    found = open_fields(artifact)(seen)
    kinds = [(field.name, field.value) for field in found]
    wanted = [("header", "Form")]
    wanted += [(("question", "answer")[n % 2], line.text) for n, line in enumerate(seen.lines[1:])]
    assert kinds == wanted and {field.page for field in found} == {2}
    assert [field.value for field in find_fields([seen], open_fields(artifact))][:7] == [
        "Form", *KEYS, *(line.text for line in seen.lines[2::2])
    ]  # fmt: skip
    with pytest.raises(FormatError, match="finds no relations"):
        open_fields(artifact, artifact)


@pytest.mark.slow
def test_re_learns_which_key_a_value_has(folder: Path, tmp_path: Path) -> None:
    ser = CONFIGS / "ser_vi_layoutxlm_xfund_zh.yml"
    given = settings(folder, "train.epochs=16")
    train.train(ser, given, output_dir=tmp_path / "ser")
    entities = export(ser, tmp_path / "ser", given)
    config = CONFIGS / "re_vi_layoutxlm_xfund_zh.yml"
    own = ("train.epochs=60", "task.max_entities=8", "optim.learning_rate=0.002", "model.hidden_size=192")
    own += ("export.inputs.starts.shape=[n, 8]", "export.inputs.kinds.shape=[n, 8]")
    scores = train.train(config, settings(folder, *own), output_dir=tmp_path / "re")
    assert scores["hmean"] > 0.9, scores
    relations = export(config, tmp_path / "re", settings(folder, *own))
    seen = page(folder)
    fields = {field.name: (field.key, field.value) for field in open_fields(entities, relations)(seen)}
    assert fields == {key.lower(): (key, seen.lines[2 * n + 2].text) for n, key in enumerate(KEYS)}
    with pytest.raises(FormatError, match="finds no kinds of lines"):
        open_fields(relations, relations)


def test_a_missing_tokenizer_is_named(folder: Path, tmp_path: Path) -> None:
    config = CONFIGS / "ser_vi_layoutxlm_xfund_zh.yml"
    where = tmp_path.as_posix()
    wrong = [
        f"data.{part}.transforms=[{{type: TokenizeForm, tokenizer: {where}}}]" for part in ("train", "eval")
    ]
    with pytest.raises(InputError, match="the tokenizer is missing"):
        train.train(config, (*settings(folder, "train.epochs=1"), *wrong), output_dir=tmp_path / "run")


def test_the_tokenizer_comes_from_the_hub_and_goes_into_the_artifact(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[tuple[str, str]] = []

    def fetch(name: str, file: str) -> Path:
        fetched.append((name, file))
        return folder / "layoutxlm" / FILE

    monkeypatch.setattr("ocr.formulas.tokenizer_files.hub.fetch", fetch)
    for name in ("vi_layoutxlm/ser_vi", "vi_layoutxlm/re_vi", "layoutlm_series/ser", "layoutlm_series/re"):
        plain = load(KIE / f"{name}_layoutxlm_xfund_zh.yml").plain()
        for part in ("train", "eval"):
            (turn,) = plain["data"][part]["transforms"]
            weights = turn["tokenizer"]
            assert TokenizeForm(weights).source().vocab_size == 28
            assert fetched.pop() == (weights, "vocab")
    packed, files = TokenizeForm(weights).pack_assets()
    fetched.clear()
    assert packed.load_assets(files).source().encode("Name") and not fetched
    with pytest.raises(InputError, match=r"tokenizer is missing(.|\n)*did you mean 'layoutxlm_base_uncased'"):
        TokenizeForm("layoutxlm_base_uncase").source()


@pytest.fixture(scope="module")
def with_images(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An artifact of LayoutXLM's SER that reads images, its weights drawn at random; the classifier's are larger, so
    that lines get several labels."""
    config = KIE / "layoutlm_series" / "ser_layoutxlm_xfund_zh.yml"
    given = settings(folder, "model.visual_depths=[1, 1, 1, 1]", "model.visual_width=32")
    model = build(bind_experiment(load(config, given)).model)
    state = {name: np.asarray(value) for name, value in model.state_dict().items()}
    state["classifier.weight"] = 100 * state["classifier.weight"]
    run = tmp_path_factory.mktemp("images")
    write_safetensors(run / "model.safetensors", state)
    return export(config, run / "model.safetensors", given, run)


def test_documents_keep_images_for_models_that_read_them(with_images: Path, tmp_path: Path) -> None:
    import ocr
    from framework.commands import document as command

    drawn = [PdfPage(), PdfPage()]
    for content in drawn:
        for place, word in enumerate((*KEYS, *VALUES)):
            content.text(30 + 150 * (place % 2), 40 + 25 * (place // 2), word)
    drawn[1].fill(20, 200, 380, 290, grey=0.0)
    pdf = tmp_path / "form.pdf"
    pdf.write_bytes(make_pdf(*drawn))
    doc = ocr.document(pdf, text_layer="always", fields_model=str(with_images))
    assert all(page.image is None for page in doc.pages)
    read = open_fields(with_images)
    assert isinstance(read, FormReader) and read.reads_images and len(doc.fields) > 1
    pages = ocr.document(pdf, text_layer="always", images=True).pages
    first, second = (read(page) for page in pages)
    assert doc.fields == find_fields(pages, read) and {*first, *second} & set(doc.fields)
    # The pages say the same, and one of them looks different: a program gives equal results for equal inputs.
    said: list[np.ndarray] = []

    def engine(batch: Any) -> Any:
        outputs = read.entities.engine(batch)
        said.append(np.asarray(outputs["scores"]))
        return outputs

    spy = FormReader(replace(read.entities, engine=engine), None, str.casefold)
    assert spy(pages[0]) == first and spy(pages[1]) == second
    assert (said[0] != said[1]).any()
    with pytest.raises(InputError, match="a page has none"):
        read(replace(pages[0], image=None))
    flags = ["--fields_model", str(with_images), "--text_layer", "always", "--format", "json"]
    assert command.main([str(pdf), *flags, "--output", str(tmp_path / "out")]) == 0
    (written,) = (tmp_path / "out").rglob("*_fields.json")
    assert {one["value"] for one in json.loads(written.read_text("utf-8"))} & {*KEYS, *VALUES}
    assert not list((tmp_path / "out").rglob("*.jpg"))


def test_relations_go_with_a_model_of_their_labels(with_images: Path, tmp_path: Path) -> None:
    def changed(name: str, **values: Any) -> Path:
        folder = Path(shutil.copytree(with_images, tmp_path / name))
        about = yaml.safe_load((folder / "infer_cfg.yml").read_text(encoding="utf-8"))
        (folder / "infer_cfg.yml").write_text(yaml.safe_dump({**about, **values}), encoding="utf-8")
        return folder

    relations = changed("re", kind="re")
    assert open_fields(with_images, relations).reads_images
    with pytest.raises(FormatError, match="between questions and answers") as caught:
        open_fields(changed("ser", labels=list(tag_names(("answer", "question")))), relations)
    assert "ANSWER, QUESTION" in str(caught.value)
