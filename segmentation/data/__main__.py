"""Checks a data set: the classes' balance, broken files, values outside the classes.

python -m segmentation.data check -c configs/segmentation/....yml [-o data.train.dataset.root=data/...]
python -m segmentation.data check --dataset MaskFolder root=data/cells classes=2 images=train/image masks=train/label
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from framework.config.bind import bind, packages_of
from framework.config.load import load, override
from framework.config.tree import from_plain
from framework.core.errors import ConfigError
from framework.engine.experiment import LoaderConfig
from framework.io.data_check import Report, print_reports
from framework.io.dataset import Dataset
from segmentation.data.check import validate

_SPLITS = ("train", "eval")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status, see `print_reports`."""
    parser = argparse.ArgumentParser(
        prog="python -m segmentation.data", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    check = commands.add_parser("check", help="count the pixels of the classes and find what is broken")
    source = check.add_mutually_exclusive_group(required=True)
    source.add_argument("-c", "--config", help="a configuration: what it trains on and evaluates is checked")
    source.add_argument(
        "--dataset", metavar="NAME", help="a data set by its name, such as Cityscapes or MaskFolder"
    )
    check.add_argument(
        "settings", nargs="*", metavar="key=value", help="settings of --dataset, values in YAML"
    )
    check.add_argument(
        "-o", "--opts", nargs="+", default=[], metavar="a.b=value", help="overrides of --config"
    )
    check.add_argument("--part", choices=_SPLITS, help="of a configuration, this part alone")
    return print_reports(_reports(parser.parse_args(arguments)))


def _reports(options: argparse.Namespace) -> Iterator[tuple[str, Report]]:
    if options.config is None:
        yield "", validate(_make_dataset(options.dataset, options.settings))
        return
    if options.settings:
        raise ConfigError("settings belong to --dataset", received=" ".join(options.settings), fix="use -o")
    datasets = _read_config(options.config, options.opts, options.part)
    for name, dataset in datasets.items():
        yield name if len(datasets) > 1 else "", validate(dataset)


def _make_dataset(name: str, settings: Sequence[str]) -> Dataset:
    tree = from_plain({"dataset": {"type": name}})
    for setting in settings:
        tree = override(tree, f"dataset.{setting}")
    return bind(tree, LoaderConfig, packages_of(from_plain({"domain": "segmentation"}))).dataset


def _read_config(path: str, overrides: Sequence[str], split: str | None) -> dict[str, Dataset]:
    """The data sets of a file by their part; its other sections are not read."""
    tree = load(path, overrides)
    data = tree.value["data"].value if "data" in tree.value else {}
    splits = [name for name in (_SPLITS if split is None else (split,)) if data.get(name) is not None]
    if not splits:
        raise ConfigError("the configuration has no such data", where=path, allowed="data.train or data.eval")
    return {f"data.{name}": bind(data[name], LoaderConfig, packages_of(tree)).dataset for name in splits}


if __name__ == "__main__":
    sys.exit(main())
