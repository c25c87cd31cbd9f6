"""Options of `ocr.document` and `oar document`, from one definition."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from framework.core.errors import InputError
from framework.workflow import option
from framework.workflow.domain.options import check_range
from ocr.pipeline.options import OCROptions

TextSource = Literal["auto", "always", "never"]
HiddenText = Literal["drop", "keep"]


@dataclass(frozen=True)
class DocumentOptions(OCROptions):
    """Those of documents, and those of OCR for pages without a text layer. Raises: InputError, where one is wrong."""

    pages: str | None = option(None, 'of a PDF, from 1: "1-3,7" or "5-"; default: all')
    page_num: int | None = option(None, "the first so many pages of a PDF, 0 for all, as in PaddleOCR")
    password: str | None = option(None, "of an encrypted PDF")
    text_layer: TextSource = option(
        "auto",
        "a PDF's own text: where it can be believed (auto), always, or never, which is OCR for all pages",
    )
    hidden: HiddenText = option(
        "drop",
        "text of PDFs that nobody can see (white on white, covered, invisible): drop leaves it out, which a warning "
        "says, and keep reads it as any other",
    )
    figure_text: TextSource = option(
        "auto",
        "text in images on pages with a text layer, by OCR: of images that look like drawings or screens (auto), "
        "always, or never",
    )
    tables: bool = option(
        True, "whether tables are looked for; else paragraphs", aliases=("table", "use_table_recognition")
    )
    figures: bool = option(True, "whether figures are cut out; their pages are rendered")
    layout_model: str | None = option(
        None,
        'a layout detector: the name of a config such as "PP-DocLayout-S", a file, an artifact\'s folder; '
        "default: rules find the blocks, but for the figures of scans",
        aliases=("layout_model_dir", "layout_detection_model_name", "layout_detection_model_dir"),
    )
    table_model: str | None = option(
        None,
        "a network of configs/ocr/table or an artifact's folder, for tables of images of which no ruling lines are "
        'found; "SLANeXt" and names with "{kind}" stand for a wired and a wireless one',
        aliases=(
            "table_model_dir",
            "wireless_table_structure_recognition_model_name",
            "wireless_table_structure_recognition_model_dir",
        ),
    )
    cell_model: str | None = option(
        None,
        'beside a table_model: a detector that gives its cells their boxes, such as "RT-DETR-L_table_cell_det", '
        "which stands for a wired and a wireless one",
    )
    table_classification_model: str = option(
        "PP-LCNet_x1_0_table_cls",
        "what tells wired tables from wireless ones, where table_model or cell_model stand for both",
        aliases=("table_classification_model_name", "table_classification_model_dir"),
    )
    seals: bool = option(
        False,
        "read what seals say, where the layout detector finds some",
        aliases=("use_seal_recognition",),
    )
    seal_model: str = option(
        "pp_ocrv4_server_seal", "what reads seals: a config of configs/ocr, a file, or an artifact's folder"
    )
    formula_model: str | None = option(
        None,
        "a network of configs/ocr/formula or an artifact's folder, for the formulas that a layout detector finds",
        aliases=("formula_model_dir", "formula_recognition_model_name", "formula_recognition_model_dir"),
    )
    dpi: float = option(200.0, "at which pages of PDFs are measured and rendered")
    workers: int = option(
        1,
        "processes that read pages of PDFs which have a text layer; pages that need OCR are read by one, on all CPUs",
    )
    fields: bool = option(
        False, "find key-value pairs, totals, dates, addresses, the company", aliases=("kie",)
    )
    fields_model: str | None = option(
        None,
        "a trained model for fields: the folder of an artifact, or the name of a config of configs/ocr/kie that has "
        "weights; what it does not find is left to the rules",
        aliases=("ser_model_dir",),
    )
    relations_model: str | None = option(
        None,
        "beside a fields_model of the task SemanticEntityRecognition: one of RelationExtraction, which finds the keys "
        "of values",
        aliases=("re_model_dir",),
    )

    @property
    def wants_fields(self) -> bool:
        """Whether fields are looked for, by rules or a model."""
        return self.fields or self.fields_model is not None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self.dpi, "dpi", 1, 2400)
        if self.relations_model is not None and self.fields_model is None:
            raise InputError(
                "relations are between what another model finds",
                where="relations_model",
                received="no fields_model",
                fix="name the model of entities too: fields_model",
            )
        if self.workers < 1:
            raise InputError(
                "workers are too few", where="workers", received=self.workers, allowed="1 or more"
            )
        if self.page_num is not None and self.page_num < 0:
            raise InputError(
                "page_num is too small", where="page_num", received=self.page_num, allowed="0 or more"
            )
        if self.formula_model is not None and self.layout_model is None:
            raise InputError(
                "formulas are found by a layout detector, and there is none",
                where="formula_model",
                received=self.formula_model,
                fix='name one, such as layout_model="PP-DocLayout-S"',
            )
        if self.cell_model is not None and self.table_model is None:
            raise InputError(
                "the boxes of cells are for a table's structure, and nothing reads it",
                where="cell_model",
                received=self.cell_model,
                fix='name what does, such as table_model="SLANeXt"',
            )
        if self.page_num and self.pages:
            raise InputError(
                "pages are named twice",
                where="page_num",
                received=f"pages={self.pages!r}, page_num={self.page_num}",
                fix="leave one of them out",
            )

    def ocr_options(self) -> dict[str, object]:
        """Those that `ocr.predictor` takes and that were given."""
        names = (field.name for field in dataclasses.fields(OCROptions))
        return {name: value for name in names if (value := getattr(self, name)) is not None}
