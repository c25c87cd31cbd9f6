"""Formulas: LaTeX without needless spaces, scores, what networks see, and the model as a user trains and runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ocr
from framework import nn
from framework.config import load
from framework.core.errors import ConfigError, FormatError, InputError
from framework.engine.experiment import bind_experiment
from framework.inference import Runtime
from framework.interop import write_safetensors
from framework.interop.named_weights import named_weights
from framework.text.tokenizer import Tokenizer
from framework.vision import image as vision_image
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from framework.workflow.export.export import export_config, trained_model
from framework.workflow.train.run import train as run_training
from ocr.data.transforms.formulas import FormulaImage, FormulaTokens
from ocr.documents.layout_regions import Region
from ocr.documents.loaders import make_formula_opener
from ocr.documents.options import DocumentOptions
from ocr.documents.reader import DocumentReader
from ocr.formulas.blocks import read_formulas
from ocr.formulas.cdm import can_draw
from ocr.formulas.image import crop_margins, prepare_formula
from ocr.formulas.latex import bleu, split_latex, tidy_latex
from ocr.formulas.scores import FormulaScores
from ocr.formulas.stage import FormulaOptions, FormulaRecognizer, FormulaText
from ocr.formulas.text import cut_tokens, decode_latex, find_tokenizer
from ocr.models.pp_formulanet import PPFormulaNet, PPFormulaNetConfig
from ocr.results.blocks import Block, Formula
from ocr.tasks.formulas import FormulaRecognition
from tests.unit.ocr.documents.pdf_pages import PdfPage, make_pdf

SAID = r"\frac { a } { b } + x ^ { 2 } = \sin x"


def tokenizer_json() -> str:
    """Byte-level BPE with MBart's numbers of start, padding and end."""
    tokenizers = pytest.importorskip("tokenizers")
    core = tokenizers.Tokenizer(tokenizers.models.BPE())
    core.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = tokenizers.decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=60, special_tokens=special, show_progress=False)
    core.train_from_iterator([SAID] * 3, trainer)
    core.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return core.to_str()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (SAID, r"\frac{a}{b}+x^{2}=\sin x"),
        (r"\alpha _ { i } x y \, z", r"\alpha_{i}x y\,z"),
        (r"\operatorname* { a r g m i n } _ x y", r"\operatorname*{argmin}_x y"),
        (r"\mathrm { \ a \alpha b { c d } } e f", r"\mathrm{\ a\alpha b{cd}}e f"),
        (r"\text { i f } \quad x", r"\text{if}\quad x"),
        ("} } a \\", "}}a\\"),
        ("", ""),
    ],
)
def test_spaces_between_tokens(given: str, wanted: str) -> None:
    assert tidy_latex(given) == wanted
    assert tidy_latex(wanted) == wanted
    assert split_latex(given) == split_latex(wanted) or "mathrm" in given


def test_bleu_by_hand() -> None:
    same = split_latex(r"a+b=c")
    assert bleu([(same, same)]) == pytest.approx(1.0)
    # 4 of 5 tokens, 2 of 4 pairs, 1 of 3 threes and none of the fours
    assert bleu([(split_latex("a+b-c"), same)]) == 0.0
    # of both: 9/10, 6/8, 4/6, 2/4
    two = [(same, same), (split_latex("a+b-c"), same)]
    assert bleu(two) == pytest.approx((9 / 10 * 6 / 8 * 4 / 6 * 2 / 4) ** 0.25)
    assert bleu([(same[:4], same)]) == pytest.approx(np.exp(1 - 5 / 4))
    assert bleu([(["x"], ["x"])]) == pytest.approx(1.0)
    assert bleu([]) == bleu([([], same)]) == 0.0


