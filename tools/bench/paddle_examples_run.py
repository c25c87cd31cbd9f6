"""Extracts the examples of an installed Paddle's docstrings, and runs them on Paddle or on framework.paddle.

Used by tools/bench/paddle_examples.py; Paddle's interpreter starts it as a program and needs nothing of this project.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import importlib
import inspect
import json
import os
import pkgutil
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import numpy as np

OURS = "framework.paddle"
RUNS = 3
OTHER_ROOMS = re.compile(
    r"paddle\.(static|distributed|incubate|sparse|geometric|audio|text|inference|quantization)\b"
)
INTERNAL = re.compile(
    r"paddle\.(base|pir|pir_utils|decomposition|dataset|reader|cost_model|proto|libs|cuda_env)\b|.*\._"
)
PROMPT = re.compile(r"^\s*(>>>|\.\.\.)(?: (.*))?$")
DIRECTIVE = re.compile(r"#\s*x?doctest:\s*([+-])\s*(SKIP|REQUIRES)\s*(\([^)]*\))?")
MAX_LEAVES, MAX_ELEMENTS = 200, 100_000  # of one container, and of one array (every n-th element is kept)


# Examples: runs in Paddle's interpreter.


def public_objects() -> Iterator[tuple[str, Any]]:
    """(name, function or class or method) of the installed Paddle, the shortest names first."""
    paddle = importlib.import_module("paddle")
    modules = {"paddle": paddle}
    for found in pkgutil.walk_packages(paddle.__path__, "paddle.", onerror=lambda name: None):
        if OTHER_ROOMS.match(found.name) or INTERNAL.match(found.name):
            continue
        with contextlib.suppress(Exception):  # a module that needs another machine
            modules[found.name] = importlib.import_module(found.name)
    named = [
        (f"{module}.{name}", getattr(modules[module], name, None))
        for module in sorted(modules, key=lambda name: (name.count("."), name))
        for name in getattr(modules[module], "__all__", ())
    ]
    classes = [(name, value) for name, value in named if inspect.isclass(value)]
    methods = [
        (f"{prefix}.{name}", inspect.getattr_static(value, name))
        for prefix, value in classes
        for name in dir(value)
        if not name.startswith("_")
    ]
    return iter([*named, *methods])


def blocks(doc: str) -> Iterator[str]:
    """The scripts of a docstring: one for each code block; statements for other machines are left out."""
    for block in re.split(r"\.\. code-block::.*", doc):
        script: list[str] = []
        inside = skipping = dropping = kept = False
        for line in block.splitlines():
            match = PROMPT.match(line)
            if match is None or (match[1] == "..." and not inside):
                inside = False
                continue
            inside, text = True, match[2] or ""
            directives = DIRECTIVE.findall(text)
            alone = bool(directives) and text.lstrip().startswith("#")
            if alone:
                skipping = directives[-1][0] == "+" and not satisfied(directives[-1])
            if match[1] == ">>>" and not text[:1].isspace():
                dropping = skipping or any(each[0] == "+" and not satisfied(each) for each in directives)
            kept = kept or not (dropping or alone)
            script.append("" if dropping else text)
        if kept and any(line.strip() and not line.lstrip().startswith("#") for line in script):
            yield "\n".join(script).strip("\n") + "\n"


def satisfied(directive: tuple[str, ...]) -> bool:
    """Whether a statement with this directive runs on a CPU of one process; many are skipped for their output alone."""
    if directive[1] == "REQUIRES":
        return not re.search(r"GPU|XPU|IPU|DISTRIBUTED|CUSTOM", directive[2].upper())
    reason = directive[2].lower()
    return bool(re.search(r"output|random|xdoctest|diff|chang|environment|address|windows", reason))


def part_of(name: str, module: str) -> str:
    """The package that defines a name, as the table's rows are called."""
    parts = module.split(".")
    if name.startswith("paddle.Tensor.") or parts[:2] == ["paddle", "linalg"]:
        return "tensor"
    return parts[1] if parts[0] == "paddle" and len(parts) > 1 and parts[1] != "base" else "framework"


