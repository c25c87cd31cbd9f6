"""Looks a data set over: the classes' balance, broken files, values outside the classes.

python -m segmentation.data check -c configs/segmentation/....yml [-o data.train.dataset.root=data/...]
python -m segmentation.data check --dataset MaskFolder root=data/cells classes=2 images=train/image masks=train/label
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from framework.config.bind import bind, packages_of
from framework.config.load import load, override
from framework.config.tree import from_plain
from framework.core.errors import ConfigError, OarError
from framework.engine.experiment import LoaderConfig
from segmentation.data.check import validate

_FEEDS = ("train", "eval")


def main(arguments: Sequence[str] | None = None) -> int:
    """0: nothing to complain of; 1: there is; 2: the data set cannot be read."""
    parser = argparse.ArgumentParser(
        prog="python -m segmentation.data", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    check = commands.add_parser("check", help="count the pixels of the classes and find what is broken")
    source = check.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "-c", "--config", help="a configuration: what it trains on and evaluates is looked over"
    )
    source.add_argument(
        "--dataset", metavar="NAME", help="a data set by its name, such as Cityscapes or MaskFolder"
    )
    check.add_argument(
        "settings", nargs="*", metavar="key=value", help="settings of --dataset, values in YAML"
    )
    check.add_argument(
        "-o", "--opts", nargs="+", default=[], metavar="a.b=value", help="overrides of --config"
    )
    check.add_argument("--part", choices=_FEEDS, help="of a configuration, this part alone")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.config is not None and chosen.settings:
            raise ConfigError(
                "settings belong to --dataset", received=" ".join(chosen.settings), fix="use -o"
            )
        found = (
            {chosen.dataset: _named(chosen.dataset, chosen.settings)}
            if chosen.config is None
            else _of_config(chosen.config, chosen.opts, chosen.part)
        )
        clean = True
        for name, dataset in found.items():
            report = validate(dataset)
            print(f"== {name}\n{report}" if len(found) > 1 else report)
            clean &= report.is_clean
    except OarError as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if clean else 1


def _packages() -> tuple[str, ...]:
    return packages_of(from_plain({"domain": "segmentation"}))


def _named(name: str, settings: Sequence[str]) -> Any:
    tree = from_plain({"dataset": {"type": name}})
    for setting in settings:
        tree = override(tree, f"dataset.{setting}")
    return bind(tree, LoaderConfig, _packages()).dataset


def _of_config(path: str, overrides: Sequence[str], part: str | None) -> dict[str, Any]:
    """The data sets of a file by their part; its other sections are not looked at."""
    tree = load(path, overrides)
    feeds = tree.value["data"].value if "data" in tree.value else {}
    wanted = [name for name in (_FEEDS if part is None else (part,)) if feeds.get(name) is not None]
    if not wanted:
        raise ConfigError("the configuration has no such data", where=path, allowed="data.train or data.eval")
    return {f"data.{name}": bind(feeds[name], LoaderConfig, packages_of(tree)).dataset for name in wanted}


if __name__ == "__main__":
    sys.exit(main())
