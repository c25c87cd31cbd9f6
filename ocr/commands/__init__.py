"""What reading text adds to the command `oar`. Light: the modules below are loaded when their command is called."""

from framework.config.command_line import CommandLine, Flags, Verb
from ocr.commands.flags import add_language, add_truth, score_documents, select_readers

COMMANDS = CommandLine(
    verbs={
        "ocr": Verb("ocr.commands.ocr", "recognise text: `oar infer` with PP-OCRv6"),
        "document": Verb(
            "ocr.commands.document",
            "read PDFs and scans into Markdown, HTML, JSON, Word, Excel, searchable PDF",
            aliases=("pp_structurev3", "predict_system"),
        ),
        "data synthesize": Verb(
            "ocr.commands.synthesize",
            "draw images of text, with labels in PaddleOCR's, COCO's or PubTabNet's formats",
        ),
        "data lines": Verb(
            "ocr.commands.lines",
            "cut lines of pages as the reader cuts them, with texts of labels or with its readings",
        ),
    },
    flags={
        "eval": Flags(add_truth, run=score_documents),
        "models list": Flags(add_language, select=select_readers),
    },
)
