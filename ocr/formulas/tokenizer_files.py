"""Where the tokenizer of a configuration is: on this machine, or beside weights in the hub. Imports no jax."""

from __future__ import annotations

from pathlib import Path

from framework import hub


def find_tokenizer_file(source: str, part: str) -> Path | None:
    """A file or folder of this path, or what weights of this name have in the hub, fetched; None where there is none.

    Args:
        part: The file of the weights, such as "vocab".

    Raises: HubError: it cannot be fetched.
    """
    path = Path(source).expanduser()
    if path.exists():
        return path
    known = hub.entries("ocr")
    return hub.fetch(source, part) if source in known and part in known[source].files else None