def extract(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    seen: set[str] = (
        set()
    )  # docstrings and scripts: one object has several names, and some examples several objects
    for name, found in public_objects():
        value = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
        doc, module = getattr(found, "__doc__", None), getattr(value, "__module__", None) or "paddle"
        if not (callable(value) or inspect.isdatadescriptor(value)) or OTHER_ROOMS.match(module):
            continue
        if not isinstance(doc, str) or doc in seen:
            continue
        seen.add(doc)
        for number, script in enumerate(blocks(doc)):
            if script not in seen:
                seen.add(script)
                path = folder / f"{part_of(name, module)}__{name}__{number}.py"
                path.write_text(script, encoding="utf-8")


# Running: in Paddle's interpreter and in ours.


def rewritten(script: str) -> str:
    """`script` with Paddle's modules imported from framework; lines keep their numbers."""
    lines = script.splitlines()
    for node in ast.walk(ast.parse(script)):
        text: list[str] = []
        if isinstance(node, ast.ImportFrom) and is_paddle(node.module or ""):
            text = [ast.unparse(ast.ImportFrom(f"framework.{node.module}", node.names, 0))]
        elif isinstance(node, ast.Import) and any(is_paddle(alias.name) for alias in node.names):
            for alias in node.names:
                if not is_paddle(alias.name):
                    text.append(ast.unparse(ast.Import([alias])))
                elif alias.asname:
                    text.append(f"import framework.{alias.name} as {alias.asname}")
                else:
                    text += [f"import framework.{alias.name}"] if "." in alias.name else []
                    text.append("from framework import paddle")
        if text:
            first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
            before, after = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
            lines[first : last + 1] = [before + "; ".join(text) + after] + [""] * (last - first)
    return "\n".join(lines) + "\n"


def is_paddle(module: str) -> bool:
    return module.split(".")[0] == "paddle"


def leaves(path: str, value: Any, paddle: Any) -> Iterator[tuple[str, dict[str, Any], np.ndarray | None]]:
    """(path, description, array) of each Tensor, array, number and text in a variable."""
    kind = type(value).__name__
    if kind == "Variable" or (kind == "Parameter" and not paddle.in_dynamic_mode()):  # of a static program
        yield path, {"kind": "Variable", "shape": list(value.shape), "dtype": str(value.dtype)}, None
    elif isinstance(value, paddle.Tensor) or getattr(value, "is_sparse", bool)():
        description = {"kind": "Tensor", "shape": list(value.shape), "dtype": str(value.dtype)}
        sparse = getattr(value, "is_sparse", bool)()  # Paddle's numpy() ends the process on a sparse Tensor
        array = np.asarray((value.to_dense() if sparse else value).numpy())
        if description["dtype"].endswith("bfloat16"):  # Paddle gives its bits
            bits = array.dtype == np.uint16
            array = (array.astype(np.uint32) << 16).view(np.float32) if bits else array.astype(np.float32)
        yield path, description | {"stop_gradient": bool(value.stop_gradient)}, array
        gradient = value.grad if value.is_leaf else None
        if gradient is not None:
            yield from leaves(f"{path}.grad", gradient, paddle)
    elif isinstance(value, np.ndarray | np.generic):
        if value.dtype != object:
            array = np.asarray(value)
            yield path, {"kind": "ndarray", "shape": list(array.shape), "dtype": str(array.dtype)}, array
    elif isinstance(value, bool | int | float | complex | str):
        array = np.asarray(value)
        if array.dtype != object:  # an integer of more than 64 bits
            yield path, {"kind": type(value).__name__, "shape": [], "dtype": type(value).__name__}, array
    elif isinstance(value, list | tuple | dict):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for count, (key, item) in enumerate(items):
            if count < MAX_LEAVES:
                yield from leaves(f"{path}[{key!r}]", item, paddle)


def shift_streams(paddle: Any, shift: int) -> None:
    """Makes Paddle draw other numbers, whatever the script seeds: what depends on them differs between runs."""
    seed = paddle.seed
    paddle.seed = lambda number: seed(int(number) + shift)
    seed(shift)
    other = types.ModuleType("numpy")
    other.__getattr__ = lambda name: getattr(np, name)  # type: ignore[method-assign]
    other.random = np.random.RandomState(shift)  # type: ignore[attr-defined]
    for name, module in list(sys.modules.items()):
        if is_paddle(name):
            for alias in ("np", "numpy"):
                if vars(module).get(alias) is np:
                    setattr(module, alias, other)


def run_one(world: str, script: Path, out: Path, shift: int) -> None:
    """Runs a script in this process and writes what it left: out.json, out.npz, out.stdout, out.stderr."""
    for number, suffix in ((1, ".stdout"), (2, ".stderr")):
        os.dup2(os.open(f"{out}{suffix}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
    sys.stdout, sys.stderr = (os.fdopen(n, "w", encoding="utf-8", closefd=False) for n in (1, 2))
    paddle = importlib.import_module(world)
    np.random.seed(0)  # the script's own numbers are the same in every run
    random.seed(shift)
    if shift:
        shift_streams(paddle, shift)
    text = script.read_text(encoding="utf-8")
    record: dict[str, Any] = {"status": "runs", "variables": {}}
    start = time.perf_counter()
    module = types.ModuleType("__main__")
    path = Path.cwd() / script.name
    try:
        path.write_text(text if world == "paddle" else rewritten(text), encoding="utf-8")
        module.__file__ = str(path)
        sys.modules["__main__"], sys.argv = module, [str(path)]
        SourceFileLoader("__main__", str(path)).exec_module(module)
    except BaseException as error:
        if not isinstance(error, SystemExit) or error.code not in (None, 0):
            traceback.print_exc()
            frames = traceback.extract_tb(error.__traceback__)
            lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
            message = lines[-1 if world == "paddle" else 0]  # Paddle ends with it, after its own stack
            record |= {"status": "error", "error": f"{type(error).__name__}: {message}"}
            record["line"] = next((frame.lineno for frame in frames if frame.filename == str(path)), 0)
    record["seconds"] = round(time.perf_counter() - start, 3)
    arrays: dict[str, np.ndarray] = {}
    for name, value in list(vars(module).items()):
        if name.startswith("_") or isinstance(value, types.ModuleType):
            continue
        try:
            for leaf, description, array in leaves(name, value, paddle):
                record["variables"][leaf] = description
                if array is not None:
                    arrays[leaf] = array.reshape(-1)[:: 1 + array.size // MAX_ELEMENTS]
        except Exception as error:  # a Tensor without a value, or without a method yet
            record["variables"][name] = {"kind": f"unreadable {type(error).__name__}: {error}"[:200]}
    np.savez(f"{out}.npz", **{f"v{n}": array for n, array in enumerate(arrays.values())}, names=list(arrays))
    Path(f"{out}.json").write_text(json.dumps(record), encoding="utf-8")
    sys.stdout.flush()
    sys.stderr.flush()


def run_all(
    world: str, names: list[str], examples: Path, out: Path, jobs: int, timeout: float, shift: int = 0
) -> None:
    """Runs each example in a fork of this process: `world` is imported once, and no program runs in the parent."""
    out.mkdir(parents=True, exist_ok=True)
    package = importlib.import_module(world)
    if (
        world == OURS
    ):  # its modules come on demand: import them here, and jax with them, which starts no threads yet
        for found in pkgutil.walk_packages(package.__path__, f"{world}.", onerror=lambda name: None):
            if not found.name.endswith(".__main__"):  # a command
                with contextlib.suppress(Exception):  # the examples that need it will say why
                    importlib.import_module(found.name)
    waiting = collections.deque(names)
    running: dict[int, tuple[str, float, str]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            name, folder = waiting.popleft(), tempfile.mkdtemp(prefix="example")
            Path(out / f"{name}.json").unlink(missing_ok=True)
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    os.setsid()
                    os.chdir(folder)
                    run_one(world, examples / f"{name}.py", out / name, shift)
                    status = 0
                finally:
                    os._exit(status)
            running[pid] = (name, time.monotonic() + timeout, folder)
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            for late in [pid for pid, (_, deadline, _) in running.items() if time.monotonic() > deadline]:
                os.kill(late, signal.SIGKILL)
            time.sleep(0.02)
            continue
        name, deadline, folder = running.pop(pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)  # loaders that the script left
        shutil.rmtree(folder, ignore_errors=True)
        record = out / f"{name}.json"
        if status or not record.exists():
            failure = {"status": "error", "error": f"process ended with status {status}", "variables": {}}
            if time.monotonic() > deadline:
                failure |= {"status": "timeout", "error": f"no end in {timeout:g} s"}
            record.write_text(json.dumps(failure), encoding="utf-8")


def chosen(work: Path, words: list[str]) -> list[str]:
    """The names of the extracted examples that contain one of `words`, or all."""
    names = sorted(path.stem for path in (work / "examples").glob("*.py"))
    return [name for name in names if not words or any(word in name for word in words)]


def main(work: Path, jobs: int, timeout: float, words: list[str]) -> None:
    """In Paddle's interpreter: extracts the examples, and runs the chosen ones that have not run yet."""
    if not (work / "examples").exists():
        extract(work / "examples")
    for number in range(RUNS):
        out = work / "paddle" / str(number)
        names = [name for name in chosen(work, words) if not (out / f"{name}.json").exists()]
        run_all("paddle", names, work / "examples", out, jobs, timeout, 1000 * number)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])