def test_scores() -> None:
    tokenizer = Tokenizer.from_json(tokenizer_json())
    scores = FormulaScores(tokenizer)
    assert scores.result()["exp_rate"] == scores.result()["bleu"] == 0.0
    ids = tokenizer.encode(SAID).ids.tolist()
    padded = [*ids[1:], 7, 1, 1]
    scores.update({"tokens": np.array([padded])}, {"text": np.array([SAID])})
    scores.add("abcd", "abxy")
    found = scores.result()
    assert found["exp_rate"] == found["exp_rate_1"] == 0.5 and found["exp_rate_2"] == 1.0
    assert found["edit_distance"] == pytest.approx(0.25) and 0 < found["bleu"] < 1
    assert ("cdm" in found) == can_draw() and found.get("cdm", 0.75) == pytest.approx(0.75)


def ink(height: int, width: int, box: tuple[int, int, int, int]) -> np.ndarray:
    image = np.full((height, width, 3), 250, np.uint8)
    left, top, right, bottom = box
    image[top:bottom, left:right] = (10, 20, 30)
    return image


def test_margins_are_cut_and_the_formula_is_fitted_on_black() -> None:
    image = ink(60, 100, (20, 10, 60, 30))
    image[15:18, 30:40] = 255
    cut = crop_margins(image)
    assert cut.shape == (20, 40, 3) and cut[0, 0].tolist() == [10, 20, 30]
    seen = prepare_formula(image, (32, 48))
    assert seen.shape == (32, 48, 3) and (seen == seen[..., :1]).all()
    assert not seen[:4].any() and not seen[28:].any() and seen[4:28].any()  # 24 of 32 rows, 48 columns
    assert seen[6, 2, 0] == 18  # the grey of (10, 20, 30)
    blank = np.full((9, 9, 3), 77, np.uint8)
    assert crop_margins(blank) is blank and (prepare_formula(blank, (18, 18)) == 77).all()
    long = prepare_formula(ink(20, 4000, (5, 9, 3990, 11)), (32, 48))
    assert long.any(axis=(1, 2)).sum() == 1
    with pytest.raises(InputError, match="image of a formula is empty"):
        prepare_formula(np.zeros((0, 5, 3), np.uint8), (32, 48))


def test_tokens_and_their_tokenizer(tmp_path: Path) -> None:
    text = tokenizer_json()
    (tmp_path / "tokenizer.json").write_text(text, encoding="utf-8")
    ids = find_tokenizer(str(tmp_path)).encode(SAID).ids
    sample = Sample(np.zeros((4, 4, 3), np.uint8), text=SAID, id="s")
    turn = FormulaTokens(str(tmp_path / "tokenizer.json"))
    out = turn(sample, np.random.default_rng(0))
    assert out.labels is not None and out.labels.tolist() == ids.tolist() and ids[0] == 0 and ids[-1] == 2
    packed, files = turn.pack_assets()
    assert packed.tokenizer == "tokenizer.json" and packed.load_assets(files)(
        sample, np.random.default_rng(0)
    )
    with pytest.raises(FormatError, match="lacks its tokenizer"):
        packed.load_assets({})
    with pytest.raises(InputError, match="s: a sample has no formula"):
        turn(sample.replace(text=None), np.random.default_rng(0))
    with pytest.raises(InputError, match=r"no tokenizer of formulas(.|\n)*copy tokenizer.json"):
        find_tokenizer("nothing")
    (tmp_path / "tokenizer.json").write_text(text[:200], encoding="utf-8")
    with pytest.raises(FormatError):
        find_tokenizer(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ConfigError, match="an image has a size"):
        FormulaImage((0, 4))
    model = type(
        "Model", (), {"config": type("Config", (), {"parts": type("Parts", (), {"vocab_size": 9})})}
    )()
    with pytest.raises(ConfigError, match="more tokens than the model"):
        FormulaTokens(text).check(model)
    assert cut_tokens(np.array([5, 2, 7])).tolist() == [5] and cut_tokens(np.array([5, 7])).tolist() == [5, 7]


