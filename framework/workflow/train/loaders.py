"""The loader of a part of a configuration's data."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from framework.core.errors import ConfigError
from framework.core.transform import SampleT
from framework.engine.experiment import LoaderConfig
from framework.engine.task import ModelT, Task
from framework.io.collate import PadToBucket
from framework.io.dataset import IterableDataset, split_windows
from framework.io.loader import DataLoader
from framework.io.sampler import BucketBatchSampler
from framework.io.skipped import SKIPPED_FILE, SkipLog
from framework.io.weighting import make_sampler
from framework.text.sample import TextSample
from framework.workflow.domain.samples import apply_transforms

log = logging.getLogger("oar")


def make_loader(
    config: LoaderConfig,
    task: Task[SampleT, ModelT],
    seed: int,
    train: bool,
    pack: Callable[[SampleT], dict] | None = None,
    folder: Path | None = None,
) -> DataLoader:
    """The loader of a config. Training shuffles and leaves out what fills no batch; evaluation pads the last one.

    With buckets the task says how long a sample is (`length`) and what pads its arrays (`padding`, values by key). A
    first transform with `split_windows(sample)` makes several samples of one. `pack` takes the place of the task's.
    `folder` gets the list of samples that `skip_bad_samples` leaves out.
    """
    dataset, transforms = split_windows(config.dataset, config.transforms)
    if config.buckets is None:
        shuffle = train and not isinstance(dataset, IterableDataset)  # a stream shuffles itself
        batches = {"batch_size": config.batch_size, "shuffle": shuffle, "drop_last": train}
        if train and config.sampler is not None:
            batches |= {"shuffle": False, "sampler": make_sampler(config.sampler, dataset, seed)}
    else:
        if task.padding is None:
            raise ConfigError(
                "the samples of this task all have one shape",
                where="buckets",
                received=f"task: {type(task).__name__}",
                fix="take `buckets` out of the loader's settings",
            )
        lengths = task.lengths(dataset, transforms)
        if lengths is None:
            lengths, cut = [], []
            for sample in dataset:
                changed = apply_transforms(sample, transforms)
                lengths.append(task.length(changed))
                if isinstance(changed, TextSample) and changed.left_out:
                    cut.append(changed)
            _report_cut(cut, len(lengths), "train" if train else "eval")
        sampler = BucketBatchSampler(lengths, config.buckets, config.batch_size, train, train, seed)
        collate = PadToBucket(config.buckets, task.padding, task.padding_axes)
        batches = {"batch_sampler": sampler, "collate_fn": collate}
    return DataLoader(
        dataset,
        transforms=transforms,
        pack=pack or (task.pack if train else task.pack_evaluated),
        **batches,
        pad_last=not train,
        num_workers=config.num_workers,
        worker_mode=config.worker_mode,
        seed=seed,
        skip_bad_samples=config.skip_bad_samples,
        skip_log=SkipLog(folder / SKIPPED_FILE if folder is not None and config.skip_bad_samples else None),
    )


def _report_cut(cut: Sequence[TextSample], count: int, split: str) -> None:
    """Say that texts are longer than the transforms take: what stood there is neither learnt nor scored."""
    if cut:
        longest = max(cut, key=lambda sample: sample.left_out)
        log.warning(
            f"data.{split}: {len(cut)} of {count} texts are longer than `max_length` of their transforms, and "
            f"{sum(sample.left_out for sample in cut)} tokens at their ends are left out; most of {longest.id}: "
            f"{longest.left_out}"
        )
