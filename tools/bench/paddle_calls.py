"""Which calls of public Paddle programs `framework.paddle` answers, by the number of places that write them.

`python -m tools.bench paddle_call_sites FOLDER|REPO.git|WHEEL … [--python PATH] [--top 40]`

Reads every Python file of folders, bare git repositories and wheels, resolves what `import paddle`, `import
paddle.nn as nn` and `from paddle.nn import Layer` bound, and counts the calls and base classes whose name begins
with `paddle.`. A site counts as answered where the name is here and its arguments bind to our signature: their
number and their keywords. `--python` is an interpreter with paddlepaddle 2.6.2: sites that it does not answer
either (paddle.fluid, names and arguments of later releases) are left out.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import subprocess
import sys
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tools.bench.peers import REPO, arguments

NO_NAME = "no such name"


@dataclass(frozen=True)
class Site:
    """A call of `name`: its positional arguments and keywords; None where * or ** hide them, or for a base class."""

    name: str
    positional: int | None
    keywords: tuple[str, ...] | None


def read_sources(source: Path) -> Iterator[str]:
    """The text of each Python file of a folder, of the newest commit of a bare repository, or of a wheel."""
    if source.suffix == ".whl":
        with zipfile.ZipFile(source) as wheel:
            for name in wheel.namelist():
                if name.endswith(".py"):
                    yield wheel.read(name).decode("utf-8", "replace")
    elif (source / "HEAD").is_file():
        git = ["git", "-C", str(source)]
        listing = subprocess.run([*git, "ls-tree", "-r", "HEAD"], capture_output=True, check=True).stdout
        rows = [line.split("\t", 1) for line in listing.decode("utf-8", "replace").splitlines()]
        blobs = [head.split()[2] for head, name in rows if name.endswith(".py") and head.split()[1] == "blob"]
        batch = subprocess.run(
            [*git, "cat-file", "--batch"], input="\n".join(blobs).encode(), capture_output=True, check=True
        ).stdout
        place = 0
        while place < len(batch):
            head = batch[place : place + 200].partition(b"\n")[0]
            fields = head.split()
            size = int(fields[2]) if len(fields) == 3 else 0
            start = place + len(head) + 1
            yield batch[start : start + size].decode("utf-8", "replace")
            place = start + size + (1 if len(fields) == 3 else 0)
    else:
        for path in sorted(source.rglob("*.py")):
            yield path.read_text("utf-8", errors="replace")


def find_sites(text: str) -> Iterator[Site]:
    """The calls and base classes of a file whose names lead to paddle."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # Python 2, and templates
        return
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "paddle":
                    bound[alias.asname or "paddle"] = alias.name if alias.asname else "paddle"
        elif (
            isinstance(node, ast.ImportFrom)
            and (node.module or "").split(".")[0] == "paddle"
            and not node.level
        ):
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    if not bound:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := _full_name(node.func, bound)):
            starred = any(isinstance(argument, ast.Starred) for argument in node.args)
            names = tuple(keyword.arg for keyword in node.keywords if keyword.arg is not None)
            hidden = starred or len(names) < len(node.keywords)
            yield Site(name, None if hidden else len(node.args), None if hidden else names)
        elif isinstance(node, ast.ClassDef):
            for base in node.bases:
                if name := _full_name(base, bound):
                    yield Site(name, None, None)


def _full_name(node: ast.expr, bound: dict[str, str]) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in bound:
        return None
    return ".".join([bound[node.id], *reversed(parts)])


def find(name: str, root: str) -> Any:
    """What stands under a name of Paddle in the package `root`. Raises: AttributeError, ImportError."""
    owner: Any = importlib.import_module(root)
    parts = name.split(".")
    for place, part in enumerate(parts[1:], 2):
        try:
            owner = getattr(owner, part)
        except AttributeError:
            owner = importlib.import_module(".".join([root, *parts[1:place]]))
    return owner


def check(sites: Iterable[Site], root: str) -> list[str | None]:
    """For each site why the package `root` does not answer it; None where it does."""
    cache: dict[str, Any] = {}
    return [_check(site, root, cache) for site in sites]


def _check(site: Site, root: str, cache: dict[str, Any]) -> str | None:
    if site.name not in cache:
        try:
            cache[site.name] = find(site.name, root)
        except Exception as error:  # whatever importing a module raises
            cache[site.name] = error
    found = cache[site.name]
    if isinstance(found, Exception):
        return NO_NAME
    if site.positional is None or site.keywords is None:
        return None
    try:
        signature = inspect.signature(found)
    except (ValueError, TypeError):
        return None if callable(found) else "not callable"
    try:
        signature.bind(*[None] * site.positional, **dict.fromkeys(site.keywords))
    except TypeError as error:
        return f"arguments: {error}"
    return None


def check_elsewhere(python: str, sites: list[Site]) -> list[str | None]:
    """`check` of paddle itself, by an interpreter that has it."""
    done = subprocess.run(
        [python, "-W", "ignore", "-m", __name__], input=json.dumps([asdict(site) for site in sites]),
        capture_output=True, text=True, check=True, cwd=REPO,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def paddle_call_sites(argv: list[str]) -> None:
    parser = arguments(__doc__, python=None, top=40)
    parser.add_argument("sources", nargs="+", type=Path)
    options = parser.parse_args(argv)
    counts: Counter[Site] = Counter()
    for source in options.sources:
        before = counts.total()
        for text in read_sources(source):
            counts.update(find_sites(text))
        print(f"{source}: {counts.total() - before} sites")
    sites = list(counts)
    ours = check(sites, "framework.paddle")
    theirs = check_elsewhere(options.python, sites) if options.python else [None] * len(sites)
    total = sum(counts[site] for site, why in zip(sites, theirs) if why is None)
    beyond = Counter({"name": 0, "arguments": 0})
    missed: dict[str, Counter[str]] = defaultdict(Counter)
    for site, here, there in zip(sites, ours, theirs):
        if there is not None:
            beyond["name" if there == NO_NAME else "arguments"] += counts[site]
        elif here is not None:
            missed[site.name][here] += counts[site]
    answered = total - sum(reasons.total() for reasons in missed.values())
    print(f"{answered} of {total} sites answered ({100 * answered / max(total, 1):.2f} %)")
    print(
        f"not counted: {beyond['name']} sites whose name Paddle lacks too, "
        f"{beyond['arguments']} whose arguments it refuses"
    )
    for name, reasons in sorted(missed.items(), key=lambda row: -row[1].total())[: options.top]:
        print(f"{reasons.total():6d} {name}: {reasons.most_common(1)[0][0]}")


if __name__ == "__main__":  # in Paddle's interpreter
    print(json.dumps(check([Site(**row) for row in json.load(sys.stdin)], "paddle")))
