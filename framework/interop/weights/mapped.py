"""Weights of large models, one array at a time: files are mapped and not read, so that nothing is in memory twice."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from framework.core.bounded import check_file
from framework.core.errors import FormatError
from framework.interop.foreign import refuse_foreign
from framework.interop.source import FETCH_AGAIN, Source
from framework.interop.weights.model_folder import is_index, read_weight_map
from framework.interop.weights.safetensors_io import DTYPES

_MAX_HEADER = 100 * 2**20


class MappedWeights(Mapping[str, np.ndarray]):
    """The arrays of a safetensors file, or of the files of an index, by name: read-only views of the mapped files.

    Attributes:
        metadata: The text in the headers.

    Raises:
        FormatError: a file is missing, truncated or damaged.
    """

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        self.metadata: dict[str, str] = {}
        self._arrays: dict[str, np.ndarray] = {}
        if not is_index(path.name):
            self._arrays = self._map(path)
            return
        data = check_file(path, "index of weights").read_bytes()
        files = read_weight_map(Source(str(path), memoryview(data)))
        missing = sorted({file for file in files.values() if not (path.parent / file).is_file()})
        if missing:
            raise FormatError(
                f"{len(missing)} of {len(set(files.values()))} files of these weights are missing",
                where=path,
                received=f"no {', '.join(missing[:5])} in {path.parent}",
                fix="copy or download all files that the index names into its folder",
            )
        shards = {file: self._map(path.parent / file) for file in sorted(set(files.values()))}
        for name, file in files.items():
            if name not in shards[file]:
                raise FormatError(
                    "an array that the index looks for in this file is not there",
                    where=path.parent / file,
                    received=f"{len(shards[file])} arrays without {name}",
                    fix="the files are of different saves, or one was cut: " + FETCH_AGAIN,
                )
            self._arrays[name] = shards[file][name]

    def _map(self, path: Path) -> dict[str, np.ndarray]:
        check_file(path, "file of weights")
        total = path.stat().st_size
        with open(path, "rb") as file:
            start = file.read(64)
            if start[8:9] != b"{":
                refuse_foreign(Source(str(path), memoryview(start)), start)
            size = int.from_bytes(start[:8], "little")
            if total < 8 or size > min(total - 8, _MAX_HEADER):
                raise FormatError(
                    "the file ends inside the header", where=path, received=f"{total} bytes", fix=FETCH_AGAIN
                )
            file.seek(8)
            text = file.read(size)
        try:
            header = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FormatError(
                f"the header is no JSON: {str(error)[:120]}", where=path, fix=FETCH_AGAIN
            ) from None
        if not isinstance(header, dict):
            raise FormatError("the header is no JSON object", where=path, fix=FETCH_AGAIN)
        extra = header.pop("__metadata__", None) or {}
        self.metadata |= (
            {str(key): str(value) for key, value in extra.items()} if isinstance(extra, dict) else {}
        )
        body = np.memmap(path, np.uint8, "r", offset=8 + size) if total > 8 + size else np.empty(0, np.uint8)
        return {name: _view(body, name, entry, path) for name, entry in header.items()}

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def _view(body: np.ndarray, name: str, entry: object, path: Path) -> np.ndarray:
    """The array that an entry of the header describes. Raises: FormatError."""
    shape = entry.get("shape") if isinstance(entry, dict) else None
    span = entry.get("data_offsets") if isinstance(entry, dict) else None
    dtype = DTYPES.get(str(entry.get("dtype"))) if isinstance(entry, dict) else None
    is_shape = isinstance(shape, list) and len(shape) <= 32 and all(type(n) is int and n >= 0 for n in shape)
    is_span = isinstance(span, list) and len(span) == 2 and all(type(n) is int for n in span)
    if dtype is None or not is_shape or not is_span:
        raise FormatError(
            f"the header does not describe the array {name[:80]!r}",
            where=path,
            received=repr(entry)[:120],
            allowed="a dtype of " + ", ".join(DTYPES) + ", a shape and two offsets",
        )
    assert isinstance(shape, list) and isinstance(span, list)
    start, end = span
    if not 0 <= start <= end <= len(body) or end - start != math.prod(shape) * dtype.itemsize:
        raise FormatError(
            f"the array {name[:80]!r} is not where the header says",
            where=path,
            received=f"bytes {start} to {end} for {shape} of {dtype}, {len(body)} bytes in the file",
            fix=FETCH_AGAIN,
        )
    return body[start:end].view(dtype).reshape(shape)
