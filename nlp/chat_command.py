"""Talk to a language model in the terminal.

oar chat models/qwen3-0.6b
oar chat models/qwen3-0.6b "Why is the sky blue?" --temperature 0
echo "Why is the sky blue?" | oar chat models/qwen3-0.6b

Ctrl+C stops an answer and not the program; Ctrl+D, or Ctrl+Z and Enter on Windows, ends it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
from collections.abc import Mapping, Sequence

import yaml

from framework.commands.main import run
from framework.core.errors import InputError, OarError
from framework.core.types import JSON
from nlp.generation.settings import TextGenerationOptions

_NUMBERS = {
    "max_new_tokens": (int, "of an answer, at most; default: until it ends"),
    "temperature": (float, "0 takes the most probable token; default: generation_config.json, else 1"),
    "top_p": (float, "of the fewest tokens whose probabilities reach this sum"),
    "top_k": (int, "of so many most probable tokens"),
    "min_p": (float, "of tokens with at least this share of the largest probability"),
    "repetition_penalty": (float, "above 1 tokens are not said again so easily"),
    "seed": (int, "equal seeds give equal answers"),
}
_HELP = """/reset          forget the conversation
/system TEXT    what the assistant is told first; without TEXT nothing
/options        show options; /options temperature=0.7 top_p=0.9 sets them
/undo           forget the last question and its answer
/save FILE      write the conversation as JSON
/quit           end; so does Ctrl+D
\"\"\"            begins and ends a text of several lines"""


def parser() -> argparse.ArgumentParser:
    """The arguments of `oar chat`."""
    flags = argparse.ArgumentParser(
        prog="oar chat",
        description="Talk to a language model in the terminal. Ctrl+C stops an answer and not the program.",
    )
    flags.add_argument(
        "model", metavar="MODEL", help="a folder with config.json, weights and a tokenizer; or a .gguf"
    )
    flags.add_argument("prompt", nargs="?", help="answer this and end; a text from a pipe is answered so too")
    flags.add_argument("--system", help="what the assistant is told first")
    for name, (kind, help) in _NUMBERS.items():
        flags.add_argument(f"--{name}", type=kind, help=help)
    flags.add_argument("--stop", nargs="+", help="texts that end an answer")
    flags.add_argument("--max_length", type=int, help="tokens of the whole conversation")
    flags.add_argument(
        "--dtype", choices=("float32", "bfloat16", "float16"), help="default: that of the file"
    )
    flags.add_argument("--weights", choices=("int8", "int4"), help="quantise them; default: as in the file")
    flags.add_argument(
        *("-o", "--opt"),
        nargs="+",
        action="extend",
        default=[],
        metavar="key=value",
        help="further options of generation, such as no_repeat_ngram_size=3",
    )
    flags.add_argument(
        "--template",
        nargs="+",
        action="extend",
        default=[],
        metavar="key=value",
        help="settings of the chat template, such as enable_thinking=false",
    )
    flags.add_argument("--quiet", action="store_true", help="no line with tokens per second")
    return flags


def read_pairs(texts: Sequence[str], where: str) -> dict[str, JSON]:
    """`key=value` each, values as YAML has them. Raises: InputError."""
    values: dict[str, JSON] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise InputError("this is no option", where=where, received=text, allowed="key=value")
        try:
            values[name.strip()] = yaml.safe_load(value)
        except yaml.YAMLError:
            values[name.strip()] = value
    return values


def _options(args: argparse.Namespace) -> Mapping[str, object]:
    options = {name: value for name in (*_NUMBERS, "stop") if (value := getattr(args, name)) is not None}
    return {**options, **read_pairs(args.opt, "-o")}


