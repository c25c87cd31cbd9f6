"""Measurements, each against a peer that is measured in the same run; no test asserts a time.

    python -m tools.bench                what there is; docs/benchmarks.md has it as a table
    python -m tools.bench NAME --help    its options

Run it at the root of the repository. A measurement is a function of a module beside this file.
"""

from __future__ import annotations

import importlib
import sys

# Name: (module, what is compared, arguments that it needs)
BENCHES: dict[str, tuple[str, str, str]] = {
    "train": (
        "training",
        "training steps of ResNet-50 and MobileNetV3, images/s: torch, Paddle",
        "--paddle_python P",
    ),
    "nlp": ("training", "BERT-base, inference and training, sequences/s: torch", ""),
    "ocr_train": (
        "training",
        "training steps of PP-OCR, or memory over steps: PaddleOCR",
        "--paddle_python P --paddleocr C",
    ),
    "amp": ("amp", "a step in float32, O1 and O2, with and without recomputation: CPU time and memory", ""),
    "learning": ("learning", "what a classification recipe learns, over seeds: torch", "-c CONFIG"),
    "segmentation_learning": ("learning", "what a PP-LiteSeg recipe learns: torch", "-c CONFIG"),
    "ocr_curves": (
        "ocr_curves",
        "losses of the first steps of PP-OCR: PaddleOCR",
        "--paddle_python P --paddleocr C",
    ),
    "detection": ("inference", "PicoDet-s and PP-YOLOE+ s, or a tool on a video: ONNX Runtime, OpenVINO", ""),
    "segmentation": ("inference", "PP-LiteSeg, or a tool on a video: ONNX Runtime, OpenVINO", ""),
    "exported": ("inference", "our ONNX files: official ones in OpenVINO; or our network on each engine", ""),
    "engines": ("inference", "ONNX files through our engines: the packages' own calls", ""),
    "onnx_import": ("inference", "an imported ONNX file: our own model, ONNX Runtime, OpenVINO", ""),
    "onnx_configs": (
        "onnx_configs",
        "every configuration as ONNX: differences in ONNX Runtime and OpenVINO",
        "",
    ),
    "lowering": ("lowering", "the forms of the lowering table: the plain form", ""),
    "ocr": ("reading", "receipts read, time and words: RapidOCR", "--data FOLDER"),
    "start": ("reading", "a process's start to its first result: RapidOCR", ""),
    "fields": ("reading", "fields of receipts that are exactly right: the truth", "FOLDER"),
    "documents": ("documents", "tables and text of PDF pages: pdfplumber, img2table", ""),
    "round_trip": ("documents", "text and order of documents made, printed and read again: pdfplumber", ""),
    "loader": ("loading", "images/s of the DataLoader: a plain loop, torch", ""),
    "synthetic_text": ("loading", "synthetic lines and pages a second: threads against processes", ""),
    "paddle_eager": (
        "paddle_eager",
        "framework.paddle's steps, operations, memory, start: Paddle",
        "--python P",
    ),
    "paddle_examples": (
        "paddle_examples",
        "examples of Paddle's docstrings: Paddle's results",
        "--python P --work DIR",
    ),
    "paddle_call_sites": (
        "paddle_calls",
        "calls in programs that framework.paddle answers: Paddle",
        "REPO.git --python P",
    ),
}


def main() -> int:
    name, *argv = sys.argv[1:] or ("",)
    if name not in BENCHES:
        for each, (_, compared, needs) in BENCHES.items():
            print(f"{each:22} {compared}  {needs}")
        return int(bool(name) and name != "--help")
    module = importlib.import_module(f"tools.bench.{BENCHES[name][0]}")
    sys.argv[0] = f"python -m tools.bench {name}"
    return getattr(module, name)(argv) or 0


if __name__ == "__main__":
    sys.exit(main())
