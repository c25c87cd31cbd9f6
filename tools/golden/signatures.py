"""Makes tests/golden/data/signatures.json: the arguments and defaults of Paddle's layers, functions and optimizers.

Run it from the root of the repository in an environment with paddlepaddle 2.6.2 (none of our code):

    python tools/golden/signatures.py
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import paddle  # type: ignore[import-not-found]

OUTPUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "signatures.json"
MODULES = ("nn", "nn.functional", "nn.initializer", "optimizer", "optimizer.lr", "metric")


def main() -> None:
    found: dict[str, list[list[str | None]]] = {}
    for module in MODULES:
        owner = paddle
        for part in module.split("."):
            owner = getattr(owner, part)
        for name in sorted(n for n in dir(owner) if not n.startswith("_")):
            value = getattr(owner, name)
            if callable(value) and not inspect.ismodule(value):
                parameters = inspect.signature(value).parameters.values()
                found[f"{module}.{name}"] = [
                    [p.name, None if p.default is p.empty else repr(p.default)]
                    for p in parameters
                    if p.kind is not p.VAR_POSITIONAL and p.kind is not p.VAR_KEYWORD
                ]
    rows = (f"{json.dumps(name)}: {json.dumps(arguments)}" for name, arguments in found.items())
    OUTPUT.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
