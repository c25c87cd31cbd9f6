"""Adapters in files: peft's both ways, PaddleNLP's in; arrays are named and laid out as those toolkits write them."""

import dataclasses
import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from framework.config import build
from framework.core.errors import ConfigError, FormatError, InputError, WeightError
from framework.interop import load_weights, write_safetensors
from framework.nn.adapters import LoRA, merge_adapters
from nlp.adapter_files import (
    _copy_parameters,
    is_adapter_folder,
    read_adapter,
    read_adapter_config,
    save_adapter,
)
from tools.merge_lora import main as merge
from zoo.decoder.llama import LlamaConfig
from zoo.layers.decoder_weights import load_decoder, save_decoder

CONFIG = LlamaConfig(
    vocab_size=11, hidden_size=8, num_layers=1, num_heads=2, intermediate_size=12, max_positions=16
)
IDS = jnp.asarray([[1, 2, 3, 4]])
Q = "model.layers.0.self_attn.q_proj"


@pytest.fixture(scope="module")
def model():
    return build(CONFIG).eval()


def peft_folder(folder: Path, arrays: dict[str, np.ndarray], **settings: object) -> Path:
    folder.mkdir(exist_ok=True)
    defaults = {
        "peft_type": "LORA",
        "r": 2,
        "lora_alpha": 6,
        "target_modules": ["q_proj"],
        "lora_dropout": 0.0,
    }
    (folder / "adapter_config.json").write_text(json.dumps({**defaults, **settings}), encoding="utf-8")
    write_safetensors(folder / "adapter_model.safetensors", arrays, {"format": "pt"})
    return folder


A = np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)
B = np.random.default_rng(1).normal(size=(8, 2)).astype(np.float32)
PEFT = {f"base_model.model.{Q}.lora_A.weight": A, f"base_model.model.{Q}.lora_B.weight": B}


def test_an_adapter_of_peft_is_added_to_the_weights(model, tmp_path: Path) -> None:
    adapted = read_adapter(model, peft_folder(tmp_path / "a", PEFT))
    assert is_adapter_folder(tmp_path / "a") and not is_adapter_folder(tmp_path)
    merge_adapters(adapted)
    expected = np.asarray(model.state_dict()[f"{Q}.weight"]) + 3.0 * (B @ A).T
    np.testing.assert_allclose(adapted.state_dict()[f"{Q}.weight"], expected, atol=1e-6)


def test_what_is_written_is_what_peft_wrote(model, tmp_path: Path) -> None:
    folder = peft_folder(tmp_path / "a", PEFT, use_rslora=True)
    adapted = read_adapter(model, folder)
    written = save_adapter(adapted, tmp_path / "b", "models/tiny")
    arrays = load_weights(written / "adapter_model.safetensors")
    assert arrays.keys() == PEFT.keys()
    for name, value in PEFT.items():
        np.testing.assert_array_equal(arrays[name], value)
    settings = json.loads((written / "adapter_config.json").read_text(encoding="utf-8"))
    assert settings["target_modules"] == ["q_proj"] and settings["use_rslora"] and settings["r"] == 2
    assert settings["base_model_name_or_path"] == "models/tiny" and settings["task_type"] == "CAUSAL_LM"
    np.testing.assert_array_equal(read_adapter(model, written)(IDS), adapted(IDS))


def test_magnitudes_patterns_and_whole_layers(model, tmp_path: Path) -> None:
    config = LoRA(
        rank=2,
        targets="q_proj|down_proj",
        dora=True,
        modules_to_save=("embed_tokens",),
        rank_pattern={"down_proj": 3},
    )
    adapted = build(dataclasses.replace(CONFIG, adapter=config)).eval()
    rng = np.random.default_rng(2)
    for parameter in adapted.parameters():
        if parameter.trainable:
            parameter.set_value(rng.normal(size=parameter.shape).astype(np.float32))
    base = {n: v for n, v in adapted.state_dict().items() if "lora" not in n}
    plain = build(CONFIG).eval()
    plain.set_state_dict(
        {**base, "model.embed_tokens.weight": model.state_dict()["model.embed_tokens.weight"]}
    )
    written = save_adapter(adapted, tmp_path / "a")
    again = read_adapter(plain, written)
    np.testing.assert_allclose(again(IDS), adapted(IDS), atol=1e-6)
    names = load_weights(written / "adapter_model.safetensors")
    assert (
        f"base_model.model.{Q}.lora_magnitude_vector" in names
        and "base_model.model.model.embed_tokens.weight" in names
    )


