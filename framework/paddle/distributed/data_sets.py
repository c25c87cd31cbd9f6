"""Datasets of MultiSlot text for `Executor.train_from_dataset`: files go through a command, its lines are samples."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, ClassVar, cast

import numpy as np

from framework.core.errors import FormatError, InputError
from framework.distributed import collectives
from framework.paddle._kernel.random import default_generator
from framework.paddle.distributed import env
from framework.paddle.install import SHIM
from framework.paddle.static.program import Variable

Sample = list[np.ndarray]  # the values of each slot
_SETTINGS: dict[str, object] = {
    "batch_size": 1,
    "thread_num": 1,
    "use_var": (),
    "pipe_command": "cat",
    "input_type": 0,
    "fs_name": "",
    "fs_ugi": "",
    "download_cmd": "cat",
}
_MEMORY: dict[str, object] = {
    "data_feed_type": "MultiSlotInMemoryDataFeed",
    "queue_num": None,
    "merge_size": -1,
    "parse_ins_id": False,
    "parse_content": False,
    "fleet_send_batch_size": 1024,
    "fleet_send_sleep_seconds": 0,
    "fea_eval": False,
    "candidate_size": 10000,
}


class DatasetBase:
    """Files, the command that turns each into MultiSlot text, and the variables of its slots in their order."""

    _defaults: ClassVar[dict[str, object]] = _SETTINGS

    def __init__(self) -> None:
        self._settings = dict(self._defaults)
        self.filelist: list[str] = []

    def init(self, **kwargs: object) -> None:
        """Set `batch_size`, `use_var`, `pipe_command` and so on. Threads do not change what is read.

        Raises:
            InputError: there is no such setting, or a variable that is neither int64 nor float32.
        """
        if unknown := [name for name in kwargs if name not in self._defaults]:
            raise InputError(
                "a dataset has no such setting",
                where=f"{type(self).__name__}.init",
                received=", ".join(unknown),
                allowed=", ".join(self._defaults),
            )
        self._settings.update(kwargs)
        for variable in self.variables:
            if np.dtype(variable.dtype.numpy) not in (np.dtype(np.int64), np.dtype(np.float32)):
                raise InputError(
                    "a slot is int64 or float32", where=variable.name, received=str(variable.dtype)
                )

    update_settings = init

    def set_filelist(self, filelist: Sequence[str]) -> None:
        """The files of this process; `fleet.util.get_file_shard(files)` divides them among workers."""
        self.filelist = list(filelist)

    @property
    def variables(self) -> list[Variable]:
        """Those that are fed."""
        return list(cast("Sequence[Variable]", self._settings["use_var"]))

    def _samples(self) -> Iterator[Sample]:
        for file in self.filelist:
            yield from self._read(Path(file))

    def _read(self, file: Path) -> Iterator[Sample]:
        """The samples of a file. Raises: InputError, where the file cannot be read or the command fails."""
        try:
            source = file.open("rb")
        except OSError as error:
            raise InputError("a file of a dataset cannot be read", where=file, received=str(error)) from error
        command = str(self._settings["pipe_command"])
        with source:
            if command == "cat":
                yield from self._parse(source, file)
                return
            paths = [str(SHIM), *filter(None, [os.environ.get("PYTHONPATH")])]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "JAX_PLATFORMS": "cpu"}
            try:
                process = subprocess.Popen(
                    shlex.split(command), stdin=source, stdout=subprocess.PIPE, env=environment
                )
            except OSError as error:
                raise InputError(
                    "the command of a dataset cannot be run",
                    where=f"pipe_command={command!r}",
                    received=str(error),
                    allowed="a program and its arguments; no shell reads it",
                    fix="pipe_command=\"sh -c '…'\" for pipes and the like",
                ) from error
            assert process.stdout is not None
            try:
                yield from self._parse(process.stdout, file)
                if code := process.wait():
                    raise InputError(
                        "the command of a dataset failed",
                        where=f"pipe_command={command!r}, {file}",
                        received=f"exit status {code}; what it wrote stands above",
                        allowed="a command that reads lines and writes MultiSlot text",
                    )
            finally:
                process.stdout.close()
                process.kill()
                process.wait()

    def _parse(self, text: IO[bytes], file: Path) -> Iterator[Sample]:
        kinds = [np.dtype(variable.dtype.numpy) for variable in self.variables]
        for number, line in enumerate(text, 1):
            words, start, sample = line.split(), 0, []
            try:
                for kind in kinds:
                    count = int(words[start])
                    values = words[start + 1 : start + 1 + count]
                    if len(values) < count or count < 1:
                        raise ValueError(f"a slot of {count} values, {len(values)} are there")
                    if kind == np.int64:  # feature signs are unsigned
                        sample.append(
                            np.array([int(value) % 2**64 for value in values], np.uint64).view(np.int64)
                        )
                    else:
                        sample.append(np.array(values, np.float32))
                    start += 1 + count
                if start != len(words):
                    raise ValueError(f"{len(words) - start} values are left over")
            except (ValueError, IndexError) as error:
                raise FormatError(
                    "a line is no MultiSlot text",
                    where=f"{file}, line {number} of what {self._settings['pipe_command']!r} wrote",
                    received=f"{line[:80]!r}: {error}",
                    allowed=f"`len v v …` for each of {len(kinds)} slots: {', '.join(v.name for v in self.variables)}",
                ) from error
            yield sample

    def batches(self) -> Iterator[dict[str, np.ndarray]]:
        """Arrays by the names of variables; the last batch may be smaller."""
        batch: list[Sample] = []
        for sample in self._samples():
            batch.append(sample)
            if len(batch) == self._settings["batch_size"]:
                yield self._collate(batch)
                batch = []
        if batch:
            yield self._collate(batch)

    def _collate(self, batch: list[Sample]) -> dict[str, np.ndarray]:
        arrays = {}
        for variable, values in zip(self.variables, zip(*batch)):
            shape = tuple(variable.shape)[1:]
            lengths = {len(one) for one in values}
            if shape == (1,) or lengths == {
                int(np.prod(shape))
            }:  # [sum of lengths, 1], as Paddle's LoDTensor is
                arrays[variable.name] = np.concatenate(values).reshape(-1, *shape)
            else:
                raise InputError(
                    "the values of a slot do not fill its variable",
                    where=variable.name,
                    received=f"{sorted(lengths)} values a sample",
                    allowed=f"{int(np.prod(shape))}, of shape {list(shape)}",
                    fix="fill them up in the generator",
                )
        return arrays


class QueueDataset(DatasetBase):
    """Streams its files, in their order."""

    def local_shuffle(self) -> None:
        """Raises: ForeignNameError; a stream is not shuffled, as in Paddle."""
        env.refuse("QueueDataset.local_shuffle", "InMemoryDataset shuffles")

    def global_shuffle(self, fleet: object = None) -> None:
        """Raises: ForeignNameError; a stream is not shuffled, as in Paddle."""
        env.refuse("QueueDataset.global_shuffle", "InMemoryDataset shuffles")


class InMemoryDataset(DatasetBase):
    """Reads its files into memory, where they are shuffled: in this process, or over all of them."""

    _defaults: ClassVar[dict[str, object]] = {**_SETTINGS, **_MEMORY}

    def __init__(self) -> None:
        super().__init__()
        self._memory: list[Sample] | None = None
        self._loading: Future[list[Sample]] | None = None
        self._shuffled = 0
        self.date = ""

    def _samples(self) -> Iterator[Sample]:
        return iter(self._loaded())

    def _loaded(self) -> list[Sample]:
        if self._memory is None:
            raise InputError(
                "nothing is in memory", where="InMemoryDataset", fix="dataset.load_into_memory() first"
            )
        return self._memory

    def load_into_memory(self, is_shuffle: bool = False) -> None:
        """Read all files."""
        self._memory, self._shuffled = list(super()._samples()), 0
        if is_shuffle:
            self.local_shuffle()

    def preload_into_memory(self, thread_num: int | None = None) -> None:
        """Read all files in the background; `wait_preload_done` ends it."""
        reader = ThreadPoolExecutor(1)
        self._loading = reader.submit(lambda: list(super(InMemoryDataset, self)._samples()))
        reader.shutdown(wait=False)

    def wait_preload_done(self) -> None:
        """Wait for `preload_into_memory`, whose errors come here."""
        if self._loading is not None:
            self._memory, self._shuffled, self._loading = self._loading.result(), 0, None

    def local_shuffle(self) -> None:
        """Shuffle what this process has."""
        samples = self._loaded()
        order = _order().permutation(len(samples))
        self._memory, self._shuffled = [samples[number] for number in order], len(samples)

    def global_shuffle(self, fleet: object = None, thread_num: int = 12) -> None:
        """Deal all samples of all processes out at random."""
        world, rank = env.get_world_size(), env.get_rank()
        samples = self._loaded()
        if world > 1:
            owners = _order().integers(0, world, len(samples))
            parcels = [[one for one, owner in zip(samples, owners) if owner == to] for to in range(world)]
            gathered = cast("list[list[list[Sample]]]", collectives.all_gather_object(parcels))
            self._memory = [one for each in gathered for one in each[rank]]
        self.local_shuffle()

    def slots_shuffle(self, slots: Sequence[str]) -> None:
        """Shuffle the values of these slots among samples, which tells what they are worth. Needs `fea_eval=True`."""
        if not self._settings["fea_eval"]:
            return
        names, samples = [variable.name for variable in self.variables], self._loaded()
        if unknown := [name for name in slots if name not in names]:
            raise InputError("there are no such slots", received=", ".join(unknown), allowed=", ".join(names))
        for name in slots:
            number, order = names.index(name), _order().permutation(len(samples))
            values = [samples[one][number] for one in order]
            self._memory = samples = [
                [*sample[:number], value, *sample[number + 1 :]] for sample, value in zip(samples, values)
            ]

    def get_memory_data_size(self, fleet: object = None) -> int:
        """Samples in memory; with `fleet` those of all processes."""
        return self._total(len(self._memory or ()), fleet)

    def get_shuffle_data_size(self, fleet: object = None) -> int:
        """Samples that were shuffled, else 0; with `fleet` those of all processes."""
        return self._total(self._shuffled, fleet)

    @staticmethod
    def _total(count: int, fleet: object) -> int:
        if fleet is None or env.get_world_size() == 1:
            return count
        return sum(cast("list[int]", collectives.all_gather_object(count)))

    def release_memory(self) -> None:
        """Forget the samples."""
        self._memory, self._shuffled = None, 0

    def set_date(self, date: str) -> None:
        """The day of the data, YYYYMMDD."""
        self.date = date


def _order() -> np.random.Generator:
    """Random numbers that `paddle.seed` makes repeat."""
    return np.random.default_rng([int(word) for word in default_generator.next_key()])
