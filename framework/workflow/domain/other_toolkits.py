"""Whose configuration a file is that names no domain: users of other toolkits bring theirs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from framework.core.errors import ConfigError, nearest


@dataclass(frozen=True)
class Toolkit:
    """A toolkit by the keys at the top of its files.

    Attributes:
        keys: The file has all of these.
        runs: The toolkit's own programs run under `oar run`.
        way: How else to go on.
    """

    name: str
    keys: frozenset[str]
    runs: bool = True
    way: str | None = None


_TOOLKITS = (
    Toolkit("PaddleOCR", frozenset({"Global", "Architecture"})),
    Toolkit("PaddleClas", frozenset({"Global", "Arch"})),
    Toolkit("PaddleX", frozenset({"Global", "Predict"}), runs=False),
    Toolkit("PaddleSeg", frozenset({"train_dataset", "model"})),
    Toolkit("PaddleSeg", frozenset({"model", "iters", "optimizer"})),
    Toolkit("PaddleDetection", frozenset({"architecture"})),
    Toolkit("PaddleDetection", frozenset({"TrainReader"})),
    Toolkit("PaddleDetection", frozenset({"_BASE_"})),
    Toolkit("PaddleRec", frozenset({"runner", "hyper_parameters"})),
    Toolkit("detectron2", frozenset({"MODEL"}), runs=False),
    Toolkit(
        "ultralytics",
        frozenset({"names", "train"}),
        runs=False,
        way="a model by its name trains on a data set of YOLO, see docs/own_data.md",
    ),
    Toolkit("ultralytics", frozenset({"backbone", "head"}), runs=False),
)


def refuse_foreign_config(keys: Iterable[str], path: Path, names: Iterable[str]) -> None:
    """Says whose configuration a file without a domain is, and how to go on, where it is that of another toolkit.

    Args:
        keys: At the top of the file and of its bases.
        names: Of the configurations that there are.

    Raises:
        ConfigError: it is one.
    """
    keys = list(keys)
    toolkit = next((one for one in _TOOLKITS if one.keys <= set(keys)), None)
    if toolkit is None:
        return
    near = nearest(path.stem, names)
    ways = [f"oar run tools/train.py -c {path.name}, in a checkout of {toolkit.name}"] if toolkit.runs else []
    ways += [toolkit.way] if toolkit.way else []
    ways += [f"oar train -c {near}, the nearest name here"] if near else ["oar models names lists ours"]
    raise ConfigError(
        f"this is a configuration of {toolkit.name}",
        where=path,
        received=f"the keys {', '.join(keys[:8])}{', …' if len(keys) > 8 else ''}",
        allowed="a configuration that names its `domain`",
        fix="; or ".join(ways) + " (--data FOLDER and -o key=value set data and the rest)",
    )