class _Terminal:
    """Reads questions and shows answers."""

    def __init__(self, args: argparse.Namespace) -> None:
        from nlp.chat import Conversation
        from nlp.open_generator import open_generator

        settings = TextGenerationOptions(
            slots=1, max_length=args.max_length, dtype=args.dtype, weights=args.weights
        )
        self.generator = open_generator(args.model, settings)
        self.chat = Conversation(
            self.generator, args.system, _options(args), read_pairs(args.template, "--template")
        )
        self.quiet = args.quiet
        self.generator.defaults.merge(**self.chat.options)  # wrong options are told before the first question
        if not self.generator.has_template:
            _say("The model has no chat template: it goes on with your text.")

    def answer(self, text: str) -> None:
        """Writes the answer while it comes; Ctrl+C stops it."""
        stream = self.chat.ask(text)
        thinking = False
        try:
            while True:
                try:
                    for delta in stream:
                        if delta.reasoning and not thinking:
                            _write("<think>\n")
                        if thinking and delta.content:
                            _write("\n</think>\n\n")
                        thinking = bool(delta.reasoning) or (thinking and not delta.content)
                        _write(delta.reasoning + delta.content)
                    break
                except KeyboardInterrupt:
                    stream.cancel()
        finally:
            stream.cancel()
        for call in stream.answer.tool_calls:
            _write(f"\n{call.name}({call.arguments})")
        _write("\n")
        answer = stream.answer
        self.chat.keep(text, answer)
        if not self.quiet:
            ends = {"length": ", cut off: no more tokens", "cancelled": ", stopped"}.get(
                answer.finish_reason or "", ""
            )
            _say(
                f"[{answer.tokens} tokens, {answer.tokens_per_second:.1f} tokens/s, "
                f"first after {answer.first_seconds:.2f} s{ends}]"
            )

    def talk(self) -> None:
        """Asks for questions until their end."""
        with contextlib.suppress(ImportError):
            importlib.import_module("readline")  # lines are edited; Windows does it itself
        _say("/help lists commands; Ctrl+C stops an answer, Ctrl+D ends.")
        while True:
            try:
                text = self._read()
            except EOFError:
                _write("\n")
                return
            except KeyboardInterrupt:
                _write("\n")
                continue
            if not text.strip():
                continue
            try:
                if text.startswith("/"):
                    if self._obey(*text[1:].strip().partition(" ")[::2]):
                        return
                else:
                    self.answer(text)
            except OarError as error:
                _say(f"error: {error}")

    def _read(self) -> str:
        line = input("> ")
        if not line.startswith('"""'):
            return line
        lines = [line[3:]]
        while not lines[-1].rstrip().endswith('"""') or (len(lines) == 1 and line.strip() == '"""'):
            lines.append(input("… "))
        lines[-1] = lines[-1].rstrip().removesuffix('"""')
        return "\n".join(lines)

    def _obey(self, command: str, rest: str) -> bool:
        """Whether that was the last command."""
        chat, rest = self.chat, rest.strip()
        if command in ("quit", "exit", "bye"):
            return True
        if command == "reset":
            chat.reset()
        elif command == "system":
            chat.system = rest or None
            chat.reset()
        elif command == "undo":
            del chat.messages[-2:]
        elif command == "save":
            if not rest:
                raise InputError("the file has no name", where="/save", allowed="/save FILE")
            try:
                _say(f"written: {chat.save(rest)}")
            except OSError as error:
                raise InputError("the file cannot be written", where=rest, received=error.strerror) from error
        elif command == "options":
            changed = {**chat.options, **read_pairs(rest.split(), "/options")}
            self.generator.defaults.merge(**changed)
            chat.options = changed
            _say(", ".join(f"{name}={value}" for name, value in changed.items()) or "those of the model")
        elif command == "help":
            _say(_HELP)
        else:
            raise InputError("there is no such command", received=f"/{command}", allowed=_HELP)
        return False


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _chat(args: argparse.Namespace) -> int:
    terminal = _Terminal(args)
    try:
        if args.prompt is not None:
            terminal.answer(args.prompt)
        elif sys.stdin is None or not sys.stdin.isatty():
            text = sys.stdin.read() if sys.stdin is not None else ""
            if not text.strip():
                raise InputError(
                    "there is no question", where="oar chat", fix="name a PROMPT, or pipe a text"
                )
            terminal.answer(text.removesuffix("\n"))
        else:
            terminal.talk()
    finally:
        terminal.generator.close()
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar chat`; returns the exit status."""
    return run(parser(), _chat, argv)


if __name__ == "__main__":
    sys.exit(main())
