"""Chat templates: the files they come from, masks of answers, and hostile ones, which end with an error."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from framework.core.errors import FormatError, InputError, OarError

pytest.importorskip("jinja2")

from framework.text.chat_template import ChatTemplate, Segment
from framework.text.template_sandbox import SandboxedTemplate, TemplateStoppedError

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
USER, ANSWER = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}


def write(folder: Path, name: str, value: object) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def test_reads_the_setting_of_the_tokenizer(tmp_path: Path) -> None:
    write(
        tmp_path, "tokenizer_config.json", {"chat_template": "{{ bos_token }}{{ eos_token }}{{ unk_token }}|"}
    )
    write(tmp_path, "special_tokens_map.json", {"bos_token": {"content": "<s>"}, "unk_token": None})
    template = ChatTemplate.from_folder(tmp_path)
    assert template is not None and template.render([USER]) == "<s>|"


def test_named_templates(tmp_path: Path) -> None:
    rows = [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "{{ tools[0].name }}"}]
    write(tmp_path, "tokenizer_config.json", {"chat_template": rows})
    template = ChatTemplate.from_folder(tmp_path)
    assert template is not None
    assert template.render([USER]) == "plain"
    assert template.render([USER], tools=[{"name": "f"}]) == "f"
    assert template.render([USER], tools=[{"name": "f"}], chat_template="default") == "plain"
    with pytest.raises(FormatError, match=r"no chat template of this name(.|\n)*default, tool_use"):
        template.render([USER], chat_template="rag")


def test_the_file_of_jinja_goes_first_and_is_written_again(tmp_path: Path) -> None:
    write(tmp_path, "tokenizer_config.json", {"chat_template": "old", "eos_token": "</s>"})
    write(tmp_path, "chat_template.jinja", CHATML)
    write(tmp_path, "additional_chat_templates/tool_use.jinja", "with tools")
    template = ChatTemplate.from_folder(tmp_path)
    assert template is not None and template.special_tokens == {"eos_token": "</s>"}
    template.save(tmp_path / "copy")
    again = ChatTemplate.from_folder(tmp_path / "copy")
    assert again is not None and again.templates == template.templates == {
        "default": CHATML,
        "tool_use": "with tools",
    }


def test_the_file_of_a_processor(tmp_path: Path) -> None:
    assert ChatTemplate.from_folder(tmp_path) is None
    write(tmp_path, "chat_template.json", {"chat_template": "of a processor"})
    template = ChatTemplate.from_folder(tmp_path)
    assert template is not None and template.render([]) == "of a processor"


@pytest.mark.parametrize("value", [3, [1], [{"name": "a"}], [{"name": 1, "template": "x"}]])
def test_settings_that_are_no_templates(tmp_path: Path, value: object) -> None:
    write(tmp_path, "tokenizer_config.json", {"chat_template": value})
    with pytest.raises(FormatError, match="neither a text nor a list"):
        ChatTemplate.from_folder(tmp_path)


def test_masks_of_a_template_without_the_tag() -> None:
    template = ChatTemplate(CHATML, {"eos_token": "<|im_end|>"})
    assert not template.marks_answers
    assert template.render_with_masks([USER, ANSWER, USER, ANSWER]) == [
        Segment("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", False),
        Segment("yes<|im_end|>", True),
        Segment("\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", False),
        Segment("yes<|im_end|>", True),
        Segment("\n", False),
    ]
    assert template.render_with_masks([USER]) == [Segment("<|im_start|>user\nhi<|im_end|>\n", False)]


def test_answers_that_a_template_changes_later_have_texts_of_their_own() -> None:
    """As those of Qwen 3, which keeps the thoughts of the last answer alone."""
    source = (
        "{% for m in messages %}{{ m.content if loop.last or m.role != 'assistant' else 'X' }};{% endfor %}"
    )
    template = ChatTemplate(source)
    assert template.render_answers([USER, ANSWER, USER, ANSWER]) == [
        [Segment("hi;", False), Segment("yes;", True)],
        [Segment("hi;X;hi;", False), Segment("yes;", True)],
    ]
    assert template.render_answers([ANSWER, USER]) == [[Segment("yes;", True)]]
    with pytest.raises(
        FormatError, match=r"what the assistant wrote(.|\n)*as it stands at its end(.|\n)*generation"
    ):
        template.render_with_masks([ANSWER, USER])
    with pytest.raises(FormatError, match="what stands before message 2 is another text without it"):
        ChatTemplate("{{ messages | length }}: {{ messages[-1].content }}").render_answers([USER, ANSWER])


def test_the_beginning_of_answers_may_open_thoughts() -> None:
    """As DeepSeek's, whose answers in a chat have none."""
    source = (
        "{% for m in messages %}[{{ m.role }}]{{ m.content }};{% endfor %}"
        "{{ '[assistant]<think>' if add_generation_prompt }}"
    )
    (segments,) = ChatTemplate(source, {"eos_token": ";"}).render_answers([USER, ANSWER, USER, ANSWER])
    assert [segment.text for segment in segments if segment.is_assistant] == ["yes;", "yes;"]


def test_values_are_plain_and_copied() -> None:
    class Text(str):
        def leak(self) -> str:
            return "leaked"

    source = (
        "{{ messages[0].content.leak is defined }}{{ messages[0].extra }}{{ messages[0].reasoning_content }}"
    )
    messages = [{"role": "user", "content": Text("a"), "extra": Path, "thinking": "t"}]
    assert ChatTemplate(source).render(messages) == "False<type>t"
    assert set(messages[0]) == {"role", "content", "extra", "thinking"}
    with pytest.raises(InputError, match="these are no messages"):
        ChatTemplate(source).render(["hi"])  # type: ignore[list-item]
    with pytest.raises(InputError, match="these are no messages"):
        ChatTemplate(source).render("hi")  # type: ignore[arg-type]