@pytest.mark.parametrize("names", [("norm", "layers.0.input_layernorm"), ("norm",)])
def test_names_of_whole_layers_are_ends_of_texts(model, tmp_path: Path, names: tuple[str, ...]) -> None:
    """peft: "norm" of modules_to_save is every layer whose name ends so (unsloth#328)."""
    values = {f"model.{name}.weight": np.full(8, 2.0, np.float32) for name in names}
    arrays = {**PEFT, **{f"base_model.model.{name}": value for name, value in values.items()}}
    adapted = read_adapter(model, peft_folder(tmp_path / "a", arrays, modules_to_save=["norm"]))
    again = read_adapter(model, save_adapter(adapted, tmp_path / "b"))
    for name, value in {**dict(model.named_parameters()), **values}.items():
        if "norm" in name:
            expected = value if name in values else value.value
            np.testing.assert_array_equal(dict(again.named_parameters())[name].value, expected)


def test_paddlenlp_has_its_matrices_the_other_way_round(model, tmp_path: Path) -> None:
    folder = tmp_path / "paddle"
    folder.mkdir()
    settings = {
        "r": 2,
        "lora_alpha": 6,
        "target_modules": [".*q_proj.*"],
        "lora_dropout": 0.1,
        "rslora": False,
    }
    (folder / "lora_config.json").write_text(json.dumps(settings), encoding="utf-8")
    write_safetensors(
        folder / "peft_model.safetensors", {f"{Q}.lora_A": A.T.copy(), f"{Q}.lora_B": B.T.copy()}
    )
    theirs = read_adapter(model, peft_folder(tmp_path / "a", PEFT))
    np.testing.assert_allclose(read_adapter(model, folder)(IDS), theirs(IDS), atol=1e-6)
    assert read_adapter_config(folder).dropout == 0.1


def test_the_tool_merges(model, tmp_path: Path, capsys) -> None:
    save_decoder(model, tmp_path / "base")
    folder = peft_folder(tmp_path / "a", PEFT, base_model_name_or_path=str(tmp_path / "base"))
    assert merge(["--adapter", str(folder), "--output", str(tmp_path / "merged")]) == 0
    assert "1 layers" in capsys.readouterr().out
    np.testing.assert_allclose(
        load_decoder(tmp_path / "merged")(IDS), read_adapter(model, folder)(IDS), atol=1e-5
    )
    assert (
        merge(
            ["--adapter", str(tmp_path), "--output", str(tmp_path / "x"), "--model", str(tmp_path / "base")]
        )
        == 2
    )


def test_adapters_that_do_not_fit(model, tmp_path: Path) -> None:
    for arrays, settings, error, message in (
        ({}, {}, WeightError, "2 missing"),
        ({**PEFT, "base_model.model.x.lora_A.weight": A}, {}, WeightError, "left over"),
        ({**PEFT, f"base_model.model.{Q}.lora_A.weight": A[:, :4].copy()}, {}, WeightError, "another shape"),
        (PEFT, {"target_modules": ["embed_tokens"]}, ConfigError, "no linear layer"),
        (PEFT, {"target_modules": ["q_proj", "lm_heads"]}, ConfigError, "no layer is called"),
        (PEFT, {"peft_type": "IA3"}, ConfigError, "kind"),
        (PEFT, {"target_modules": None}, FormatError, "names no layers"),
    ):
        with pytest.raises(error, match=message):
            read_adapter(model, peft_folder(tmp_path / "a", arrays, **settings))
    with pytest.raises(InputError, match="no adapter"):
        read_adapter(model, tmp_path)
    with pytest.raises(WeightError, match="no adapter"):
        save_adapter(model, tmp_path / "b")


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"r": 0}, FormatError, "a rank is a whole number"),
        ({"target_modules": "a" * 20_000}, FormatError, "too long"),
        ({"r": 2.5}, FormatError, "a rank is a whole number"),
        ({"r": float("nan")}, FormatError, "no number"),
        ({"rank_pattern": {"q_proj": float("inf")}}, FormatError, "no number"),
        ({"lora_alpha": float("nan")}, FormatError, "no number"),
        ({"r": 99_999_999_999}, WeightError, "does not fit its settings"),
        ({"rank_pattern": {"q_proj": 10_000}}, WeightError, "does not fit its settings"),
    ],
)
def test_ranks_are_checked_before_layers_are_made(model, tmp_path: Path, settings, error, message) -> None:
    with pytest.raises(error, match=message):
        read_adapter(model, peft_folder(tmp_path / "a", PEFT, **settings))


