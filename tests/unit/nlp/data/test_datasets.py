"""Data sets of texts on small files, and what is said of broken ones."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from framework.core.errors import ConfigError, FormatError, InputError
from nlp.data.check import Columns, validate, validate_dataset
from nlp.data.classification import TextClassification
from nlp.data.parallel import ParallelText
from nlp.data.plain import TextLines
from nlp.data.questions import QuestionAnswers
from nlp.data.tagged import TaggedText
from nlp.data.triples import TextTriples


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_texts_with_classes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "\ufeffgood one\tpos\r\n\nbad\u2028one\tneg\n")
    data = TextClassification(path)
    assert data.class_names == ("neg", "pos") and len(data) == 2
    assert (data[0].text, data[0].label) == ("good one", 1) and data[1].text == "bad\u2028one"
    assert str(data[1].id).endswith("line 3")
    assert len(pickle.loads(pickle.dumps(data))) == 2
    pairs = write(tmp_path / "b.csv", "label,x,y\n1,a,b\n")
    (sample,) = TextClassification(pairs, text=1, pair=2, label=0, separator=",", header=True)
    assert (sample.text, sample.pair, sample.label) == ("a", "b", 0)


def test_a_first_line_that_names_the_columns_is_a_header(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "a.tsv", "Sentence\tLabel\ngood\tpos\nbad\tneg\n")
    data = TextClassification(path)
    assert data.class_names == ("neg", "pos") and len(data) == 2
    assert "line 1: it is left out as a header: Sentence, Label" in caplog.text
    assert validate(path, "table", Columns()).classes == (("neg", 1), ("pos", 1))
    text = write(tmp_path / "b.tsv", "text\tpos\nbad\tneg\n")
    assert len(TextClassification(text)) == 2 and validate(text, "table", Columns()).texts == 2


def test_json_lines_keep_words(tmp_path: Path) -> None:
    rows = [{"intent": "play", "tokens": ["play", "it"]}, {"intent": "stop", "tokens": ["stop"]}]
    path = write(tmp_path / "a.jsonl", "\n".join(json.dumps(row) for row in rows))
    data = TextClassification(path, text="tokens", label="intent", classes=("stop", "play"))
    assert data[0].text == "play it" and data[0].words == ("play", "it") and data[0].label == 1


def test_a_line_with_more_columns_than_the_header_is_refused(tmp_path: Path) -> None:
    """As pandas does: a comma of the text made the rest of it the class."""
    path = write(tmp_path / "a.csv", "text,label,,\nfine,pos,,,,\nwell, hello,neg,x,y\n")
    with pytest.raises(FormatError, match="more columns than the first one") as caught:
        len(TextClassification(path, "text", "label", separator=","))
    assert "line 3" in str(caught.value) and 'as "a, b"' in str(caught.value)
    (broken,) = validate(path, "table", Columns("text", "label", separator=",")).broken
    assert broken.startswith("line 3: the line has more columns")


def test_spaces_around_a_class_are_none_of_its_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "text, label\na, pos \nb,pos\nc,  neg\n")
    data = TextClassification(path, "text", "label", separator=",")
    assert data.class_names == ("neg", "pos") and [sample.label for sample in data.samples] == [1, 1, 0]
    spaced = TextClassification(path, "text", "label", separator=",", classes=(" pos ", "pos", "  neg"))
    assert [sample.label for sample in spaced.samples] == [0, 1, 2]


def test_classes_of_json_that_are_numbers(tmp_path: Path) -> None:
    """pandas writes 1.0 for 1 where another row lacks its class."""
    path = write(tmp_path / "a.jsonl", '{"t": "a", "c": 1.0}\n{"t": "b", "c": 1}\n{"t": null, "c": 0}\n')
    assert TextClassification(path, "t", "c").class_names == ("0", "1")
    assert [sample.label for sample in TextClassification(path, "t", "c", classes=("no", "yes"))] == [1, 1]
    assert validate(path, "table", Columns("t", "c")).empty == ("line 3",)
    for none in ("NaN", "Infinity", "-100", "null"):
        write(path, f'{{"t": "a", "c": {none}}}\n')
        with pytest.raises(FormatError, match="the line has no class"):
            len(TextClassification(path, "t", "c"))


def test_classes_that_are_numbers_are_in_their_order(tmp_path: Path) -> None:
    """Pearson and Spearman count in it: as texts 10 stood between 1 and 2."""
    names = ("-1", "0", "1", "2", "10")
    path = write(tmp_path / "a.tsv", "".join(f"text {name}\t{name}\n" for name in reversed(names)))
    assert TextClassification(path).class_names == names
    with open(path, "a", encoding="utf-8") as file:
        file.write("more\t3+\n")
    assert TextClassification(path).class_names == ("-1", "0", "1", "10", "2", "3+")


def test_lists_of_classes_that_pandas_wrote_into_a_table(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "text,label\na,\"['x', 'y, z']\"\nb,['x']\nc,[]\nd,[x\n")
    data = TextClassification(path, "text", "label", separator=",", label_separator=",")
    assert data.class_names == ("[x", "x", "y, z")
    assert [sample.labels for sample in data.samples] == [(1, 2), (1,), (), (0,)]


@pytest.mark.parametrize(
    "text",
    [
        '{"text":{"0":"a","2":"b"},"label":{"0":1,"2":0}}',
        '{"columns":["text","label"],"index":[0,2],"data":[["a",1],["b",0]]}',
        '{"schema":{"fields":[]},"data":[{"index":0,"text":"a","label":1},{"index":2,"text":"b","label":0}]}',
    ],
)
def test_json_as_pandas_writes_it(text: str, tmp_path: Path) -> None:
    data = TextClassification(write(tmp_path / "a.json", text), "text", "label")
    assert [(sample.text, sample.label) for sample in data.samples] == [("a", 1), ("b", 0)]


def test_rows_of_another_width_than_the_columns_are_not_left_out(tmp_path: Path) -> None:
    text = '{"columns":["text","label"],"data":[["a",1],["b"]]}'
    with pytest.raises(FormatError):
        len(TextClassification(write(tmp_path / "a.json", text), "text", "label"))


def test_encodings_of_spreadsheets(tmp_path: Path) -> None:
    mac = write(tmp_path / "mac.csv", "text,label\ra,1\rb,0\r")
    assert len(TextClassification(mac, "text", "label", separator=",")) == 2
    wide = tmp_path / "wide.csv"
    for data, advice in (("text\ta\n".encode("utf-16"), "UTF-16"), (b"PK\x03\x04\xff", "workbook")):
        wide.write_bytes(data)
        with pytest.raises(FormatError, match=advice):
            len(TextClassification(wide))


CONLLU = """# text = vámonos al mar
1-2\tvámonos\t_\t_\n1\tvamos\tir\tVERB\n2\tnos\tnos\tPRON\n2.1\tx\tx\tX\n3\tmar\tmar\tNOUN\n
1\tsí\tsí\tINTJ
"""


def test_conllu(tmp_path: Path) -> None:
    data = TaggedText(write(tmp_path / "a.conllu", CONLLU))
    assert [sample.words for sample in data] == [("vamos", "nos", "mar"), ("sí",)]
    assert data.class_names == ("INTJ", "NOUN", "PRON", "VERB") and data[0].tags == (3, 2, 1)
    assert data[0].text == "vamos nos mar"


def test_the_numbers_of_conllu_are_no_words(tmp_path: Path) -> None:
    data = TaggedText(write(tmp_path / "a.conllu", CONLLU), tag=3)
    assert data[0].words == ("vamos", "nos", "mar") and data.class_names == ("INTJ", "NOUN", "PRON", "VERB")


WORDS_AND_TAGS = [(("EU", "says", "no"), ("B-ORG", "O", "O")), (("Peter", "O'Neil"), ("B-PER", "I-PER"))]


@pytest.mark.parametrize(
    "content",
    [
        "id,tokens,ner_tags\n0,\"['EU', 'says', 'no']\",\"['B-ORG', 'O', 'O']\"\n"
        '1,"[\'Peter\', ""O\'Neil""]","[\'B-PER\', \'I-PER\']"\n',
        "tokens,ner_tags\n\"['EU' 'says'\n 'no']\",['B-ORG' 'O' 'O']\n\"['Peter' \"\"O'Neil\"\"]\",['B-PER' 'I-PER']\n",
        "Sentence #,Word,POS,Tag\nSentence: 1,EU,NNP,B-ORG\n,says,VBZ,O\n,no,DT,O\n"
        "Sentence: 2,Peter,NNP,B-PER\n,O'Neil,NNP,I-PER\n",
        "sentence_id;word;tag\n1;EU;B-ORG\n1;says;O\n1;no;O\n2;Peter;B-PER\n2;O'Neil;I-PER\n",
        "EU,B-ORG\nsays,O\nno,O\n\nPeter,B-PER\nO'Neil,I-PER\n",
    ],
)
def test_words_and_tags_in_a_csv(tmp_path: Path, content: str) -> None:
    """As pandas, numpy, Kaggle's NER corpus, and others write them."""
    data = TaggedText(write(tmp_path / "a.csv", content))
    names = data.class_names
    assert [(s.words, tuple(names[tag] for tag in s.tags or ())) for s in data] == WORDS_AND_TAGS
    assert not any(validate_dataset(data).faults().values())


