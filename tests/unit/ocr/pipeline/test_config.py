"""The configuration of a text system: its options, its dictionary, and what the programs of its stages compute."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from framework.config import load, plain
from framework.core.errors import ConfigError, InputError
from framework.engine.experiment import bind_experiment
from framework.vision.normalize import Normalize
from framework.workflow.domain.domain import find_config
from framework.workflow.export.export import export_config
from ocr.models.text_recognizer import TextRecognizerConfig
from ocr.pipeline.config import RecognizerConfig, TextSystem, recognizer_of
from ocr.pipeline.text_pipeline import PipelineOptions
from ocr.tasks.text import _normalize_valid
from ocr.text.characters import CharacterSet
from ocr.text.stages import RecognizeOptions

HALF = Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5), bgr=True)


def test_pixels_become_the_networks_numbers():
    image = jnp.asarray([[[[0, 51, 255], [255, 255, 255]]]], jnp.uint8)  # R, G, B
    valid = jnp.asarray([[[[True], [False]]]])
    out = np.asarray(_normalize_valid(image, HALF, valid))
    np.testing.assert_allclose(out, [[[[1, -0.6, -1], [0, 0, 0]]]], atol=1e-6)  # B, G, R; 0 in the padding
    how = Normalize((0.0, 0.5, 1.0), (1.0, 0.5, 0.25))
    out = np.asarray(_normalize_valid(image, how, jnp.asarray(True)))[0, 0, 0]
    np.testing.assert_allclose(out, [0, (0.2 - 0.5) / 0.5, (1 - 1) / 0.25], atol=1e-6)


def test_weights_alone_are_ambiguous():
    with pytest.raises(
        ConfigError,
        match=r"pp_ocrv6_small\.yml: a pipeline has several models\n(.*\n)+.*pipeline\.orientation\.weights=…\n"
        r".*write the whole key",
    ):
        export_config(
            find_config("pp_ocrv6_small", "ocr"), ("pipeline.options.orient=false", "weights=x.onnx")
        )


def test_scores_in_bfloat16_are_those_of_a_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Those of the default were measured; recognisers of other languages and stages that prepare pages were not."""
    (tmp_path / "w.onnx").write_bytes(b"")
    monkeypatch.setattr("ocr.pipeline.config.hub.resolve", lambda name, domain: tmp_path / "w.onnx")
    monkeypatch.setattr(RecognizerConfig, "_read_characters", lambda self, path: CharacterSet(("", "a")))
    stages = system("pipeline.lang='de,ru'", "pipeline.unwarp.enabled=true").stages()
    assert {name: stage.bf16_engines for name, stage in stages.items()} == {
        **dict.fromkeys(("detector", "recognizer", "orientation"), ("openvino",)),
        **dict.fromkeys(("recognizer2", "unwarp"), ()),
    }
    with pytest.raises(ConfigError, match=r"export.bf16_engines(.|\n)*pipeline.detector.bf16_engines, "):
        export_config(find_config("pp_ocrv6_small", "ocr"), ("export.bf16_engines=[openvino]",))


def test_a_text_system_of_a_config():
    tree = load(find_config("pp_ocrv6_small", "ocr"), ("pipeline.options.drop_score=0.25",))
    system = bind_experiment(tree).pipeline
    assert isinstance(system, TextSystem) and system.options == PipelineOptions(drop_score=0.25)
    assert system.describe()["options"]["drop_score"] == 0.25
    assert system.recognizer.weights == "pp_ocrv6_small_rec"
    assert system.recognizer.options.normalize == system.orientation.options.normalize == HALF
    assert system.stage_names == ("detector", "recognizer", "orientation")


def system(*settings: str) -> TextSystem:
    found = bind_experiment(load(find_config("pp_ocrv6_small", "ocr"), settings)).pipeline
    assert isinstance(found, TextSystem)
    return found


def weights_of(found: TextSystem) -> list[str]:
    return [config.weights for config in found._recognizers()]