def test_the_loss_is_the_cross_entropy_of_tokens_three_places_later() -> None:
    task = FormulaRecognition(Normalize((0.5,) * 3, (0.5,) * 3), "unused", max_tokens=8)
    image = np.zeros((4, 4, 3), np.uint8)
    packed = task.pack(Sample(image, text="x", labels=np.array([0, 9, 8, 7, 2]), id="p"))
    long = task.pack(Sample(image, text="y", labels=np.arange(9)))
    assert packed["tokens"].tolist() == [0, 9, 8, 7, 2, 1, 1, 1] and packed["counts"] == 1
    assert long["counts"] == 0 and (long["tokens"] == 1).all()
    batch = {name: jnp.stack([one[name] for one in (packed, long)]) for name in ("image", "tokens", "counts")}

    class Model:
        head = type("Head", (), {"config": type("Config", (), {"step": 3})})

        def __call__(self, image, tokens):
            assert tokens.shape == (2, 7) and tokens[0].tolist() == [0, 0, 0, 9, 8, 7, 2]
            return jax.nn.one_hot(jnp.array([[9, 8, 6, 2, 4, 4, 4]] * 2), 10)  # the third is wrong

    losses = task.loss(Model(), batch)  # type: ignore[arg-type]
    right, wrong = np.log(np.e + 9) - 1, np.log(np.e + 9)
    assert float(losses.total) == pytest.approx((3 * right + wrong) / 4)
    assert float(losses.parts["accuracy"]) == pytest.approx(0.75)
    with pytest.raises(InputError, match="p: a sample has no tokens"):
        task.pack(Sample(image, text="x", id="p"))
    with pytest.raises(InputError, match="q: a sample has no formula"):
        task.pack(Sample(image, labels=np.array([1]), id="q"))


def test_formulas_of_a_page_are_read_from_their_part_of_the_image() -> None:
    seen = []

    def reader(image: np.ndarray) -> FormulaText:
        seen.append(image.shape)
        return FormulaText("x" if len(seen) == 1 else "", 0.5)

    page = np.zeros((40, 50, 3), np.uint8)
    text, formula = Block("text", (0, 0, 9, 9), "t"), Block("formula", (5.6, 10, 30.4, 20), "raw")
    outside = Block("formula", (60, 10, 70, 20))
    found = read_formulas([text, formula, formula, outside], page, lambda: reader)
    assert seen == [(10, 25, 3)] * 2 and found[0] is text and found[2] is formula and found[3] is outside
    assert found[1].content == Formula("x") and (found[1].text, found[1].score) == ("x", 0.5)
    assert read_formulas([text], page, lambda: pytest.fail("nothing to read")) == [text]
    with pytest.raises(InputError, match="formulas are found by a layout detector"):
        DocumentOptions(formula_model="PP-FormulaNet-S")


def test_a_document_has_the_latex_of_the_formulas_that_the_detector_finds() -> None:
    regions = (Region("text", (20, 30, 200, 60), 0.9), Region("formula", (20, 80, 150, 110), 0.9))
    layout: Any = lambda image: regions  # noqa: E731
    page = PdfPage().text(30, 40, "We have").text(30, 90, "x2 = 4")

    def no_ocr() -> Any:
        raise AssertionError("a text layer was read by OCR")

    def read(image: np.ndarray) -> FormulaText:
        assert image.shape == (30, 130, 3)
        return FormulaText("x^{2}=4", 0.75)

    opened = DocumentReader(no_ocr, "always", dpi=72.0, layout=layout, open_formula=lambda: read)
    document = opened(make_pdf(page))
    text, formula = document.pages[0].blocks
    assert text.text == "We have" and formula.content == Formula("x^{2}=4") and formula.score == 0.75
    assert "$$" in document.to_markdown() and "x^{2}=4" in document.to_markdown()


