"""Entities in the forms of annotation tools, as tags of words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from framework.core.errors import ConfigError, FormatError, InputError
from nlp.data.annotated import AnnotatedText
from nlp.data.check import validate_dataset

TEXT = "Ann Lee lives in Oslo, I think."
SPANS = [(0, 7, "PER"), (17, 21, "LOC")]
TAGS = ["B-PER", "I-PER", "O", "O", "B-LOC", "O", "O", "O", "O"]


def write(path: Path, content: object) -> Path:
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def tags_of(data: AnnotatedText, index: int = 0) -> list[str]:
    return [data.class_names[tag] for tag in data[index].tags or ()]


def dicts(start: str, end: str, label: str) -> list[dict[str, object]]:
    return [{start: a, end: b, label: c} for a, b, c in SPANS]


LABEL_STUDIO = [
    {
        "data": {"review": TEXT},
        "annotations": [
            {"was_cancelled": True, "result": [{"value": {"start": 0, "end": 3, "labels": ["X"]}}]},
            {
                "result": [
                    {"type": "choices", "value": {"choices": ["good"]}},
                    *(
                        {"type": "labels", "value": {"start": a, "end": b, "text": TEXT[a:b], "labels": [c]}}
                        for a, b, c in SPANS
                    ),
                ]
            },
        ],
    }
]
FORMS = {
    "doccano": json.dumps({"id": 1, "text": TEXT, "label": SPANS}) + "\n\n",
    "doccano 1.8": {"id": 1, "data": TEXT, "label": SPANS},
    "doccano with relations": {
        "text": TEXT,
        "relations": [],
        "entities": dicts("start_offset", "end_offset", "label"),
    },
    "label studio": LABEL_STUDIO,
    "label studio min": [
        {
            "id": 7,
            "text": TEXT,
            "ner2": [{"start": a, "end": b, "text": TEXT[a:b], "labels": [c]} for a, b, c in SPANS],
        }
    ],
    "spacy": [[TEXT, {"entities": SPANS}]],
    "ner annotator": {"classes": ["PER", "LOC"], "annotations": [[TEXT, {"entities": SPANS}], None]},
    "prodigy": {
        "text": TEXT,
        "tokens": [{"text": "Ann", "start": 0, "end": 3, "id": 0}],
        "spans": dicts("start", "end", "label"),
    },
    "rasa": {
        "rasa_nlu_data": {"common_examples": [{"text": TEXT, "entities": dicts("start", "end", "entity")}]}
    },
    "dataturks": {
        "content": TEXT,
        "annotation": [
            {"label": [c], "points": [{"start": a, "end": b - 1, "text": TEXT[a:b]}]} for a, b, c in SPANS
        ],
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_tools(tmp_path: Path, form: str) -> None:
    data = AnnotatedText(write(tmp_path / "a.json", FORMS[form]))
    assert data.class_names == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert len(data) == 1 and tags_of(data) == TAGS and not data.problems
    assert data[0].text == TEXT and data[0].words is not None and data[0].words[4:6] == ("Oslo", ",")


def test_a_folder_of_brat(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    write(tmp_path / "x/a.txt", TEXT)
    lines = [
        "T1\tPER 0 7\tAnn Lee",
        "R1\tof Arg1:T1 Arg2:T2",
        "T2\tLOC 17 21\tOslo",
        "T3\tLOC 0 3;17 21\tAnn Oslo",
    ]
    write(tmp_path / "x/a.ann", "\n".join(lines))
    data = AnnotatedText(tmp_path)
    assert tags_of(data) == TAGS and len(data.problems) == 1 and "line 4" in data.problems[0]
    (empty := tmp_path / "y").mkdir()
    with pytest.raises(InputError, match="no annotations"):
        len(AnnotatedText(empty))


def test_places_that_are_counted_otherwise(tmp_path: Path) -> None:
    """JavaScript counts an emoji as two; tools show several spaces, and ends of lines, as one."""
    text = "\U0001f4a9 an  odd\nannotation by Ann"
    after = {"start": 3, "end": 21, "text": "an odd annotation", "labels": ["A"]}
    moved = {"start": 11, "end": 14, "text": "Ann", "labels": ["B"]}
    data = AnnotatedText(write(tmp_path / "a.json", [{"text": text, "label": [after, moved]}]))
    assert tags_of(data) == ["O", "B-A", "I-A", "I-A", "O", "B-B"]
    unquoted = write(tmp_path / "b.json", [{"text": text, "label": [[len(text) - 2, len(text) + 1, "B"]]}])
    assert tags_of(AnnotatedText(unquoted)) == ["O"] * 5 + ["B-B"]


def test_what_cannot_be_tagged_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spans = [
        *((0, 7, "PER"), (0, 7, "PER"), (4, 7, "NAME"), (18, 21, "LOC"), (2, 900, "X"), (7, 8, "X")),
        *((8, 9), {"start": 1, "label": "X"}, (9, 8, "X"), (8, 14, "V ")),
    ]
    path = write(tmp_path / "a.jsonl", json.dumps({"text": TEXT, "label": spans}))
    data = AnnotatedText(path)
    assert tags_of(data) == ["B-PER", "I-PER", "B-V", "O", "B-LOC", "O", "O", "O", "O"]
    assert len(data.problems) == 7 and sum("overlaps" in one for one in data.problems) == 1
    assert any("widened to 'Oslo'" in one for one in data.problems)
    assert f"{path}: 7 entities" in caplog.text
    report = validate_dataset(data)
    assert len(report.faults()["entities or answers that do not fit"]) == 7


def test_annotations_of_no_form_that_is_read_are_said(tmp_path: Path) -> None:
    triples = {"sentence": TEXT, "spo": [{"head": {"name": "Ann", "position": [0, 3]}, "relation": "in"}]}
    entries = [{"text": TEXT, "label": SPANS}, triples]
    (problem,) = AnnotatedText(write(tmp_path / "a.json", entries)).problems
    assert "entry 2" in problem and "position" in problem


def test_long_texts_are_divided(tmp_path: Path) -> None:
    text = "One is here. Ann lives there. Ann Lee is in Oslo. End"
    spans = [(13, 16, "P"), (30, 37, "P"), (44, 48, "L"), (24, 33, "W")]
    data = AnnotatedText(write(tmp_path / "a.json", [{"text": text, "label": spans}]), block=17)
    assert "".join(sample.text for sample in data) == text and len(data) == 5
    assert [sample.words for sample in data][1] == ("Ann", "lives", "there", ".", "Ann")
    assert tags_of(data, 1) == ["B-P", "O", "B-W", "I-W", "I-W"] and str(data[1].id).endswith("character 13")
    assert sum(len(sample.words or ()) for sample in data) == len(AnnotatedText(data.path)[0].words or ())


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no text fits"):
        AnnotatedText(tmp_path / "a.json", block=0)
    with pytest.raises(FormatError, match="there is no entity in the file"):
        len(AnnotatedText(write(tmp_path / "a.json", [{"text": TEXT, "label": []}])))
    with pytest.raises(FormatError, match="entry 1: the entry has no text with entities"):
        len(AnnotatedText(write(tmp_path / "a.json", [{"tokens": ["a"], "tags": ["X"]}])))
    with pytest.raises(InputError, match="unknown class"):
        len(
            AnnotatedText(
                write(tmp_path / "a.json", [{"text": TEXT, "label": SPANS}]), classes=("O", "B-PER")
            )
        )
    with pytest.raises(InputError):
        len(AnnotatedText(tmp_path / "none.jsonl"))
