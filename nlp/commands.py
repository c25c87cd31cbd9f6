"""What language adds to the command `oar`."""

from __future__ import annotations

from framework.config.command_line import CommandLine, Verb

COMMANDS = CommandLine(verbs={"chat": Verb("nlp.chat_command", "talk to a language model in the terminal")})
