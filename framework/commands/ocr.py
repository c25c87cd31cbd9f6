"""Recognise text: `oar infer` with PP-OCRv6 where no model is named, and PaddleOCR's spellings.

oar ocr -i docs/images/receipt.png
"""

from __future__ import annotations

from collections.abc import Sequence

from framework.commands.infer import run_infer
from framework.workflow.domain.domain import DefaultName

MODEL = DefaultName("pp_ocrv6_small")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar ocr`; returns the exit status."""
    return run_infer(argv, MODEL, "oar ocr")