def test_a_config_names_a_language_or_recognisers_of_the_index():
    assert weights_of(system()) == ["pp_ocrv6_small_rec"] == weights_of(system("pipeline.lang=german"))
    assert weights_of(system("pipeline.lang=ru")) == ["eslav_pp_ocrv5_mobile_rec"]
    assert weights_of(system("pipeline.lang='de,ru'")) == ["pp_ocrv6_small_rec", "eslav_pp_ocrv5_mobile_rec"]
    named = "pipeline.recognizers=[th_pp_ocrv5_mobile_rec, pp_ocrv6_small_rec]"
    assert weights_of(system(named, "pipeline.lang=ru")) == ["th_pp_ocrv5_mobile_rec", "pp_ocrv6_small_rec"]
    assert system("pipeline.lang=ru").describe()["lang"] == "ru" and "lang" not in system().describe()
    with pytest.raises(InputError, match="no recogniser of the index can write the language 'he'"):
        weights_of(system("pipeline.lang=he"))
    with pytest.raises(
        ConfigError, match="this is no recogniser of the index\n  received: pp_ocrv6_small_det"
    ):
        weights_of(system("pipeline.recognizers=[pp_ocrv6_small_det]"))


def test_a_recogniser_of_the_index_takes_the_options_of_the_config():
    base = system("pipeline.recognizer.options.batch=3").recognizer
    arabic = recognizer_of("arabic_pp_ocrv5_mobile_rec", base)
    assert arabic.model == TextRecognizerConfig("PP-OCRv5_mobile_rec", num_classes=749, deploy=True)
    assert arabic.right_to_left and arabic.use_space_char and not arabic.characters
    assert (arabic.options.batch, arabic.options.height, arabic.options.normalize) == (3, 48, HALF)
    assert not recognizer_of("eslav_pp_ocrv5_mobile_rec", base).right_to_left
    assert recognizer_of("en_number_mobile_v2_rec", base).options.height == 32


def test_stages_of_several_recognisers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The dictionary comes with the row; its direction and the number of its classes go into the stage."""
    dictionary, weights = tmp_path / "dict.txt", tmp_path / "w.pdiparams"
    dictionary.write_text("ا\nب\n", encoding="utf-8")
    weights.write_bytes(b"")
    monkeypatch.setattr("ocr.pipeline.config.hub.resolve", lambda name, domain: weights)
    monkeypatch.setattr("ocr.pipeline.config.hub.fetch", lambda name, file: dictionary)
    stages = system("pipeline.lang='ru,ar'").stages()
    assert list(stages) == ["detector", "recognizer", "orientation", "recognizer2"]
    assert [stages[name].weights for name in ("recognizer", "recognizer2")] == [
        "eslav_pp_ocrv5_mobile_rec",
        "arabic_pp_ocrv5_mobile_rec",
    ]
    assert stages["recognizer2"].config["right_to_left"] and not stages["recognizer"].config["right_to_left"]
    assert stages["recognizer2"].config["characters"] == ["ا", "ب"]
    assert stages["recognizer2"].model.num_classes == 4


def test_bound_options_become_plain_data():
    data = plain(RecognizeOptions(HALF, widths=(160, 320)))
    assert data["widths"] == [160, 320] and data["normalize"]["mean"] == [0.5, 0.5, 0.5]
    assert type(data) is dict and data["height"] == 48


def test_the_dictionary_of_a_folder_of_paddleocr_is_in_its_inference_yml(tmp_path: Path):
    (tmp_path / "inference.json").write_bytes(b"")
    (tmp_path / "inference.yml").write_text("PostProcess: {character_dict: [a, b, no]}", encoding="utf-8")
    network = TextRecognizerConfig("PP-OCRv5_mobile_rec", deploy=True)
    stage = RecognizerConfig(network, str(tmp_path), RecognizeOptions(HALF)).stage()
    assert stage.path == tmp_path / "inference.json"
    assert stage.config["characters"] == ["a", "b", "no"] and stage.model.num_classes == 5
    other = tmp_path / "other.json"  # what is said of a program is not said of the files beside it
    other.write_bytes(b"")
    with pytest.raises(ConfigError, match="characters: FILE"):
        RecognizerConfig(network, str(other), RecognizeOptions(HALF)).stage()


def test_a_recogniser_needs_a_dictionary(tmp_path: Path):
    path = tmp_path / "own.safetensors"
    path.write_bytes(b"")
    config = RecognizerConfig(None, str(path), RecognizeOptions(HALF))
    with pytest.raises(
        ConfigError,
        match=r"own\.safetensors: these weights carry no dictionary",
    ):
        config.stage()