@pytest.mark.parametrize(
    "adapted_names",
    [
        {"layers_to_transform": [0], "layers_pattern": "layers"},
        {"exclude_modules": ["layers.1.self_attn.q_proj"]},
        {"exclude_modules": r".*\.layers\.1\..*"},
    ],
)
def test_layers_that_settings_choose_are_those_of_the_file(
    adapted_names: dict[str, object], tmp_path: Path
) -> None:
    """peft tells them by numbers of layers, names or an expression: what it wrote is what there is."""
    deeper = build(dataclasses.replace(CONFIG, num_layers=2)).eval()
    adapted = read_adapter(deeper, peft_folder(tmp_path / "a", PEFT, **adapted_names))
    layers = [name for name, _ in adapted.named_parameters() if name.endswith("lora_A")]
    assert layers == [f"{Q}.lora_A"] and not np.allclose(adapted(IDS), deeper(IDS))
    again = read_adapter(deeper, save_adapter(adapted, tmp_path / "b"))
    np.testing.assert_array_equal(again(IDS), adapted(IDS))


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("indices", [[3, 1], {"embed_tokens": [3, 1]}])
def test_rows_of_single_tokens(tied: bool, indices: object, tmp_path: Path) -> None:
    """peft's trainable_token_indices: the rows stand instead of the model's, in a tied head, too."""
    base = build(dataclasses.replace(CONFIG, tie_embeddings=tied)).eval()
    name = "model.embed_tokens.weight"
    rows = np.arange(16, dtype=np.float32).reshape(2, 8)
    key = "base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta"
    folder = peft_folder(tmp_path / "a", {**PEFT, key: rows}, trainable_token_indices=indices)
    adapted = read_adapter(base, folder)
    expected = np.array(dict(base.named_parameters())[name].value)
    expected[[3, 1]] = rows
    np.testing.assert_array_equal(dict(adapted.named_parameters())[name].value, expected)
    assert adapted.size.tie_embeddings is tied
    again = read_adapter(base, save_adapter(adapted, tmp_path / "b"))
    np.testing.assert_array_equal(again(IDS), adapted(IDS))
    for wrong in ([3, 11], [3], None, {"lm_head": [3, 1]}):
        with pytest.raises(WeightError, match="rows of single tokens do not fit"):
            read_adapter(
                base, peft_folder(tmp_path / "a", {**PEFT, key: rows}, trainable_token_indices=wrong)
            )


@pytest.mark.parametrize("tied", [True, False])
def test_low_rank_adapters_of_embeddings(tied: bool, tmp_path: Path) -> None:
    """peft's lora_embedding_A [rank, tokens] and _B [width, rank] change what goes in, not a head that was tied."""
    base = build(dataclasses.replace(CONFIG, tie_embeddings=tied)).eval()
    name, rng = "model.embed_tokens.weight", np.random.default_rng(2)
    before = np.array(dict(base.named_parameters())[name].value)
    first = rng.normal(size=(3, len(before))).astype(np.float32)
    second = rng.normal(size=(8, 3)).astype(np.float32)
    key = "base_model.model.model.embed_tokens.lora_embedding_"
    settings = {"target_modules": ["q_proj", "embed_tokens"], "rank_pattern": {"embed_tokens": 3}}
    arrays = {**PEFT, key + "A": first, key + "B": second}
    adapted = read_adapter(base, peft_folder(tmp_path / "a", arrays, **settings))
    ours = dict(adapted.named_parameters())
    np.testing.assert_allclose(ours[name].value, before + 6 / 3 * (second @ first).T, rtol=1e-5, atol=1e-6)
    if tied:
        np.testing.assert_array_equal(ours["lm_head.weight"].value, before.T)
    again = read_adapter(base, save_adapter(adapted, tmp_path / "b"))
    np.testing.assert_array_equal(again(IDS), adapted(IDS))
    for wrong in ({**arrays, key + "A": first[:, 1:]}, {**PEFT, key + "A": first}):
        with pytest.raises(WeightError, match="embedding does not fit"):
            read_adapter(base, peft_folder(tmp_path / "a", wrong, **settings))


