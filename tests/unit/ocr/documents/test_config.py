"""Named settings of the document reader: how a file, a call and the command's flags become options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ocr
from framework.core.errors import ConfigError, InputError
from framework.workflow.domain import config_file
from framework.workflow.domain.config_file import open_config
from framework.workflow.domain.domain import config_names
from framework.workflow.export.export import export_config
from ocr.documents import convert
from ocr.documents.config import read_document_config, require_document_config
from ocr.documents.options import DocumentOptions
from ocr.pipeline.options import DEFAULT_MODEL
from tests.e2e.tools import run_tool
from tests.unit.ocr.documents.pdf_pages import make_pdf
from tests.unit.ocr.documents.test_reader import table_page

SHIPPED = sorted(path.stem for path in config_names("ocr").values() if path.parent.name == "structure")


@pytest.mark.parametrize("name", SHIPPED)
def test_each_that_is_shipped_names_models_that_are_there(name: str) -> None:
    found = require_document_config(name)
    options, known = DocumentOptions(**found.options), config_names()
    models = (
        found.model,
        options.layout_model,
        options.table_model,
        options.formula_model,
        options.seal_model,
    )
    assert all(model in known for model in models if model is not None)


def test_what_is_shipped() -> None:
    assert {"PP-StructureV3", "document_default", "receipt_fields"} <= set(SHIPPED)
    assert DocumentOptions(**require_document_config("document_default").options) == DocumentOptions()
    assert require_document_config("document_default").model == DEFAULT_MODEL


def write(folder: Path, text: str) -> str:
    file = folder / "mine.yml"
    file.write_text(f"domain: ocr\npipeline:\n  type: DocumentPipeline\n{text}", encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "  layout_modl: x\n",
            r"mine.yml:4:3: pipeline.layout_modl: unknown key(.|\n)*did you mean 'layout_model'",
        ),
        ("  tables: 3\n", r"mine.yml:4:3: pipeline.tables: wrong type"),
        ("  dpi: 0\n", r"mine.yml:2:1: pipeline .*dpi is out of range"),
        ("  formula_model: x\n", "formulas are found by a layout detector, and there is none"),
        ("weights: a.pdparams\n", "a document reader has no weights of its own"),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_document_config(write(tmp_path, text))


def test_settings_cannot_make_it_something_else() -> None:
    assert read_document_config("document_default", ("pipeline.dpi=100",)) is not None
    with pytest.raises(ConfigError, match=r"settings leave no document reader\n  received: no pipeline"):
        read_document_config("document_default", ("pipeline=null",))


def test_other_models_are_none(tmp_path: Path) -> None:
    assert read_document_config("pp_ocrv6_small") is None
    assert read_document_config(tmp_path) is None and read_document_config("nothing") is None
    with pytest.raises(
        ConfigError, match=r"config: this is no configuration of a document(.|\n)*PP-StructureV3"
    ):
        ocr.document(make_pdf(table_page()), config="pp_ocrv6_small")
    with pytest.raises(ConfigError, match="a document reader is no single model"):
        export_config("document_default")


def test_a_call_goes_before_the_file(tmp_path: Path) -> None:
    config = write(tmp_path, "  tables: false\n  pages: '2'\n  lang: [de, en]\n")
    data = make_pdf(table_page(), table_page().text(30, 200, "second"))
    found = ocr.document(data, config=config)
    assert [page.page for page in found.pages] == [2] and not found.tables
    found = ocr.document(data, config=config, tables=True, pages="1")
    assert [page.page for page in found.pages] == [1] and len(found.tables) == 1


def test_the_command_takes_files_and_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    opened = convert.open_converter

    def open_converter(model: Any, options: DocumentOptions, runtime: Any, overrides: Any = ()) -> Any:
        seen.append((model, options, tuple(overrides)))
        return opened(model, DocumentOptions(), runtime)

    monkeypatch.setattr(convert, "open_converter", open_converter)
    (tmp_path / "a.pdf").write_bytes(make_pdf(table_page()))
    base = (tmp_path / "a.pdf", "-o", tmp_path / "out", "--overwrite")
    runs = (
        (
            "-c",
            "PP-StructureV3",
            "--use_formula_recognition",
            "False",
            "--dpi",
            "100",
            "--det_box_type",
            "poly",
        ),
        ("-c", write(tmp_path, "  overrides: [a=1]\n"), "--opt", "pipeline.dpi=90"),
        (
            "-c",
            "pp_ocrv6_tiny",
            "--opt",
            "a.b=1",
            "--wireless_table_structure_recognition_model_name",
            "SLANet_plus",
        ),
        ("--ocr_version", "PP-OCRv5"),
    )
    for flags in runs:
        done = run_tool("document", *base, *flags)
        assert done.returncode == 0, done.stderr
    (official, structure, more), mine, tiny, version = seen
    assert official == "pp_ocrv5_server" and more == (
        'pipeline.detector.options.postprocess.box_type="poly"',
    )
    assert (structure.layout_model, structure.formula_model, structure.dpi) == (
        "PP-DocLayout_plus-L",
        None,
        100,
    )
    assert (mine[0], mine[1].dpi, mine[2]) == (DEFAULT_MODEL, 90, ("a=1",))
    assert (tiny[0].name, tiny[1].table_model, tiny[2]) == ("pp_ocrv6_tiny", "SLANet_plus", ("a.b=1",))
    assert version[0] == "pp_ocrv5_server"


def test_a_recogniser_s_config_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    files: list[Path] = []
    read = config_file.read

    def count(path: Path) -> Any:
        files.append(path)
        return read(path)

    def open_converter(model: Any, *_: Any) -> None:
        open_config(model, domain="ocr")  # as whoever opens the model does
        raise InputError("that is enough")

    monkeypatch.setattr(config_file, "read", count)
    monkeypatch.setattr(convert, "open_converter", open_converter)
    done = run_tool("document", "in.pdf", "-c", "pp_ocrv6_small")
    assert done.returncode and "that is enough" in done.stderr
    assert files == [config_names("ocr")["pp_ocrv6_small"]]