def test_numbers_of_tags_and_missing_columns_in_a_csv(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "tokens,pos,chunks\n\"['EU' 'says']\",[1 0],[7 8]\n")
    assert TaggedText(path, classes=("O", "B-ORG"))[0].tags == (1, 0)
    assert TaggedText(path, word="tokens", tag="chunks").class_names == ("7", "8")
    with pytest.raises(FormatError, match="column 'ner'"):
        len(TaggedText(path, word="tokens", tag="ner"))
    with pytest.raises(FormatError, match="2 words and 1 tags"):
        len(TaggedText(write(tmp_path / "b.csv", "tokens,tags\n['a' 'b'],[1]\n")))


def test_a_csv_without_commas_is_no_table(tmp_path: Path) -> None:
    for content in ("EU B-ORG\nsays O\n", "EU\tB-ORG\nsays\tO\n", "text_a\tlabel\nEU\x02says\tB-ORG\x02O\n"):
        data = TaggedText(write(tmp_path / "a.csv", content))
        assert data[0].words == ("EU", "says") and data.class_names == ("B-ORG", "O")


def test_several_classes_in_the_notation_of_numpy(tmp_path: Path) -> None:
    """Python takes two strings side by side for one."""
    path = write(tmp_path / "a.csv", "text,labels\none,['a' 'b']\ntwo,['b']\n")
    data = TextClassification(path, "text", "labels", separator=",", label_separator=" ")
    assert data.class_names == ("a", "b") and data[0].labels == (0, 1)


