"""Chats: their forms, what of them is learned, and what is cut."""

import json
import logging
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from framework.core.errors import ConfigError, FormatError
from framework.text.chat_template import ChatTemplate
from framework.text.tokenizer import Tokenizer
from framework.text.transforms import load_tokenizer
from nlp.data.chat import ChatML, Chats, PlainText, tokens_of_chat
from nlp.data.conversations import read_conversation, skipped_answers
from nlp.data.corpora import TextRows
from nlp.data.json_files import read_objects
from nlp.data.packing import IGNORED
from nlp.data.preferences import LabelledAnswers, Preferences, read_judged, read_pair
from nlp.data.prompts import Prompts
from nlp.decoder_export import write_template

EXPECTED = [("user", "Hi"), ("assistant", "Yes"), ("user", "So"), ("assistant", "No")]


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": [{"role": role, "content": text} for role, text in EXPECTED]},
        {
            "conversations": [
                {"from": {"user": "human", "assistant": "gpt"}[role], "value": text}
                for role, text in EXPECTED
            ]
        },
        {"messages": [{"from": role.title(), "content": text} for role, text in EXPECTED]},
        {"messages": [{"role": role, "value": text} for role, text in EXPECTED]},
        {
            "messages": [  # a table with both forms
                *({"role": r, "content": t, "from": None, "value": None} for r, t in EXPECTED[:2]),
                *({"role": None, "content": None, "from": r, "value": t} for r, t in EXPECTED[2:]),
            ]
        },
        {"instruction": "So", "input": "", "output": "No", "history": [["Hi", "Yes"]]},
        {"instruction": "", "input": "So", "output": "No", "history": [["Hi", "Yes"]]},
        {"src": ["Hi", "So"], "tgt": ["Yes", "No"]},
        {"prompt": [{"role": r, "content": t} for r, t in EXPECTED[:3]], "completion": "No"},
    ],
)
def test_the_forms_say_the_same(fields: dict) -> None:
    messages = read_conversation(fields, "line 1").messages
    assert [(message["role"], message["content"]) for message in messages] == EXPECTED


def test_tables_of_parquet_are_read_as_lines_of_json(tmp_path: Path) -> None:
    """Fields that a table gives to all rows and this one does not have are null, at any depth."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    messages = [{"role": role, "content": text} for role, text in EXPECTED]
    named = [{**messages[0], "name": "Ann"}, *messages[1:]]
    rows = [{"messages": messages, "id": 1}, {"messages": named, "id": None}]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "x.parquet", row_group_size=1)
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    read = {
        name: [read_conversation(fields, "").messages for _, fields in read_objects(tmp_path / name)]
        for name in ("x.parquet", "x.jsonl")
    }
    assert len(read["x.parquet"]) == 2 and read["x.parquet"] == read["x.jsonl"]


def test_tools_have_no_fields_of_the_others_in_their_table() -> None:
    """As modelscope/ms-swift#10125: parameters of other tools stood in prompts, and in calls that are learned."""
    parameters = {"type": "object", "properties": {"a": {"type": "string", "enum": ["x", None]}, "b": None}}
    tool = {"type": "function", "function": {"name": "f", "description": None, "parameters": parameters}}
    call = {"type": "function", "id": None, "function": {"name": "f", "arguments": {"a": "x", "b": None}}}
    text = {"type": "function", "function": {"name": "f", "arguments": '{"a": null}'}}
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "tool_calls": [call, text], "name": None},
    ]
    chat = read_conversation({"messages": messages, "tools": [tool]}, "")
    assert chat.tools is not None and chat.tools[0]["function"] == {
        "name": "f",
        "parameters": {"type": "object", "properties": {"a": {"type": "string", "enum": ["x", None]}}},
    }
    calls: Any = chat.messages[1]["tool_calls"]
    assert [one["function"]["arguments"] for one in calls] == [{"a": "x"}, {"a": None}]
    assert "id" not in calls[0]


