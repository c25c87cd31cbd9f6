"""What language adds to the command `oar`."""

from __future__ import annotations

from framework.config.command_line import CommandLine, Verb

COMMANDS = CommandLine(
    verbs={
        "chat": Verb("nlp.chat_command", "talk to a language model in the terminal"),
        "export-programs": Verb(
            "nlp.export_programs_command", "write a language model as programs that run without its code"
        ),
    }
)