def test_characters_say_where_they_stand_in_the_word(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "今天 N\n很 D\n了不起 A\n\n\n好 A\n")
    data = TaggedText(path, unit="characters")
    names = [data.class_names[tag] for tag in data[0].tags or ()]
    assert data[0].text == "今天很了不起" and names == ["B-N", "E-N", "S-D", "B-A", "M-A", "E-A"]
    assert data[1].words == ("好",) and str(data[1].id).endswith("line 6")


def test_tags_in_json_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"w": ["a", "b"], "t": ["X", "Y"]}\n')
    assert TaggedText(path, word="w", tag="t")[0].tags == (0, 1)
    path = write(tmp_path / "b.jsonl", '{"w": ["a", "b"], "t": ["X"]}\n')
    with pytest.raises(
        FormatError, match=r"(?s)two lists of one length.*line 1|line 1.*two lists of one length"
    ):
        len(TaggedText(path, word="w", tag="t"))


def test_marks_between_documents(tmp_path: Path) -> None:
    text = "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nsays VBZ B-VP O\n\n-DOCSTART- -X- -X- O\n\nNo DT O O\n"
    data = TaggedText(write(tmp_path / "a.txt", text))
    assert [sample.words for sample in data] == [("EU", "says"), ("No",)]
    assert dict(validate_dataset(data).classes) == {"O": 2, "B-ORG": 1}  # type: ignore[attr-defined]