def test_going_on_with_the_last_message() -> None:
    template = ChatTemplate(CHATML)
    assert template.render([USER, ANSWER], continue_final_message=True).endswith("assistant\nyes")
    with pytest.raises(InputError, match="beginning of an answer"):
        template.render([USER], continue_final_message=True, add_generation_prompt=True)
    with pytest.raises(InputError, match="no text to go on with"):
        template.render([{"role": "assistant", "content": None}], continue_final_message=True)
    with pytest.raises(InputError, match="the template changes it"):
        ChatTemplate("{{ messages[0].role }}").render([ANSWER], continue_final_message=True)


def test_what_a_template_says_itself() -> None:
    with pytest.raises(InputError, match=r"refuses the messages(.|\n)*roles must alternate"):
        ChatTemplate("{{ raise_exception('roles must alternate') }}").render([USER])
    with pytest.raises(InputError, match=r"fails with these messages(.|\n)*UndefinedError"):
        ChatTemplate("{{ messages[0].no.body }}").render([USER])
    with pytest.raises(FormatError, match=r"line 2: this is no chat template"):
        ChatTemplate("\n{% if %}").render([USER])
    with pytest.raises(FormatError, match="too long"):
        ChatTemplate("x" * 600_000).render([USER])


HOSTILE = {
    "attribute": "{{ messages.__class__.__mro__ }}",
    "attribute of a text": "{{ ''.__class__.__base__.__subclasses__() }}",
    "globals": "{{ cycler.__init__.__globals__.os.system('true') }}",
    "code of a macro": "{% macro f() %}{% endmacro %}{{ f.__call__.__func__.__code__ }}",
    "method of format": "{{ '{0.__class__}'.format(messages) }}",
    "attribute of format_map": "{{ '{a.__class__}'.format_map({'a': messages}) }}",
    "change of a list": "{{ messages.append(1) }}",
    "name of a namespace": "{% set ns = namespace(__class__=1) %}",
    "loops": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "loops without a body": "{% for i in range(99999) if range(9999)|list|length < 0 %}{% endfor %}",
    "recursion": "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
    "recursive loop": "{% for x in messages recursive %}{{ loop(messages) }}{% endfor %}",
    "product": "{{ 'a' * 10**12 }}",
    "product of a list": "{% set x = [1] * 10**9 %}",
    "power": "{{ 10 ** (10 ** 10) }}",
    "powers": "{% set ns = namespace(x=9) %}{% for i in range(99) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "doubling": "{% set ns = namespace(s='aa') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
    "doubling by plus": "{% set ns=namespace(s='aa') %}{% for i in range(60) %}{% set ns.s=ns.s+ns.s %}{% endfor %}",
    "center": "{{ 'a'|center(10**10) }}",
    "ljust": "{{ 'a'.ljust(10**10) }}",
    "replace": "{{ ('a'*9999).replace('a', 'b'*9999) }}",
    "replace by a filter": "{{ ('a'*9999)|replace('', 'b'*9999) }}",
    "join": "{{ ('a'*9999).join(range(9999)|map('string')) }}",
    "join by a filter": "{{ range(9999)|list|join('a'*9999) }}",
    "percent": "{{ '%9999999999d' % 1 }}",
    "percent star": "{{ '%*d' % (10**10, 1) }}",
    "format": "{{ '{:>9999999999}'.format(1) }}",
    "format of a width": "{{ '{:>{w}}'.format(1, w=10**10) }}",
    "format by a filter": "{{ '%9999999999d'|format(1) }}",
    "indent": "{{ ('a\n'*9999)|indent('b'*9999) }}",
    "indent of JSON": "{{ messages|tojson(indent=10**9) }}",
    "bytes": "{{ (1).to_bytes(10**10, 'big') }}",
    "kept texts": "{% for i in range(50000) %}{% set x = 'x'*4000000 %}{% endfor %}",
    "cut texts": "{% set x = 'x'*3999999 %}{% for i in range(99999) %}{% set y = x[1:] %}{% endfor %}",
    "output": "{% for i in range(99999) %}{{ 'a' * 9999 }}{% endfor %}",
    "output of text": "{% for i in range(99999) %}" + "x" * 9999 + "{% endfor %}",
    "captured output": "{% set x %}{% for i in range(99999) %}" + "x" * 9999 + "{% endfor %}{% endset %}",
    "parentheses": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "lists": "{{ " + "[" * 2000 + "]" * 2000 + " }}",
    "files": "{% include '/etc/passwd' %}",
    "imports": "{% import 'os' as os %}",
    "a generator of text": "{{ lipsum(n=10**6) }}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_templates_end(name: str) -> None:
    began = time.thread_time()
    with pytest.raises(OarError):
        template = SandboxedTemplate(HOSTILE[name], seconds=0.5)
        text, _ = template.render({"messages": [USER]}, 10)
        assert "class" not in text and "built" not in text
        raise InputError("harmless")  # an undefined value prints as nothing
    assert time.thread_time() - began < 20


def test_what_is_stopped_says_where() -> None:
    with pytest.raises(
        TemplateStoppedError, match=r"^my\.json: the chat template was stopped: it takes too long"
    ):
        SandboxedTemplate(HOSTILE["loops"], "my.json", seconds=0.1).render({"messages": []}, 0)


def test_a_long_chat_is_no_attack() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "word " * 1000}] * 1000
    assert len(ChatTemplate(CHATML).render(messages)) > 5_000_000
