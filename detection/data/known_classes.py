"""Lists of classes that are known without their data sets, so that official weights can be exported alone."""

from __future__ import annotations

from typing import Literal, NamedTuple

KnownClasses = Literal[
    "coco",
    "publaynet",
    "cdla",
    "table",
    "cell",
    "region",
    "layout_3",
    "layout_17",
    "doclayout",
    "doclayout_plus",
]


class ClassList(NamedTuple):
    """What a list is of, its names by class index, and the numbers that files of it have."""

    title: str
    names: tuple[str, ...]
    ids: tuple[int, ...]


def _count(title: str, names: str) -> ClassList:
    listed = tuple(names.split())
    return ClassList(title, listed, tuple(range(1, len(listed) + 1)))


# The 80 classes of COCO's detection task, with the numbers that its files and results use (1 to 90, with gaps)
COCO_CLASSES = tuple(
    """person, bicycle, car, motorcycle, airplane, bus, train, truck, boat, traffic light, fire hydrant, stop sign,
    parking meter, bench, bird, cat, dog, horse, sheep, cow, elephant, bear, zebra, giraffe, backpack, umbrella,
    handbag, tie, suitcase, frisbee, skis, snowboard, sports ball, kite, baseball bat, baseball glove, skateboard,
    surfboard, tennis racket, bottle, wine glass, cup, fork, knife, spoon, bowl, banana, apple, sandwich, orange,
    broccoli, carrot, hot dog, pizza, donut, cake, chair, couch, potted plant, bed, dining table, toilet, tv, laptop,
    mouse, remote, keyboard, cell phone, microwave, oven, toaster, sink, refrigerator, book, clock, vase, scissors,
    teddy bear, hair drier, toothbrush""".replace("\n    ", " ").split(", ")
)
"""Names by class index."""

# Numbers of classes that COCO dropped before it was published
_LEFT_OUT = {12, 26, 29, 30, 45, 66, 68, 69, 71, 83}
COCO_CATEGORY_IDS = tuple(number for number in range(1, 91) if number not in _LEFT_OUT)
"""COCO's own numbers by class index."""

_LAYOUT_17 = (
    "paragraph_title image text number abstract content figure_title formula table table_title reference doc_title "
    "footnote header algorithm footer seal"
)
# Of layout analysis: those of PaddleOCR's layout_*_dict.txt and of PaddleX's models
KNOWN_CLASSES: dict[KnownClasses, ClassList] = {
    "coco": ClassList("COCO's 80 classes", COCO_CLASSES, COCO_CATEGORY_IDS),
    "publaynet": _count("PubLayNet's 5 classes", "text title list table figure"),
    "cdla": _count(
        "CDLA's 10 classes",
        "text title figure figure_caption table table_caption header footer reference equation",
    ),
    "table": _count("tables alone", "table"),
    "cell": _count("cells of tables", "cell"),
    "region": _count("PP-DocBlockLayout's regions", "region"),
    "layout_3": _count("PaddleX's 3 classes of layouts", "image table seal"),
    "layout_17": _count("PaddleX's 17 classes of layouts", _LAYOUT_17),
    "doclayout": _count(
        "PP-DocLayout's 23 classes",
        f"{_LAYOUT_17} chart_title chart formula_number header_image footer_image aside_text",
    ),
    "doclayout_plus": _count(
        "PP-DocLayout_plus-L's 20 classes",
        "paragraph_title image text number abstract content figure_title formula table reference doc_title footnote "
        "header algorithm footer seal chart formula_number aside_text reference_content",
    ),
}