def test_comments_before_sentences_are_no_words(tmp_path: Path) -> None:
    """Of MultiCoNER, which gave the tag "domain=en", and of CoNLL-U Plus; a sign # stays a word."""
    text = "# id 6f\tdomain=en\na _ _ B-X\n# _ _ O\n\n\n# id 7a\tdomain=en\n# _ _ O\nb _ _ O\n"
    data = TaggedText(write(tmp_path / "a.conll", text))
    assert data.class_names == ("B-X", "O")
    assert [sample.words for sample in data.samples] == [("a", "#"), ("#", "b")]
    plus = "# global.columns = FORM TAG\n# text = a b\na\tX\n#\tO\n\n# doc 3\n#\tO\n"
    data = TaggedText(write(tmp_path / "b.txt", plus))
    assert [sample.words for sample in data.samples] == [("a", "#"), ("#",)]


def test_a_word_with_a_space_is_not_cut(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "in O\nNew York B-LOC\nnow O\n")
    with pytest.raises(FormatError, match=r"line 2.*more columns than the others|more columns"):
        len(TaggedText(path))
    assert validate(path, "tagged", Columns()).broken == (
        "line 2: a line has more columns than the others: 'New York B-LOC'",
    )
    spaces = "10\u00a0000 B-NUM\n\u3000 O\n x    O \n"
    assert TaggedText(write(path, spaces))[0].words == ("10\u00a0000", "\u3000", "x")
    assert TaggedText(write(path, "in\tO\nNew York\tB-LOC\n"))[0].words == ("in", "New York")


def test_sentences_without_words_are_left_out(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        '{"w": [], "t": []}\n{"w": ["", "a"], "t": ["O", "X"]}\n{"w": [" "], "t": ["O"]}\n',
    )
    data = TaggedText(path, word="w", tag="t")
    assert [sample.words for sample in data.samples] == [("", "a")] and data[0].tags == (0, 1)
    assert validate_dataset(data).faults()["blank texts"] == ("line 1", "line 3")


@pytest.mark.parametrize("mark", ["\x02", " "])
def test_a_sentence_may_be_a_line(mark: str, tmp_path: Path) -> None:
    """As in PaddleNLP's msra_ner and lac, and in PALM."""
    rows = [("我 在 北 京", "O O B-LOC I-LOC"), ("你 好", "O O")]
    lines = ["text_a\tlabel", *("\t".join(row).replace(" ", mark) for row in rows)]
    path = write(tmp_path / "train.tsv", "\n".join(lines) + "\n")
    data = TaggedText(path, joint="")
    assert data.class_names == ("B-LOC", "I-LOC", "O")
    assert [(sample.text, sample.tags) for sample in data.samples] == [
        ("我在北京", (2, 2, 0, 1)),
        ("你好", (2, 2)),
    ]
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"再{mark}见\tO\n")
    with pytest.raises(FormatError, match=r"line 4.*differ in number") as caught:
        len(TaggedText(path))
    assert caught.value.received == "2 words and 1 tags"
    assert len(validate(path, "tagged", Columns()).broken) == 1


def test_numbers_in_json_count_in_the_classes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"tokens": ["a", "b"], "ner_tags": [0, 2]}\n')
    assert TaggedText(path, "tokens", "ner_tags", classes=("O", "B-A", "I-A"))[0].tags == (0, 2)
    assert TaggedText(path, "tokens", "ner_tags", classes=("2", "0"))[0].tags == (1, 0)
    with pytest.raises(InputError, match="unknown class"):
        len(TaggedText(path, "tokens", "ner_tags", classes=("O", "B-A")))
    path = write(tmp_path / "b.jsonl", '{"text": "good", "label": 1}\n')
    data = TextClassification(path, text="text", label="label", classes=("bad", "good"))
    assert data[0].label == 1


