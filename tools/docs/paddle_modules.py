"""Where Paddle keeps its names: writes framework/paddle/_kernel/modules.txt from an installed paddlepaddle 2.6.2.

    python tools/docs/paddle_modules.py framework/paddle/_kernel/modules.txt

It imports the real Paddle, so it runs in an environment of its own, without Oar.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import sys
import types
from pathlib import Path

# Public modules that names are taken from, the most public first.
HOMES = (
    *("paddle", "paddle.nn", "paddle.nn.functional", "paddle.nn.initializer", "paddle.nn.utils"),
    *(
        "paddle.optimizer.lr",
        "paddle.optimizer",
        "paddle.io",
        "paddle.static.nn",
        "paddle.static",
        "paddle.jit",
    ),
    *("paddle.vision.ops", "paddle.vision.models", "paddle.vision.datasets", "paddle.vision.transforms"),
    *(
        "paddle.vision.transforms.functional",
        "paddle.vision",
        "paddle.distribution",
        "paddle.metric",
        "paddle.amp",
    ),
    *("paddle.autograd", "paddle.distributed.fleet.utils", "paddle.distributed.fleet", "paddle.distributed"),
    *("paddle.fft", "paddle.linalg", "paddle.signal", "paddle.sparse.nn.functional", "paddle.sparse.nn"),
    *("paddle.sparse", "paddle.text", "paddle.device.cuda", "paddle.device", "paddle.callbacks"),
    *(
        "paddle.regularizer",
        "paddle.utils.unique_name",
        "paddle.utils",
        "paddle.inference",
        "paddle.profiler",
    ),
    *("paddle.geometric", "paddle.hub", "paddle.sysconfig", "paddle.onnx", "paddle.hapi", "paddle.incubate"),
    *("paddle.incubate.nn", "paddle.audio", "paddle.quantization", "paddle.framework", "paddle.base"),
)
# Files that gather names for others, as packages do.
GATHERING = ("paddle.base.core", "paddle.common_ops_import", "paddle.static.io", "paddle.framework.io")
# Compilers, services and generated messages, which nobody imports from a program.
LEFT_OUT = (
    *(
        "tests",
        "proto",
        "libs",
        "cinn",
        "include",
        "launch",
        "auto_tuner",
    ),
    *("passes", "runtime", "cost", "graph_kit"),
)


def find_modules() -> dict[str, types.ModuleType]:
    """Every module of the package by its name."""
    modules = {}

    def walk(package: types.ModuleType) -> None:
        modules[package.__name__] = package
        for entry in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            if entry.name.rsplit(".", 1)[1] in LEFT_OUT:
                continue
            with contextlib.suppress(Exception):  # what needs a package that is not installed
                module = importlib.import_module(entry.name)
                walk(module) if entry.ispkg else modules.update({entry.name: module})

    walk(importlib.import_module("paddle"))
    return modules


def is_own(value: object) -> bool:
    """Whether Paddle made the value: a class or a function, no module."""
    return not isinstance(value, types.ModuleType) and str(getattr(value, "__module__", "")).startswith(
        "paddle"
    )


def find_homes(modules: dict[str, types.ModuleType]) -> dict[int, tuple[str, str]]:
    """The most public module that lists each object in its `__all__`, and its name there."""
    homes: dict[int, tuple[str, str]] = {}
    for home in HOMES:
        for name in getattr(modules[home], "__all__", None) or ():
            value = getattr(modules[home], name, None)
            if not name.startswith("_") and is_own(value):
                homes.setdefault(id(value), (home, name))
    return homes


def find_home(name: str, value: object, module: str, homes: dict[int, tuple[str, str]]) -> tuple[str, str]:
    """The module to take a member of `module` from, and its name there: where it is public, else where it is made."""
    if isinstance(value, types.ModuleType) and value.__name__.startswith("paddle"):
        full_name = value.__name__.replace(
            "paddle.base.libpaddle", "paddle.base.core"
        )  # Paddle's own name of it
        home, _, public = full_name.rpartition(".")
        return (module, name) if full_name == f"{module}.{name}" or not home else (home, public)
    if not is_own(value):
        return module, name
    full_name = str(value.__module__).replace("paddle.base.libpaddle", "paddle.base.core")
    return homes.get(id(value), (full_name, getattr(value, "__name__", name)))


def main(path: Path) -> None:
    """Write the table: `module home: name other=name …; home: …`, and `*: …` for what `__all__` lists."""
    modules = find_modules()
    homes = find_homes(modules)
    lines = []
    for module, value in sorted(modules.items()):
        groups: dict[str, list[str]] = {}
        listed: list[str] = list(dict.fromkeys(getattr(value, "__all__", None) or ()))
        listed = [] if "_ops" in module else listed
        for name, member in sorted(vars(value).items()):
            home, public = find_home(name, member, module, homes)
            private = name.startswith("__" if module in ("paddle.base", "paddle.framework") else "_")
            # What a file merely imports for itself is left out; a package gathers names for others.
            gathers = hasattr(value, "__path__") or module in GATHERING or name in listed
            if home != module and not private and (gathers or getattr(member, "__module__", "") == module):
                groups.setdefault(home, []).append(name if name == public else f"{name}={public}")
        if listed:
            groups["*"] = listed
        columns = [f"{home}: {' '.join(names)}" for home, names in groups.items()]
        lines.append(" | ".join([module, *columns]))
    path.write_text("# Made by tools/docs/paddle_modules.py.\n" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
