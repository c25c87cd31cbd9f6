"""Options of `ocr.predictor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from framework.core.errors import InputError
from framework.workflow import option
from framework.workflow.domain.domain import DefaultName
from framework.workflow.domain.options import check_range
from ocr.text.language_codes import language_codes

DEFAULT_MODEL = DefaultName("pp_ocrv6_small")


@dataclass(frozen=True)
class OCROptions:
    """Options of `ocr.predictor`; None leaves what the model's config says. Raises: InputError, where one is wrong."""

    lang: str | Sequence[str] | None = option(
        None,
        'a language ("de", "ru", "arabic", …) or several ("ru,en"): picks the recogniser that reads it; '
        "of a model that is named, checks that it has the letters",
    )
    max_side: int | None = option(
        None,
        "longest side, in pixels, at which the detector sees an image",
        aliases=("det_limit_side_len", "text_det_limit_side_len"),
    )
    thresh: float | None = option(
        None,
        "probability from which a pixel is text, 0 to 1",
        aliases=("det_db_thresh", "text_det_thresh"),
    )
    box_thresh: float | None = option(
        None, "least mean probability of a box, 0 to 1", aliases=("det_db_box_thresh", "text_det_box_thresh")
    )
    unclip_ratio: float | None = option(
        None, "how far boxes are grown", aliases=("det_db_unclip_ratio", "text_det_unclip_ratio")
    )
    batch_size: int | None = option(
        None,
        "how many lines run together",
        aliases=("rec_batch_num", "text_recognition_batch_size"),
        request=False,
    )
    drop_score: float | None = option(
        None,
        "lines below this mean probability are dropped, 0 to 1",
        aliases=("threshold", "text_rec_score_thresh"),
    )
    orient: bool | None = option(
        None,
        "whether lines on their heads are turned",
        aliases=("use_angle_cls", "use_textline_orientation"),
    )
    look_closer: bool | None = option(
        None,
        "whether a page with small or badly read lines is seen once more in tiles, for two to four times the time",
    )
    document_orientation: bool | None = option(
        None,
        "whether pages that are turned by 90, 180 or 270 degrees are turned upright first",
        aliases=("use_doc_orientation_classify", "image_orientation"),
    )
    unwarp: bool | None = option(
        None, "whether photographed pages are made flat first", aliases=("use_doc_unwarping",)
    )

    bgr: bool = option(
        False, "whether arrays have their channels as OpenCV reads them, blue first; else RGB", flag=False
    )

    def __post_init__(self) -> None:
        if self.lang is not None:
            language_codes(self.lang)
        for name in ("thresh", "box_thresh", "drop_score"):
            check_range(getattr(self, name), name, 0, 1)
        for name in ("max_side", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} is too small", where=name, received=value, allowed="1 or more")