def test_a_table_between_other_marks(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", 'sentence,label\n"good, I say",pos\n')
    for columns in ({"text": "sentence", "label": "label"}, {}):
        with pytest.raises(FormatError, match='set separator: ","'):
            len(TextClassification(path, **columns))  # type: ignore[arg-type]
    data = TextClassification(path, text="sentence", label="label", separator=",")
    assert data[0].text == "good, I say" and data.class_names == ("pos",)


def test_parallel_texts(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a.en", "one\ntwo\n"), write(tmp_path / "a.de", "eins\nzwei\n")
    assert [(s.text, s.target) for s in ParallelText(source, target)] == [("one", "eins"), ("two", "zwei")]
    with pytest.raises(FormatError, match="2 and 3 lines"):
        len(ParallelText(source, write(tmp_path / "b.de", "eins\nzwei\ndrei\n")))


@pytest.mark.parametrize(
    ("content", "settings", "error", "message"),
    [
        (b"", {}, FormatError, "the file is empty"),
        (b"a\tb\nc\xff\td", {}, FormatError, r"line 2.*not UTF-8|not UTF-8.*0xff"),
        (b"only one column", {}, FormatError, r"(?s)line 1.*a column is missing.*column 1"),
        (
            b"a\tposs",
            {"classes": ("neg", "pos")},
            InputError,
            r"(?s)unknown class.*'poss'.*did you mean 'pos'",
        ),
        (b"a\tb", {"text": "text"}, FormatError, r"(?s)the header has no such column.*'text'.*a, b"),
    ],
)
def test_broken_files(
    tmp_path: Path, content: bytes, settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(content)
    with pytest.raises(error, match=message):
        len(TextClassification(path, **settings))


def test_other_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such text file"):
        len(TextClassification(tmp_path / "none.tsv"))
    with pytest.raises(FormatError, match="no JSON"):
        len(TextClassification(write(tmp_path / "a.jsonl", "{"), text="a", label="b"))
    with pytest.raises(FormatError, match="an entry must be a text"):
        len(TextClassification(write(tmp_path / "a.jsonl", '{"a": 1, "b": "x"}'), text="a", label="b"))
    with pytest.raises(FormatError, match="a word has no tag"):
        len(TaggedText(write(tmp_path / "a.txt", "word\n")))
    with pytest.raises(FormatError, match="no sentence"):
        len(TaggedText(write(tmp_path / "b.txt", "\n\n")))
    with pytest.raises(ConfigError, match="different names of tags"):
        TaggedText(tmp_path / "a.txt", classes=("A", "A"))


def test_lines_and_blocks(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", " One two.\nThree.\n\n\nA long sentence. And another one.\nEnd\n")
    lines = TextLines(path)
    assert [sample.text for sample in lines][:2] == ["One two.", "Three."] and len(lines) == 4
    assert str(lines[2].id).endswith("line 5")
    blocks = TextLines(path, block=20)
    assert [sample.text for sample in blocks] == [
        "One two. Three.",
        "A long sentence.",
        "And another one. End",
    ]
    assert [str(sample.id).rpartition(" ")[2] for sample in blocks] == ["1", "5", "5"]
    assert [s.text for s in TextLines(path, block=8)][:4] == ["One two.", "Three.", "A long", "sentence"]
    assert len(pickle.loads(pickle.dumps(blocks))) == 3


def test_lines_with_words(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "今天 天气  很 好\n")
    (sample,) = TextLines(path, words=True, joint="")
    assert sample.text == "今天天气很好" and sample.words == ("今天", "天气", "很", "好")
    with pytest.raises(ConfigError, match="cannot be put together"):
        TextLines(path, words=True, block=9)
    with pytest.raises(ConfigError, match="cannot be put together"):
        TextLines(path, block=0)
    with pytest.raises(FormatError, match="there is no text in the file"):
        len(TextLines(write(tmp_path / "b.txt", "\n \n")))


def squad(*questions: dict[str, Any], context: str = "Rome and Oslo and Rome") -> str:
    return json.dumps({"data": [{"paragraphs": [{"context": context, "qas": list(questions)}]}]})


def test_questions(tmp_path: Path) -> None:
    rome = [{"text": "Rome", "answer_start": 0}, {"text": "Oslo", "answer_start": 7}]
    path = write(
        tmp_path / "a.json",
        squad(
            {"id": "a", "question": "Where?", "answers": rome},
            {"id": 7, "question": "Who?", "answers": [], "is_impossible": True},
            {"question": "Asked?"},
            {"id": "d", "question": "Last?", "answers": [{"text": "Rome", "answer_start": 16}]},
        ),
    )
    data = QuestionAnswers(path)
    first = data[0]
    assert (first.text, first.pair, first.id) == ("Rome and Oslo and Rome", "Where?", "a")
    assert first.answers == ((0, 4), (9, 13))  # the second one is looked for near its place
    assert [sample.answers for sample in data][1:] == [(), None, ((18, 22),)]
    assert [sample.id for sample in data][1:3] == ["7", "article 1, paragraph 1"]
    assert len(pickle.loads(pickle.dumps(data))) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "this is no JSON"),
        ("[]", "the file has not SQuAD's layout"),
        ('{"data": []}', "the file has not SQuAD's layout"),
        ('{"data": [{"paragraphs": [{"qas": []}]}]}', "article 1, paragraph 1"),
        (squad({"id": "a", "answers": []}), "the file has not SQuAD's layout"),
        (squad({"id": "a", "question": "?", "answers": [{"text": "Rome"}]}), "question a"),
        (
            squad({"id": "a", "question": "?", "answers": [{"text": "Bern", "answer_start": 0}]}),
            "(?s)no answer is in its text|question a: the answer is not in the text.*Bern",
        ),
    ],
)
def test_broken_questions(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        len(QuestionAnswers(write(tmp_path / "a.json", text)))


def test_questions_as_entries(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As datasets of Hugging Face writes SQuAD; answers that are not in the text are counted."""
    context, rows = "Rome and Oslo", []
    for name, texts, starts in (("a", ["Oslo", "Bern"], [9, 0]), ("b", [], []), ("c", ["Bern"], [1])):
        answers = {"text": texts, "answer_start": starts}
        rows.append({"id": name, "title": "x", "context": context, "question": "?", "answers": answers})
    lines = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)))
    for path in (lines, write(tmp_path / "b.json", json.dumps(rows))):
        data = QuestionAnswers(path)
        assert [(one.id, one.answers) for one in data] == [("a", ((9, 13),)), ("b", ())]
        assert len(data.problems) == 2 and "question c" in data.problems[1]
        report = validate_dataset(data)
        assert len(report.faults()["entities or answers that do not fit"]) == 2
    assert "2 answers are not in their texts" in caplog.text
    rows[0]["answers"]["text"].pop()  # type: ignore[union-attr]
    with pytest.raises(FormatError, match="the file has not SQuAD's layout"):
        len(QuestionAnswers(write(tmp_path / "c.json", json.dumps(rows))))


def test_no_file_of_questions(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        len(QuestionAnswers(tmp_path / "none.json"))


def test_columns_by_the_names_of_the_header(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "id\tsentence\tlabel\n7\tgood\tpos\n8\tbad\tneg\n")
    data = TextClassification(path, text="sentence", label="label")
    assert [(sample.text, sample.label) for sample in data] == [("good", 1), ("bad", 0)]
    assert TextClassification(path, text="sentence", label=2, header=True).samples[0].text == "good"
    with pytest.raises(
        FormatError, match=r"line 1: the header has no such column(?s:.)*did you mean 'label'"
    ):
        len(TextClassification(path, text="sentence", label="labels"))
    triples = TextTriples(write(tmp_path / "b.tsv", "a\tb\tc\n1\t2\t3\n"), text="c", pair="a", negative="b")
    assert triples[0].text == "3" and triples[0].pair == "1"


def test_commas_in_quotes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'text,label\n"one, two",x\nsay ""no,y\n')
    data = TextClassification(path, text="text", label="label", separator=",")
    assert [sample.text for sample in data] == ["one, two", 'say ""no']


def test_lines_without_a_text_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "a.tsv", "good\tpos\n\tneg\n \tpos\nbad\tneg\n")
    data = TextClassification(path)
    assert [sample.text for sample in data] == ["good", "bad"]
    assert caplog.messages == [f"{path}: 2 lines without a text are left out: 2, 3"]
    source, target = write(tmp_path / "a.en", "one\n\n"), write(tmp_path / "a.de", "eins\nzwei\n")
    assert [s.text for s in ParallelText(source, target)] == ["one"]
    with pytest.raises(FormatError, match="there is no text in the file"):
        len(TextClassification(write(tmp_path / "b.tsv", "\tpos\n")))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[" * 100_000, "line 2: this is no JSON"),
        ("3", "line 2: the entry is no JSON object"),
        ('{"t": "a", "l": null}', "line 2: the line has no class(?s:.)*None"),
        ('{"t": "a", "l": ["x"]}', "line 2: the line has no class"),
        ('{"t": "a"}', "line 2: a column is missing(?s:.)*'l'"),
    ],
)
def test_json_lines_that_cannot_be_used(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path / "a.jsonl", f'{{"t": "a", "l": "x"}}\n{line}\n')
    with pytest.raises(FormatError, match=message):
        len(TextClassification(path, text="t", label="l"))


def test_labels_without_reading_texts_again(tmp_path: Path) -> None:
    data = TextClassification(write(tmp_path / "a.tsv", "good\tpos\nbad\tneg\n"))
    assert [labels.tolist() for labels in data.read_labels()] == [[1], [0]]
    tagged = TaggedText(write(tmp_path / "a.txt", "a X\nb Y\n"))
    assert [labels.tolist() for labels in tagged.read_labels()] == [[0, 1]]


def test_questions_nested_without_end(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="this is no JSON"):
        len(QuestionAnswers(write(tmp_path / "a.json", "[" * 100_000)))


ENTRIES = [{"text": "play it", "intent": "play"}, {"text": "stop", "intent": "halt"}]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(ENTRIES, indent=2),
        json.dumps({"version": "1", "data": ENTRIES}),
        json.dumps({"rasa_nlu_data": {"regex_features": [], "common_examples": ENTRIES}}, indent=1),
        "\ufeff" + "\n".join(json.dumps(entry) for entry in ENTRIES),
    ],
)
def test_json_files_of_other_tools(tmp_path: Path, content: str) -> None:
    path = write(tmp_path / "a.json", content)
    data = TextClassification(path, text="text", label="intent")
    assert [(one.text, data.class_names[one.label or 0]) for one in data] == [
        ("play it", "play"),
        ("stop", "halt"),
    ]
    report = validate_dataset(data)
    assert dict(report.classes) == {"play": 1, "halt": 1} and not report.broken  # type: ignore[attr-defined]


def test_several_classes_in_json(tmp_path: Path) -> None:
    rows = [{"t": "a", "l": ["x", "y"]}, {"t": "b", "l": []}, {"t": "c", "l": None}, {"t": "d", "l": "y"}]
    data = TextClassification(write(tmp_path / "a.json", json.dumps(rows)), "t", "l", label_separator=",")
    assert [sample.labels for sample in data] == [(0, 1), (), (), (1,)]
    report = validate_dataset(data)
    assert dict(report.classes) == {"x": 1, "y": 2} and not report.broken  # type: ignore[attr-defined]
    with pytest.raises(FormatError, match=r"(?s)the line has no class.*label_separator"):
        len(TextClassification(data.path, "t", "l"))


def test_a_json_file_with_a_fault(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", json.dumps([*ENTRIES, {"text": "go"}, 5, {"text": 7, "intent": "x"}]))
    with pytest.raises(FormatError, match="entry 4: the entry is no JSON object"):
        len(TextClassification(path, text="text", label="intent"))
    report = validate_dataset(TextClassification(path, text="text", label="intent"))
    assert [line[:7] for line in report.broken] == ["entry 3", "entry 4", "entry 5"]  # type: ignore[attr-defined]
    with pytest.raises(FormatError, match=r"(?s)no JSON.*line 2 column"):
        len(TextClassification(write(path, '[{"text": "a",\n "intent" "b"}]'), text="text", label="intent"))