def test_system_tools_and_inputs() -> None:
    chat = read_conversation({"instruction": "Add", "input": "1 2", "output": "3", "system": "Be brief"}, "")
    assert [message["content"] for message in chat.messages] == ["Be brief", "Add\n1 2", "3"]
    tools = [{"type": "function", "function": {"name": "f"}}]
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"function": {"name": "f", "arguments": {}}}],
    }
    chat = read_conversation({"messages": [call], "tools": json.dumps(tools)}, "")
    assert chat.tools == tuple(tools) and chat.messages[0]["content"] == ""
    said = {"role": "assistant", "content": "x", "tool_calls": None}  # templates ask whether there are calls
    assert read_conversation({"messages": [said]}, "").messages == ({"role": "assistant", "content": "x"},)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"a": 1}, "no conversation"),
        ({"messages": [{"role": "user", "content": "x"}]}, "nobody answers"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "nobody said"),
        ({"messages": [{"role": "assistant"}]}, "no content"),
        ({"messages": ["x"]}, "no object"),
        ({"src": ["a", "b"], "tgt": ["c"]}, "as many answers"),
        ({"instruction": "a", "output": 3}, "no text"),
        ({"prompt": "a", "completion": "b", "tools": "{"}, "no JSON"),
    ],
)
def test_what_is_no_conversation(fields: dict, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_conversation(fields, "line 7")


@pytest.fixture
def words(tmp_path: Path) -> str:
    letters = "".join(map(chr, range(32, 127)))
    return str(Tokenizer.train("spaced_characters", [letters], 128).save(tmp_path / "tokenizer.json"))


def spelled(words: str, text) -> tuple[str, str]:
    """The text, and what of it is learned."""
    tokenizer = load_tokenizer(words)
    return tokenizer.decode(text.ids, False), tokenizer.decode(text.ids[text.learned], False)


def test_the_end_of_an_answer_is_learned(words: str) -> None:
    tokenizer = load_tokenizer(words)
    messages = [{"role": role, "content": text} for role, text in EXPECTED]
    plain = tokens_of_chat(tokenizer, PlainText("[SEP]").render_with_masks(messages))
    assert spelled(words, plain) == ("HiYes[SEP]SoNo[SEP]", "Yes[SEP]No[SEP]")
    last = tokens_of_chat(tokenizer, PlainText("[SEP]").render_with_masks(messages), only_last=True)
    assert spelled(words, last)[1] == "No[SEP]"
    renderer = ChatML()
    learned = spelled(words, tokens_of_chat(tokenizer, renderer.render_with_masks(messages)))[1]
    assert learned == "Yes<|im_end|>No<|im_end|>"
    prompt = renderer.render(messages[:1], add_generation_prompt=True)
    assert prompt == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert renderer.render(messages).startswith(prompt + "Yes")


@pytest.mark.parametrize("kind", ["spaced_characters", "bpe"])
def test_special_tokens_of_messages_are_characters_where_the_data_set_says_so(
    tmp_path: Path, kind: Literal["spaced_characters", "bpe"]
) -> None:
    """What a stranger wrote neither ends his turn nor is learned as an answer (the mask of the answer stays)."""
    letters = "".join(map(chr, range(32, 127)))
    words = str(Tokenizer.train(kind, [letters], 300).save(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(words)
    end = tokenizer.sep_id
    stranger = "a[SEP]b"
    path = write(tmp_path / "c.jsonl", [{"prompt": stranger, "completion": "no[SEP]yes"}])
    (marked,) = Chats((path,), words, 64, template="plain").texts
    (plain,) = Chats((path,), words, 64, template="plain", plain_content=True).texts
    assert list(marked.ids).count(end) == 3 and list(plain.ids).count(end) == 1
    assert plain.ids[-1] == end and spelled(words, plain) == ("a[SEP]bno[SEP]yes[SEP]", "no[SEP]yes[SEP]")
    pairs = write(tmp_path / "p.jsonl", [{"prompt": stranger, "chosen": "yes", "rejected": "[SEP]"}])
    pair = Preferences((pairs,), words, 64, 32, template="plain", plain_content=True)[0]
    assert spelled(words, pair.rejected) == ("a[SEP]b[SEP][SEP]", "[SEP][SEP]")
    assert list(pair.rejected.ids).count(end) == 1
    (prompt,) = Prompts((pairs,), words, template="plain", plain_content=True).prompts
    assert prompt.text == stranger and end not in prompt.ids
    ordinary = write(tmp_path / "o.jsonl", [{"prompt": "Hi ", "completion": "Yes"}])
    first, second = (
        Chats((ordinary,), words, 64, "plain", plain_content=is_plain).texts for is_plain in (False, True)
    )
    assert np.array_equal(first[0].ids, second[0].ids) and np.array_equal(first[0].learned, second[0].learned)


def test_a_token_that_begins_in_the_prompt_and_ends_in_the_answer_is_learned() -> None:
    """The space that ends a prompt is one token with the word behind it: transformers' assistant masks have it, too."""
    tokenizer = Tokenizer.train("bpe", ["Q: a\nA: yes", "Q: b\nA: no"] * 9, 300)
    ids, learned = tokens_of_chat(tokenizer, [("Q: a\nA: ", False), ("yes", True), ("\n", False)])
    assert tokenizer.decode(ids[learned]) == " yes" and tokenizer.decode(ids) == "Q: a\nA: yes\n"


def test_arguments_of_calls_are_data_as_a_server_gives_them_to_the_template() -> None:
    """A template writes them as JSON: OpenAI's, which are JSON already, would be written twice."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    entry = {
        "messages": [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
        ]
    }
    (_, answer) = read_conversation(entry, "line 1").messages
    function = {"name": "f", "arguments": {"x": 1}}
    assert answer == {"role": "assistant", "content": "", "tool_calls": [{**call, "function": function}]}
    turns = [{"from": "human", "value": "?"}, {"from": "function_call", "value": json.dumps(function)}]
    (_, answer) = read_conversation({"conversations": turns}, "line 1").messages
    assert answer["tool_calls"] == [{"type": "function", "function": function}]
    with pytest.raises(ConfigError, match=r"no tools(.|\n)*0 tools, 1 messages that call one"):
        ChatML().render([answer])
    with pytest.raises(FormatError, match="a function_call names no function"):
        read_conversation({"conversations": [{"from": "function_call", "value": "[3]"}]}, "line 1")


def bos_tokenizer(folder: Path) -> str:
    """One that begins texts with bos, as LLaMA's does."""
    pytest.importorskip("tokenizers")
    Tokenizer.train("bpe", ["Hi Yes So No"], 300).save(folder)
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    roles = {"bos": "[CLS]", "eos": "[SEP]", **content["roles"]}
    number = content["single"][0][0]
    single, pair = [[number, 0], ["A", 0]], [[number, 0], ["A", 0], ["B", 0]]
    file.write_text(json.dumps({**content, "roles": roles, "single": single, "pair": pair}), encoding="utf-8")
    return str(file)


def test_texts_begin_with_bos_once_where_prompts_do(tmp_path: Path) -> None:
    """trl's and LLaMA-Factory's texts begin so, too; a prompt of `generate` does, and the model must know it."""
    words = bos_tokenizer(tmp_path)
    path = write(tmp_path / "x.jsonl", [{"prompt": "Hi ", "completion": "Yes"}])
    (text,) = Chats((path,), words, 32, template="plain").texts
    assert spelled(words, text) == ("[CLS]Hi Yes[SEP]", " Yes[SEP]")
    pytest.importorskip("jinja2")
    write_template("plain", Tokenizer.from_file(words), tmp_path)
    template = (tmp_path / "chat_template.jinja").read_text(encoding="utf-8")
    tokens = {"bos_token": "[CLS]", "eos_token": "[SEP]"}
    turns = [{"role": "user", "content": "Hi "}, {"role": "assistant", "content": "Yes"}]
    assert ChatTemplate(template, tokens).render(turns) == "[CLS]Hi Yes[SEP]"
    (text,) = Chats((path,), words, 99, template="chatml").texts
    assert "[CLS]" not in spelled(words, text)[0]
    (prompt,) = Prompts((write(tmp_path / "p.jsonl", [{"prompt": "Hi"}]),), words, template="plain").prompts
    assert prompt.ids.tolist() == Tokenizer.from_file(words).encode("Hi").ids.tolist()
    (tmp_path / "x.txt").write_text("Hi\n\nYes", encoding="utf-8")
    rows = TextRows((tmp_path / "x.txt",), words, 2, division="blank_line")
    assert (
        Tokenizer.from_file(words).decode(rows.source.tokens.tolist(), False) == "[CLS]Hi[SEP][CLS]Yes[SEP]"
    )


def test_answers_that_the_template_changes_later_are_learned(words: str, tmp_path: Path) -> None:
    source = (
        "{% for m in messages %}{{ m.content if loop.last or m.role != 'assistant' else 'X' }};{% endfor %}"
    )
    (tmp_path / "chat_template.jinja").write_text(source, encoding="utf-8")
    turns = [{"role": role, "content": text} for role, text in EXPECTED]
    chats = Chats((write(tmp_path / "x.jsonl", [{"messages": turns}]),), words, 32)
    assert [spelled(words, text) for text in chats.texts] == [("Hi;Yes;", "Yes;"), ("Hi;X;So;No;", "No;")]
    last = Chats(chats.paths, words, 32, learn="last")
    assert [spelled(words, text)[1] for text in last.texts] == ["No;"]


def write(path: Path, rows: list) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_chats_share_rows_and_do_not_guess_one_another(words: str, tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.jsonl", [{"prompt": "ab", "completion": "cd"}, {"prompt": "e", "completion": "f"}]
    )
    packed = Chats((path,), words, 8, template="plain")
    assert len(packed) == 1
    row = packed[0]
    tokenizer = load_tokenizer(words)
    assert tokenizer.decode(row.targets[row.targets >= 0], False) == "cd[SEP]f[SEP]"
    np.testing.assert_array_equal(row.segments, [1] * 5 + [2] * 3)
    assert row.targets[4] == IGNORED  # of the end of the first chat
    alone = Chats((path,), words, 8, template="plain", packed=False)
    assert [len(row.ids) for row in alone] == [5, 3] and alone[0].text_bytes == 2


def test_what_is_too_long_is_said(words: str, tmp_path: Path, caplog) -> None:
    rows = [{"prompt": "a" * size, "completion": "bcd"} for size in (1, 5, 9)]
    path = write(tmp_path / "x.jsonl", rows)
    caplog.set_level(logging.WARNING, "oar")
    assert len(Chats((path,), words, 7, template="plain", packed=False)) == 2
    assert "2 of 3 chats have more than 7 tokens: 1 are cut at their end, 1 are left out" in caplog.text
    assert len(Chats((path,), words, 7, template="plain", packed=False, too_long="leave_out")) == 1


def test_files_that_hold_no_chats(words: str, tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text(json.dumps([{"prompt": "a", "completion": "b"}]), encoding="utf-8")
    assert len(Chats((tmp_path / "list.json",), words, 8, template="plain")) == 1
    (tmp_path / "x.jsonl").write_text("{}\n[1]\n", encoding="utf-8")
    assert len(list(read_objects(tmp_path / "list.json"))) == 1
    with pytest.raises(FormatError, match="line 2"):
        list(read_objects(tmp_path / "x.jsonl"))
    with pytest.raises(ConfigError, match="no chat template"):
        len(Chats((tmp_path / "list.json",), words, 8))
    with pytest.raises(ConfigError, match="no tools"):
        ChatML().render([], [{"type": "function"}])


def test_pairs_in_each_form() -> None:
    turns = [{"role": "user", "content": "Q"}]
    good, bad = ({"role": "assistant", "content": text} for text in ("G", "B"))
    for fields in (
        {"prompt": "Q", "chosen": "G", "rejected": "B"},
        {"prompt": turns, "chosen": [good], "rejected": [bad]},
        {"chosen": [*turns, good], "rejected": [*turns, bad]},
        {"src": ["Q"], "tgt": [], "response": ["B", "G"], "sort": [0, 1]},
        {
            "conversations": [{"from": "human", "value": "Q"}],
            "chosen": {"from": "gpt", "value": "G"},
            "rejected": {"from": "gpt", "value": "B"},
        },
    ):
        pair = read_pair(fields, "line 1")
        said = [[message["content"] for message in answer] for answer, _ in pair.answers]
        assert [message["content"] for message in pair.prompt] == ["Q"] and said == [["G"], ["B"]], fields
    with pytest.raises(FormatError, match="which answer is better"):
        read_pair({"src": ["Q"], "tgt": [], "response": ["B", "G"], "sort": [1, 1]}, "")
    with pytest.raises(FormatError, match="no pair"):
        read_pair({"prompt": "Q"}, "")
    with pytest.raises(FormatError, match="fit together"):
        read_pair({"src": ["Q"], "tgt": ["A"], "response": ["B", "G"], "sort": [0, 1]}, "")


def test_fields_that_are_null_are_missing() -> None:
    both = {"conversations": None, "prompt": None, "completion": None, "label": None}
    pair = {**both, "instruction": "Q", "chosen": "G", "rejected": "B"}
    assert read_pair(pair, "").prompt[0]["content"] == "Q"
    judged = {**both, "prompt": "Q", "response": "G", "kto_tag": 1.0}  # so a table with nulls has true
    assert read_judged(judged, "").answers[0][1] is True
    chat = {**both, "prompt": "Q", "response": "G"}
    assert [one["content"] for one in read_conversation(chat, "").messages] == ["Q", "G"]


@pytest.mark.parametrize("label", [-1, 2, "true", None])
def test_a_label_that_is_neither_true_nor_false_is_refused(label: object) -> None:
    with pytest.raises(FormatError, match="no answer with a label"):
        read_judged({"prompt": "Q", "completion": "G", "label": label}, "")


def test_labelled_answers_in_each_form() -> None:
    for fields in (
        {"prompt": "Q", "completion": "G", "label": True},
        {"src": ["Q"], "tgt": [], "response": ["G"], "sort": [1]},
        {
            "messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "G"}],
            "kto_tag": True,
        },
        {"instruction": "Q", "output": "G", "kto_tag": True},
    ):
        entry = read_judged(fields, "line 1")
        assert [message["content"] for message in entry.prompt] == ["Q"], fields
        assert entry.answers[0][0][0]["content"] == "G" and entry.answers[0][1] is True
    assert read_judged({"src": ["Q"], "tgt": [], "response": ["G"], "sort": [0]}, "").answers[0][1] is False
    with pytest.raises(FormatError, match="with a label"):
        read_judged({"prompt": "Q", "completion": "G"}, "")


def test_prompts_are_cut_at_their_beginning(words: str, tmp_path: Path, caplog) -> None:
    path = write(tmp_path / "x.jsonl", [{"prompt": "abcdef", "chosen": "xyz", "rejected": "w"}])
    caplog.set_level(logging.WARNING, "oar")
    dataset = Preferences((path,), words, 6, 4, template="plain")
    assert spelled(words, dataset[0].preferred) == ("cdefxy", "xy")
    assert spelled(words, dataset[0].rejected) == ("cdefw[SEP]", "w[SEP]")
    assert "1 of 1 entries are cut" in caplog.text
    labelled = [
        {"prompt": "a", "completion": text, "label": bool(number)} for number, text in enumerate("xy")
    ]
    answers = LabelledAnswers((write(tmp_path / "k.jsonl", labelled),), words, 8, 4, template="plain")
    assert spelled(words, answers[0].mismatched)[1] == "y[SEP]" and not answers[0].desirable
    assert spelled(words, answers[1].mismatched)[1] == "x[SEP]"
    with pytest.raises(ConfigError, match="no room"):
        Preferences((path,), words, 4, 4)


def test_prompts_for_rewards(words: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", [{"prompt": "1+1=", "answer": 2}, {"question": "2", "answer": "3"}])
    prompts = Prompts((path,), words, 6, template="plain")
    assert prompts[0].text == "1+1=" and prompts[0].expected == "2" and len(prompts[1].ids) == 1
    with pytest.raises(FormatError, match="does not fit"):
        len(Prompts((path,), words, 3, template="plain"))


TOOL = {"type": "function", "function": {"name": "f", "description": "", "parameters": {}}}
TOOL_TEMPLATE = (
    "{% for t in tools or [] %}{{ t.function.name }} {% endfor %}"
    "{% for m in messages %}{{ m.content }};{% endfor %}"
)


@pytest.mark.parametrize("mark", [{"weight": 0}, {"loss": False}, {"train": False}, {"training": False}])
@pytest.mark.parametrize("form", ["role", "from"])
def test_answers_that_are_marked_are_read_and_not_learned(mark: dict, form: str) -> None:
    """OpenAI's, ms-swift's and Axolotl's marks, in built-in formats and templates with and without generation."""
    names = {"role": ("role", "content"), "from": ("from", "value")}[form]
    turns: list[dict[str, Any]] = [dict(zip(names, turn)) for turn in EXPECTED]
    turns[1] |= mark
    turns[3] |= {"weight": 1, "loss": True}
    turns[0] |= {"weight": None}  # as tables have it
    turns[3] |= {"train": None}
    messages = read_conversation({"messages": turns}, "").messages
    skipped = skipped_answers(messages)
    assert skipped == {1}
    marked = "{% if m.role == 'assistant' %}{% generation %}{{ m.content }};{% endgeneration %}{% else %}"
    source = "{% for m in messages %}" + marked + "{{ m.content }};{% endif %}{% endfor %}"
    plain = "{% for m in messages %}{{ m.content }};{% endfor %}"
    for renderer, text, learned in (
        (ChatTemplate(source), "Hi;Yes;So;No;", "No;"),
        (ChatTemplate(plain, {"eos_token": ";"}), "Hi;Yes;So;No;", "No;"),
        (PlainText(";"), "HiYes;SoNo;", "No;"),
        (ChatML(), ChatML().render(messages), "No<|im_end|>"),
    ):
        (segments,) = renderer.render_answers(messages, skipped=skipped)
        assert "".join(part for part, _ in segments) == text
        assert "".join(part for part, is_learned in segments if is_learned) == learned


def test_a_weight_is_0_or_1() -> None:
    with pytest.raises(FormatError, match=r"line 1, message 0: weight(.|\n)*0\.5(.|\n)*0 or 1"):
        read_conversation({"messages": [{"role": "assistant", "content": "x", "weight": 0.5}]}, "line 1")


def test_prompts_of_judged_answers_have_tools(words: str, tmp_path: Path) -> None:
    """They decide what is asked for: without them a call is learned that nothing led to."""
    (tmp_path / "chat_template.jinja").write_text(TOOL_TEMPLATE, encoding="utf-8")
    turns = [{"role": "user", "content": "q"}]
    pair = {"prompt": turns, "chosen": "a", "rejected": "b", "tools": [TOOL]}
    judged = {"prompt": turns, "completion": "a", "label": True, "tools": json.dumps([TOOL])}
    asked = {"prompt": turns, "answer": "1", "tools": [TOOL]}
    files = []
    for number, entry in enumerate((pair, judged, asked)):
        files.append(tmp_path / f"{number}.jsonl")
        files[-1].write_text(json.dumps(entry), encoding="utf-8")
    tokenizer = load_tokenizer(words)
    texts = (
        Preferences((files[0],), words, 64, 32, template=str(tmp_path))[0].preferred.ids,
        LabelledAnswers((files[1],), words, 64, 32, template=str(tmp_path))[0].answer.ids,
        Prompts((files[2],), words, 64, template=str(tmp_path))[0].ids,
    )
    asking = tokenizer.encode("f q;", add_special=False).ids.tolist()
    assert all(ids.tolist()[: len(asking)] == asking for ids in texts)


def test_answers_that_repeat_their_prompt_have_it_once() -> None:
    """UltraFeedback's: the prompt is a text, and stands before both answers again."""
    said = [{"role": "user", "content": "Q"}]
    answers = {name: [*said, {"role": "assistant", "content": name}] for name in ("chosen", "rejected")}
    for first in ({}, {"system": "S"}):
        entry = read_pair({**first, "prompt": "Q", **answers}, "")
        assert [one["content"] for one in entry.prompt] == [*first.values(), "Q"]
        assert [[one["content"] for one in texts] for texts, _ in entry.answers] == [["chosen"], ["rejected"]]
    judged = read_judged({"prompt": said, "completion": answers["chosen"], "label": True}, "")
    assert [one["content"] for one in judged.answers[0][0]] == ["chosen"]
