"""Data and weights: datasets, samplers and the loader; files of weights; readers of other frameworks' files.

The names below are loaded when they are first used: workers of a loader import this package and shall not load jax.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from framework.io.collate import default_collate as default_collate
    from framework.io.dataset import ChainDataset as ChainDataset
    from framework.io.dataset import ComposeDataset as ComposeDataset
    from framework.io.dataset import ConcatDataset as ConcatDataset
    from framework.io.dataset import Dataset as Dataset
    from framework.io.dataset import IterableDataset as IterableDataset
    from framework.io.dataset import Subset as Subset
    from framework.io.dataset import TensorDataset as TensorDataset
    from framework.io.dataset import random_split as random_split
    from framework.io.device import prefetch_to_device as prefetch_to_device
    from framework.io.loader import DataLoader as DataLoader
    from framework.io.recipe import Batch as Batch
    from framework.io.sampler import BatchSampler as BatchSampler
    from framework.io.sampler import BucketBatchSampler as BucketBatchSampler
    from framework.io.sampler import DistributedBatchSampler as DistributedBatchSampler
    from framework.io.sampler import RandomSampler as RandomSampler
    from framework.io.sampler import Sampler as Sampler
    from framework.io.sampler import SequenceSampler as SequenceSampler
    from framework.io.sampler import SubsetRandomSampler as SubsetRandomSampler
    from framework.io.sampler import WeightedRandomSampler as WeightedRandomSampler
    from framework.io.sharded import load_sharded as load_sharded
    from framework.io.sharded import save_sharded as save_sharded
    from framework.io.workers import WorkerInfo as WorkerInfo
    from framework.io.workers import get_worker_info as get_worker_info

_NAMES = {
    "collate": ("default_collate",),
    "dataset": (
        "ChainDataset",
        "ComposeDataset",
        "ConcatDataset",
        "Dataset",
        "IterableDataset",
        "Subset",
        "TensorDataset",
        "random_split",
    ),
    "device": ("prefetch_to_device",),
    "loader": ("DataLoader",),
    "recipe": ("Batch",),
    "sampler": (
        "BatchSampler",
        "BucketBatchSampler",
        "DistributedBatchSampler",
        "RandomSampler",
        "Sampler",
        "SequenceSampler",
        "SubsetRandomSampler",
        "WeightedRandomSampler",
    ),
    "sharded": ("load_sharded", "save_sharded"),
    "workers": ("WorkerInfo", "get_worker_info"),
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name in _WHERE:
        return getattr(importlib.import_module(f"framework.io.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'framework.io' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
