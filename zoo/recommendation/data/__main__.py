"""Make the vocabulary of a configuration's training rows.

python -m zoo.recommendation.data vocabulary -c deepfm_criteo_tiny --output data/criteo_tiny/vocabulary.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from framework.core.disk import write_file
from framework.core.errors import ConfigError, OarError
from framework.io.dataset import Dataset, IterableDataset
from framework.workflow.domain.config_file import open_config
from framework.workflow.domain.domain import find_config
from zoo.recommendation.data.features import FIRST, EncodeFeatures
from zoo.recommendation.sample import RowSample


def iterate(dataset: Dataset) -> Iterator[RowSample]:
    """The samples of a data set with an index, or of a stream."""
    return (
        iter(dataset) if isinstance(dataset, IterableDataset) else (dataset[k] for k in range(len(dataset)))
    )


def count_values(samples: Iterable[RowSample], features: EncodeFeatures) -> dict[str, Counter[str]]:
    """How often each value stands in each sparse column."""
    counts = {name: Counter[str]() for name in features.sparse_names}
    for sample in samples:
        for name in features.sparse_names:
            counts[name].update(features.texts(name, sample.values.get(name)))
    return counts


def make_vocabulary(
    counts: dict[str, Counter[str]], min_count: int, columns: Iterable[str] = ()
) -> dict[str, object]:
    """The values that stand `min_count` times or more, most frequent first; `columns` are weighted numbers."""
    numbers = {name: [""] for name in columns}
    values = {
        name: [value for value, count in counter.most_common() if count >= min_count]
        for name, counter in counts.items()
    }
    return {"min_count": min_count, "columns": {**numbers, **values}}


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0, or 2 where the rows cannot be read."""
    parser = argparse.ArgumentParser(
        prog="python -m zoo.recommendation.data",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    vocabulary = commands.add_parser("vocabulary", help="the values that training rows have")
    vocabulary.add_argument("-c", "--config", required=True)
    vocabulary.add_argument(
        "-o", "--opt", nargs="*", default=[], help="settings such as data.train.dataset.paths=[…]"
    )
    vocabulary.add_argument(
        "--min_count", type=int, default=1, help="values met less often are unknown (default 1)"
    )
    vocabulary.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    try:
        experiment = open_config(find_config(options.config), tuple(options.opt)).experiment
        loader = experiment.data.train
        encoders = [one for one in (loader.transforms if loader else ()) if isinstance(one, EncodeFeatures)]
        if loader is None or not encoders:
            raise ConfigError(
                "there is nothing to count", where="data.train", allowed="rows, and EncodeFeatures"
            )
        features = encoders[0]
        numbers = features.dense_names if features.weighted else ()
        vocabulary_content = make_vocabulary(
            count_values(iterate(loader.dataset), features), options.min_count, numbers
        )
        options.output.parent.mkdir(parents=True, exist_ok=True)
        write_file(options.output, json.dumps(vocabulary_content, ensure_ascii=False).encode("utf-8"))
    except OarError as error:
        print(error, file=sys.stderr)
        return 2
    columns = vocabulary_content["columns"]
    assert isinstance(columns, dict)
    rows = FIRST + sum(map(len, columns.values()))
    print(
        f"{options.output}: {len(columns)} columns; EncodeFeatures.size and the model's table: {rows} or more"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