SIZES = {"backbone": "pphgnetv2_b0", "width": 32, "heads": 4, "feed_forward": 64, "vocab_size": 60}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A recipe of a small model, with two images."""
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(), encoding="utf-8")
    for name, box in (("a", (10, 10, 50, 20)), ("b", (5, 5, 20, 30))):
        vision_image.write(tmp_path / f"{name}.png", ink(40, 60, box))
    (tmp_path / "train.txt").write_text("a.png\tx ^ { 2 }\nb.png\t\\sin x\n", encoding="utf-8")
    tokenizer = f"tokenizer: '{(tmp_path / 'tokenizer.json').as_posix()}'"
    part = (
        f"{{dataset: {{type: TextLineImages, root: '{tmp_path.as_posix()}', labels: [train.txt]}}, batch_size: 2, "
        f"transforms: [{{type: FormulaImage, size_hw: [32, 32]}}, {{type: FormulaTokens, {tokenizer}}}]}}"
    )
    recipe = Path("configs/_base_/formula.yml").resolve().as_posix()
    config = tmp_path / "small.yml"
    config.write_text(
        f"""_base_: '{recipe}'
model: {json.dumps({"type": "PPFormulaNet", "max_tokens": None, **SIZES})}
task: {{{tokenizer}, size_hw: [32, 32], max_tokens: 12}}
data: {{train: {part}, eval: {part}}}
optim: {{_inherited_: false, type: Adam, learning_rate: 0.003}}
train: {{epochs: 2}}
export: {{inputs: {{image: {{shape: [n, 32, 32, 3], dtype: uint8}}}}}}
""",
        encoding="utf-8",
    )
    return config


def test_an_artifact_reads_what_its_model_says(config: Path, tmp_path: Path) -> None:
    shapes = PPFormulaNet(PPFormulaNetConfig(**SIZES, max_tokens=12)).state_shapes()
    write_safetensors(tmp_path / "a.safetensors", named_weights(shapes))
    weights = f"weights='{(tmp_path / 'a.safetensors').as_posix()}'"
    export_config(config, (weights,)).save(tmp_path / "net")
    read = ocr.predictor(str(tmp_path / "net"))
    (block,) = read(str(tmp_path / "a.png")).pages[0].blocks
    assert block.label == "formula" and isinstance(block.content, Formula)
    seen = prepare_formula(vision_image.read(tmp_path / "a.png"), (32, 32))
    experiment = bind_experiment(load(config, (weights,)))
    model, *_ = trained_model(experiment, config)
    graphdef, params, buffers = nn.split(model)
    image = experiment.task.normalize(jnp.asarray(seen[None]))
    wanted = nn.apply(graphdef, params, buffers, None, image, method="read")[0]
    said = cut_tokens(np.asarray(wanted[0])[0])
    assert wanted[0].shape == (1, 12)
    assert len(set(said.tolist())) > 1 and block.content.latex == decode_latex(
        Tokenizer.from_json(tokenizer_json()), said.tolist()
    )
    assert make_formula_opener(str(tmp_path / "net"), Runtime())() is not None


@pytest.mark.slow
def test_training(config: Path, tmp_path: Path) -> None:
    scores = run_training(config, output_dir=tmp_path / "run")
    assert scores is not None and {"exp_rate", "bleu", "edit_distance"} <= scores.keys()


def test_a_model_of_another_kind_reads_no_formulas() -> None:
    with pytest.raises(InputError, match="this model reads no formulas"):
        make_formula_opener("table_grid_s", Runtime())()


def test_the_recogniser_gives_latex_and_the_mean_probability() -> None:
    tokenizer = Tokenizer.from_json(tokenizer_json())
    ids = tokenizer.encode("x ^ { 2 }").ids[1:]
    outputs = {
        "tokens": np.array([[*ids, 9, 9]]),
        "probabilities": np.array([[0.5] * (len(ids) - 1) + [0.0] * 3]),
    }
    reader = FormulaRecognizer(
        lambda inputs: outputs,  # type: ignore[arg-type]
        FormulaOptions(Normalize(), (16, 16)),
        tokenizer,
    )
    assert reader(ink(20, 30, (5, 5, 20, 15))) == ("x^{2}", 0.5)