def test_an_adapter_of_embeddings_alone(tmp_path: Path) -> None:
    """It was refused: no linear layer has one. peft calls the targets of what is written "dummy-target-modules"."""
    base = build(dataclasses.replace(CONFIG, tie_embeddings=False)).eval()
    name, rng = "model.embed_tokens.weight", np.random.default_rng(2)
    before = np.array(dict(base.named_parameters())[name].value)
    first, second = (rng.normal(size=shape).astype(np.float32) for shape in ((2, len(before)), (8, 2)))
    key = "base_model.model.model.embed_tokens.lora_embedding_"
    folder = peft_folder(
        tmp_path / "a", {key + "A": first, key + "B": second}, target_modules=["embed_tokens"]
    )
    adapted = read_adapter(base, folder)
    ours = dict(adapted.named_parameters())[name].value
    np.testing.assert_allclose(ours, before + 6 / 2 * (second @ first).T, rtol=1e-5, atol=1e-6)
    again = read_adapter(base, save_adapter(adapted, tmp_path / "b"))
    np.testing.assert_array_equal(again(IDS), adapted(IDS))
    assert merge_adapters(again) == [] and all(one.trainable for one in again.parameters())
    np.testing.assert_array_equal(again(IDS), adapted(IDS))
    with pytest.raises(WeightError, match="no adapters"):
        merge_adapters(again)
    with pytest.raises(ConfigError, match="no linear layer"):
        build(dataclasses.replace(CONFIG, adapter=LoRA(targets="")))
    with pytest.raises(ConfigError, match="adapters are of linear layers"):  # whose matrices the file lacks
        arrays = {key + "A": first, key + "B": second}
        read_adapter(base, peft_folder(tmp_path / "c", arrays, target_modules=["embed_tokens", "q_proj"]))


def test_dora_of_embeddings(tmp_path: Path) -> None:
    """Each column of peft's DoRA of an embedding has the length of its magnitude (peft 0.21, DoraEmbeddingLayer)."""
    base = build(dataclasses.replace(CONFIG, tie_embeddings=False)).eval()
    name, rng = "model.embed_tokens.weight", np.random.default_rng(2)
    before = np.array(dict(base.named_parameters())[name].value)
    first, second = (rng.normal(size=shape).astype(np.float32) for shape in ((2, len(before)), (8, 2)))
    magnitude = rng.uniform(1, 2, size=8).astype(np.float32)
    key = "base_model.model.model.embed_tokens.lora_"
    lengths = {
        one.replace("lora_B.weight", "lora_magnitude_vector"): np.ones(len(value), np.float32)
        for one, value in PEFT.items()
        if one.endswith("lora_B.weight")
    }
    arrays = {**PEFT, **lengths, key + "embedding_A": first, key + "embedding_B": second}
    settings = {"target_modules": ["q_proj", "embed_tokens"], "use_dora": True}
    dora = {**arrays, key + "magnitude_vector": magnitude}
    adapted = read_adapter(base, peft_folder(tmp_path / "a", dora, **settings))
    changed = before + 6 / 2 * (second @ first).T
    expected = changed * magnitude / np.sqrt((changed**2).sum(0))
    ours = dict(adapted.named_parameters())[name].value
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)
    for wrong in ({**dora, key + "magnitude_vector": magnitude[1:]}, arrays):
        with pytest.raises(WeightError, match="embedding does not fit"):
            read_adapter(base, peft_folder(tmp_path / "a", wrong, **settings))


