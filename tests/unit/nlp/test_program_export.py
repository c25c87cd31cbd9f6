"""Language models as programs: texts are those of the model, and damaged folders are told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("jinja2")

from framework.core.errors import ConfigError, FormatError, InputError, OarError
from nlp import chat_command, export_programs_command, llm
from nlp.generation.exported import ExportedFunctions
from nlp.generation.request import GenerationResult
from nlp.generation.settings import TextGenerationOptions
from nlp.language_models import accepts_source, open_source
from nlp.program_export import export_programs
from tests.unit.nlp.tiny_decoder import write_folder

PROMPTS = ("hello", "the quick brown fox " * 8, "a")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("programs") / "tiny")


@pytest.fixture(scope="module")
def programs(folder: Path) -> Path:
    return export_programs(llm.load(folder), folder.parent / "programs")


def write_texts(source: Path) -> list[str]:
    """Three texts at once, with options of their own."""
    generator = open_source(str(source), TextGenerationOptions(slots=3, max_length=256))
    requests = []
    for number, prompt in enumerate(PROMPTS):
        ids = generator.encode_chat([{"role": "user", "content": prompt}], None, {}).ids
        options = {
            "max_tokens": 10 + number,
            "seed": number,
            "temperature": float(number),
            "ignore_eos": True,
        }
        requests += generator.start(ids, options)
    texts = []
    for request in requests:
        text = ""
        while (delta := request.next_delta()) is not None:
            text += delta.text
        texts.append(text)
    generator.close()
    return texts


def test_texts_are_those_of_the_model(folder: Path, programs: Path) -> None:
    assert accepts_source(str(programs))
    assert write_texts(programs) == write_texts(folder)


def test_programs_generate_and_chat(folder: Path, programs: Path) -> None:
    model, opened = llm.load(folder), llm.load_programs(programs)
    options = {"max_new_tokens": 9, "do_sample": False}
    for prompt in ("the quick", [5, 9, 31]):
        result, expected = opened.generate(prompt, **options), model.generate(prompt, **options)
        assert isinstance(result, GenerationResult) and isinstance(expected, GenerationResult)
        assert result.text == expected.text and result.text
        assert "".join(chunk.text for chunk in opened.stream(prompt, **options)) == expected.text
    messages = [{"role": "user", "content": "hello"}]
    assert opened.chat(messages, **options).content == model.chat(messages, **options).content
    beams = [one.generate("the", num_beams=3, max_new_tokens=6) for one in (opened, model)]
    assert isinstance(beams[0], GenerationResult) and isinstance(beams[1], GenerationResult)
    assert beams[0].ids == beams[1].ids
    with pytest.raises(InputError, match=r"llm\.load_programs"):
        llm.load(programs)


def test_the_folder(programs: Path) -> None:
    names = {file.name for file in programs.iterdir()}
    assert {"decode.jaxexp", "logits.jaxexp", "model.safetensors", "programs.json", "tokenizer.json"} <= names
    assert export_programs(llm.load(programs.parent / "tiny"), programs) == programs  # written anew


def test_the_cache_is_given_away(programs: Path) -> None:
    import jax

    functions = ExportedFunctions(programs)
    step = jax.jit(functions.decode, donate_argnums=3)
    cache = functions.new_cache(2, 16)
    ids, positions = np.array([[3], [4]], np.int32), np.zeros((2, 1), np.int32)
    memory = step.lower(functions.params, ids, positions, cache).compile().memory_analysis()
    assert memory is not None
    assert memory.alias_size_in_bytes == sum(array.nbytes for array in cache)


def test_the_commands(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert export_programs_command.main([str(folder), "--output_dir", str(out)]) == 0
    options = ["hello", "--max_new_tokens", "5", "--seed", "1", "--quiet", "-o", "ignore_eos=true"]
    said = []
    for source in (folder, out):
        capsys.readouterr()
        assert chat_command.main([str(source), *options]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert chat_command.main([str(out), "hello", "--weights", "int8"]) == 2
    assert "as they were exported" in capsys.readouterr().err


def test_folders_with_something_else_are_left_alone(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match="something else"):
        export_programs(llm.load(folder), tmp_path)


@pytest.mark.parametrize("name", ["decode.jaxexp", "logits.jaxexp", "model.safetensors", "programs.json"])
def test_damaged_folders(programs: Path, tmp_path: Path, name: str) -> None:
    copy = shutil.copytree(programs, tmp_path / "copy")
    for data in ((copy / name).read_bytes()[:50], b"", b"{}"):
        (copy / name).write_bytes(data)
        with pytest.raises(OarError):
            open_source(str(copy), TextGenerationOptions(slots=1))
    (copy / name).unlink()
    if name != "programs.json":
        with pytest.raises(OarError):
            open_source(str(copy), TextGenerationOptions(slots=1))


def test_another_form(programs: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(programs, tmp_path / "copy")
    content = json.loads((copy / "programs.json").read_text(encoding="utf-8"))
    (copy / "programs.json").write_text(json.dumps({**content, "form": 2}), encoding="utf-8")
    with pytest.raises(FormatError, match="form 2"):
        ExportedFunctions(copy)
