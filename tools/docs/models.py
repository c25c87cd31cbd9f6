"""The tables of docs/models.md: every set of weights of the hub with size and score, and the pipelines of OCR."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from framework import hub
from framework.config import build, find, load
from framework.core.errors import ConfigError

REPO = Path(__file__).resolve().parents[2]
EMPTY = "–"
HEADS = ("name", "family", "parameters", "file size", "score", "measured on", "config")


def pipelines() -> str:
    """The pipelines of OCR: one row for each config of configs/ocr."""
    rows = []
    for path in sorted((REPO / "configs" / "ocr").glob("*.yml")):
        stages = load(path).plain()["pipeline"]
        entries = [hub.entry(stages[stage]["weights"]) for stage in ("detector", "recognizer")]
        packaged = all(any(s.kind == "package" for s in entry.files["weights"].sources) for entry in entries)
        rows.append(
            (
                f"`{path.stem}`",
                _first_sentence(path.read_text(encoding="utf-8")),
                *(_score(entry) for entry in entries),
                _size(entries),
                "in the `ocr` extra" if packaged else "downloaded at first use",
            )
        )
    return markdown(("name", "languages and size", "detector", "recogniser", "file size", "weights"), rows)


def weights_of(*domains: str) -> Callable[[], str]:
    """Makes the table of all entries of these domains, by family."""

    def table() -> str:
        entries = [entry for entry in hub.entries().values() if entry.domain in domains]
        checkpoints = {f"{entry.name}_pretrained" for entry in entries}
        rows = []
        for entry in sorted(
            entries, key=lambda entry: entry.family.lower()
        ):  # stable: the file's order within
            if entry.name in checkpoints:  # the training form of another row
                continue
            trainable = entry.form == "trainable" or f"{entry.name}_pretrained" in hub.entries()
            name = f"`{entry.name}`" + ("" if trainable else " *")
            rows.append(
                (
                    name,
                    entry.family,
                    _parameters(entry),
                    _size([entry]),
                    _score(entry),
                    "; ".join(dict.fromkeys(str(score["set"]) for score in entry.scores)) or EMPTY,
                    _configs().get(entry.name, EMPTY),
                )
            )
        return markdown(HEADS, rows)

    return table


def trained() -> str:
    """The models that this project trained and whose log is kept, with what the run cost."""
    rows = []
    for log in sorted((REPO / "docs" / "training").glob("*.log")):
        head = _comment(log.read_text(encoding="utf-8"))
        remarks = " ".join(head[1:]) or EMPTY
        entry = hub.entry(log.stem)
        rows.append((f"[`{entry.name}`](training/{log.name})", _score(entry), remarks.replace("|", "\\|")))
    return markdown(("name and log", "score", "the run"), rows)


def markdown(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table of Markdown; cells hold no line breaks."""
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _comment(text: str) -> list[str]:
    """The lines of the comment at the head of a file."""
    head = itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
    return [line.lstrip("# ") for line in head]


def _first_sentence(text: str) -> str:
    """Of the comment at the head of a config."""
    return re.split(r"\.(?: |$)", " ".join(_comment(text)), maxsplit=1)[0]


@functools.cache
def _configs() -> dict[str, str]:
    """{name of weights: a config that runs with them, else one that has a stage of them or trains on from them}."""
    configs: dict[str, str] = {}
    paths = [path for path in sorted((REPO / "configs").rglob("*.yml")) if path.parent.name != "_base_"]
    for pattern in (r"^weights: *(\w+)", r"^ +weights: *(\w+)"):
        for path in paths:
            for name in re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE):
                configs.setdefault(name, f"`{path.stem}`")
    return configs


def _size(entries: list[hub.Entry]) -> str:
    """The size of the files of weights together, or a dash where the index lacks one."""
    sizes = [
        next((source.size / 1e6 for source in entry.files["weights"].sources if source.size), None)
        for entry in entries
    ]
    measured = [size for size in sizes if size is not None]
    return f"{sum(measured):.1f} MB" if len(measured) == len(sizes) else EMPTY


def _score(entry: hub.Entry) -> str:
    scores = [_value(score["metric"], score["value"]) for score in entry.scores]
    return "; ".join(scores) or EMPTY


def _value(metric: str, value: float) -> str:
    if metric.startswith("of "):
        return f"{value} {metric}"
    return f"{metric.removesuffix(' %')} {value} %" if metric.endswith(" %") else f"{metric} {value}"


def _parameters(entry: hub.Entry) -> str:
    """Millions of parameters of the model that the index names, or a dash where it names none."""
    settings = dict(entry.model)
    if "type" not in settings:
        return EMPTY
    if (
        entry.domain == "zoo"
    ):  # its models are backbones, with the classifier of ImageNet unless the row says otherwise
        settings.setdefault("num_classes", 1000)
    return f"{_count(entry.domain, json.dumps(settings)) / 1e6:.1f} M"


@functools.cache
def _count(domain: str, model: str) -> int:
    """Parameters of a model from its settings as JSON."""
    layer = build(_bind(json.loads(model), domain))
    return sum(parameter.size for _, parameter in layer.named_parameters())


def _bind(settings: dict[str, Any], domain: str) -> Any:
    """The configuration that `settings` with `type` describe; of settings in it, too."""
    values = {name: _bind(v, domain) if isinstance(v, dict) else v for name, v in settings.items()}
    name = values.pop("type")
    try:
        config = find("model", name, (domain, "zoo")).config
    except ConfigError:
        config = find("backbone", name, (domain, "zoo")).config
    if "num_classes" not in {field.name for field in dataclasses.fields(config)}:
        values.pop("num_classes", None)
    return config(**values)