def test_a_rank_that_is_left_out_is_peft_s(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text(
        json.dumps({"target_modules": ["q_proj"]}), encoding="utf-8"
    )
    assert read_adapter_config(tmp_path).rank == 8


def test_layers_of_paddles_adapters_are_texts(model, tmp_path: Path) -> None:
    (tmp_path / "lora_config.json").write_text(json.dumps({"r": 2, "target_modules": [7]}), encoding="utf-8")
    with pytest.raises(FormatError, match=r"names no layers(?s:.)*\[7\]"):
        read_adapter_config(tmp_path)


TIED = dataclasses.replace(CONFIG, tie_embeddings=True)
WORDS, HEAD = "base_model.model.model.embed_tokens.weight", "base_model.model.lm_head.weight"


@pytest.mark.parametrize("names", [(WORDS,), (HEAD,), (WORDS, HEAD)])
def test_tied_embeddings_of_which_peft_has_one_are_no_longer_tied(tmp_path: Path, names) -> None:
    model = build(TIED).eval()
    old = np.asarray(model.state_dict()["model.embed_tokens.weight"])
    new = {name: old + 1 + place for place, name in enumerate(names)}
    modules = [name.split(".")[-2] for name in names]
    adapted = read_adapter(model, peft_folder(tmp_path / "a", {**PEFT, **new}, modules_to_save=modules))
    state = adapted.state_dict()
    np.testing.assert_array_equal(state["model.embed_tokens.weight"], new.get(WORDS, old))
    np.testing.assert_array_equal(np.asarray(state["lm_head.weight"]).T, new.get(HEAD, old))
    merge_adapters(adapted)
    save_decoder(adapted, tmp_path / "merged")
    np.testing.assert_allclose(load_decoder(tmp_path / "merged")(IDS), adapted(IDS), atol=1e-5)


def test_tied_embeddings_that_were_trained_are_peft_s_head_too(tmp_path: Path) -> None:
    adapter = LoRA(rank=2, targets="q_proj", modules_to_save=("embed_tokens",))
    adapted = build(dataclasses.replace(TIED, adapter=adapter)).eval()
    written = save_adapter(adapted, tmp_path / "a")
    arrays = load_weights(written / "adapter_model.safetensors")
    np.testing.assert_array_equal(arrays[HEAD], arrays[WORDS])
    settings = json.loads((written / "adapter_config.json").read_text(encoding="utf-8"))
    assert settings["modules_to_save"] == ["embed_tokens", "lm_head"]
    plain = build(TIED).eval()
    _copy_parameters(adapted, plain)
    again = read_adapter(plain, written)
    assert "lm_head.weight" not in again.state_dict()
    np.testing.assert_allclose(again(IDS), adapted(IDS), atol=1e-6)


@pytest.mark.parametrize("tied", [True, False])
def test_an_adapter_of_the_head_has_the_head_beside_it(tmp_path: Path, tied: bool) -> None:
    model = build(dataclasses.replace(CONFIG, tie_embeddings=tied)).eval()
    name = "model.embed_tokens.weight" if tied else "lm_head.weight"
    base = np.asarray(model.state_dict()[name]) if tied else np.asarray(model.state_dict()[name]).T
    a, b = np.ones((2, 8), np.float32), np.arange(22, dtype=np.float32).reshape(11, 2)
    arrays = {f"base_model.model.lm_head.lora_{one}.weight": value for one, value in (("A", a), ("B", b))}
    arrays["base_model.model.lm_head.base_layer.weight"] = np.ascontiguousarray(base)
    adapted = read_adapter(model, peft_folder(tmp_path / "a", arrays, target_modules=["lm_head"]))
    merge_adapters(adapted)
    np.testing.assert_allclose(
        np.asarray(adapted.state_dict()["lm_head.weight"]).T, base + 3 * b @ a, atol=1e-5
    )


def test_an_anchored_pattern_is_of_a_whole_name(tmp_path: Path) -> None:
    patterns = {"^q_proj": 100.0, f"^{Q}$": 4.0, "k_proj": 8.0}
    adapter = read_adapter_config(peft_folder(tmp_path / "a", PEFT, alpha_pattern=patterns))
    assert [adapter.scale_of(Q.replace("q_", one)) for one in ("q_", "k_", "v_")] == [2.0, 4.0, 3.0]
