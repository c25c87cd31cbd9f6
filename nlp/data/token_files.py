"""Files of tokens for pre-training: `x.idx` with `x.bin`, as Megatron-LM and PaddleNLP write and read them; and
`x_ids.npy` with `x_idx.npz` of older PaddleNLP, which are read.

Layout of .idx, little-endian: b"MMIDIDX\\0\\0", u64 version 1, u8 number of the dtype (see DTYPES), u64 sequences, u64
entries of the documents, i32 [sequences] lengths, i64 [sequences] byte offsets in .bin, i64 [documents + 1] the
sequence that each document begins with, and behind the last the number of sequences. .bin holds the tokens alone.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from framework.core.disk import disk_errors, temporary_beside
from framework.core.errors import ConfigError, FormatError, InputError

MAGIC = b"MMIDIDX\x00\x00"
DTYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 6: "<f8", 7: "<f4", 8: "<u2"}
"""NumPy's names by Megatron's numbers; tokens are whole numbers, so 6 and 7 are refused"""
_HEADER = struct.Struct("<9sQBQQ")


@dataclass(frozen=True, eq=False)
class TokenFile:
    """The tokens of many documents, one after another; mapped from the disk, not read.

    Attributes:
        tokens: [N] whole numbers.
        starts: [documents + 1] int64: the place in `tokens` where each document begins, and behind the last N.
    """

    tokens: np.ndarray
    starts: np.ndarray
    path: Path

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.starts) - 1

    def document(self, index: int) -> np.ndarray:
        """The tokens of a document."""
        return self.tokens[self.starts[index] : self.starts[index + 1]]


def prefix_of(path: str | Path) -> Path:
    """`x` of x, x.idx, x.bin, x_ids.npy and x_idx.npz."""
    name = str(path)
    for ending in (".idx", ".bin", "_ids.npy", "_idx.npz"):
        name = name.removesuffix(ending)
    return Path(name)


def read_token_file(path: str | Path) -> TokenFile:
    """The tokens of `path`, which is the name without or with one of the endings.

    Raises:
        InputError: there are no such files. FormatError: they are damaged, or do not belong together.
    """
    prefix = prefix_of(path)
    index, tokens = Path(f"{prefix}.idx"), Path(f"{prefix}.bin")
    if index.is_file() and tokens.is_file():
        return _read_index(index, tokens)
    old = Path(f"{prefix}_ids.npy"), Path(f"{prefix}_idx.npz")
    if all(one.is_file() for one in old):
        return _read_arrays(*old)
    raise InputError(
        "there are no files of tokens",
        where=prefix,
        allowed=f"{prefix.name}.idx with {prefix.name}.bin, or {prefix.name}_ids.npy with {prefix.name}_idx.npz",
        fix="python -m nlp.data tokens --input FILE --tokenizer tokenizer.json --output " + prefix.as_posix(),
    )


def _read_index(index: Path, data: Path) -> TokenFile:
    size = index.stat().st_size
    with open(index, "rb") as file:
        header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or not header.startswith(MAGIC):
        raise _damaged(index, f"{header[:9]!r}", f"{MAGIC!r}, the first bytes of an index of Megatron")
    _, version, code, sequences, documents = _HEADER.unpack(header)
    if version != 1 or code not in DTYPES or np.dtype(DTYPES[code]).kind not in "iu":
        whole = {number: np.dtype(kind).name for number, kind in DTYPES.items() if number not in (6, 7)}
        raise _damaged(index, f"version {version}, type {code}", f"version 1, a type of {whole}")
    if _HEADER.size + sequences * 12 + documents * 8 > size:
        raise _damaged(index, f"{size} bytes", f"{_HEADER.size + sequences * 12 + documents * 8} bytes")
    whole_file = np.memmap(index, np.uint8, "r")
    place = _HEADER.size
    lengths = whole_file[place : place + 4 * sequences].view("<i4").astype(np.int64)
    place += 4 * sequences
    offsets = whole_file[place : place + 8 * sequences].view("<i8")
    place += 8 * sequences
    first = np.array(whole_file[place : place + 8 * documents].view("<i8"))
    kind = np.dtype(DTYPES[code])
    ends = np.concatenate([[0], np.cumsum(lengths)])
    if lengths.size and lengths.min() < 0:
        raise _damaged(index, f"a sequence of {lengths.min()} tokens", "0 or more")
    if not np.array_equal(offsets, ends[:-1] * kind.itemsize):
        raise _damaged(index, "sequences that leave gaps or overlap", "one behind the other")
    if data.stat().st_size != ends[-1] * kind.itemsize:
        allowed = f"{ends[-1] * kind.itemsize}, as {index.name} says"
        raise _damaged(data, f"{data.stat().st_size} bytes", allowed)
    if len(first) < 2 or first[0] != 0 or first[-1] != sequences or np.any(np.diff(first) < 0):
        first = np.arange(sequences + 1)  # some writers leave documents out: each sequence is one
    tokens = np.memmap(data, kind, "r") if ends[-1] else np.zeros(0, kind)
    return TokenFile(tokens, ends[first], data)


def _read_arrays(ids: Path, lengths: Path) -> TokenFile:
    try:
        tokens = np.load(ids, mmap_mode="r", allow_pickle=False)
        with np.load(lengths, allow_pickle=False) as arrays:
            sizes, documents = arrays["lens"].astype(np.int64), arrays["docs"].astype(np.int64)
    except (ValueError, KeyError, OSError) as error:
        raise _damaged(
            ids, str(error)[:100], f"arrays of PaddleNLP: ids, and lens and docs in {lengths.name}"
        ) from error
    ends = np.concatenate([[0], np.cumsum(sizes)])
    if tokens.ndim != 1 or tokens.dtype.kind not in "iu" or ends[-1] != len(tokens):
        raise _damaged(
            ids, f"{tokens.dtype} {list(tokens.shape)}", f"[{ends[-1]}] whole numbers, as {lengths.name} says"
        )
    inside = documents.size and documents.min() >= 0 and documents.max() < len(ends)
    first = np.unique(np.concatenate([[0], documents, [len(sizes)]])) if inside else np.arange(len(ends))
    return TokenFile(tokens, ends[first], ids)


def _damaged(path: Path, received: str, allowed: str) -> FormatError:
    return FormatError("the file of tokens cannot be read", where=path, received=received, allowed=allowed)


def smallest_dtype(vocab_size: int) -> str:
    """What Megatron takes: two bytes a token where its numbers fit, else four."""
    return "<u2" if vocab_size <= 65500 else "<i4"


class TokenFileWriter:
    """Writes documents to `<path>.idx` and `<path>.bin`; both are there when the `with` ends without an error.

    Raises:
        ConfigError: `dtype` is none of DTYPES.
    """

    def __init__(self, path: str | Path, dtype: str = "<i4") -> None:
        self.prefix, self.dtype = prefix_of(path), np.dtype(dtype)
        codes = {np.dtype(kind): code for code, kind in DTYPES.items() if np.dtype(kind).kind in "iu"}
        if self.dtype not in codes:
            raise ConfigError(
                "tokens cannot be written so",
                where="dtype",
                received=dtype,
                allowed=", ".join(kind.name for kind in codes),
            )
        self._code = codes[self.dtype]
        self._lengths: list[int] = []
        self._documents = [0]

    def __enter__(self) -> TokenFileWriter:
        with disk_errors(self.prefix):
            self.prefix.parent.mkdir(parents=True, exist_ok=True)
            self._work = temporary_beside(Path(f"{self.prefix}.bin"))
            self._file = open(self._work, "wb")
        return self

    def add(self, sequences: Iterable[np.ndarray]) -> None:
        """One document, of one or more sequences of tokens.

        Raises:
            InputError: a token does not fit into `dtype`.
        """
        limits = np.iinfo(self.dtype)
        for tokens in sequences:
            if len(tokens) and not limits.min <= int(tokens.min()) <= int(tokens.max()) <= limits.max:
                raise InputError(
                    "a token does not fit into the file",
                    where=f"document {len(self._documents) - 1}",
                    received=f"tokens {tokens.min()} to {tokens.max()}",
                    allowed=f"{limits.min} to {limits.max}, of {self.dtype}",
                    fix="dtype='<i4'",
                )
            with disk_errors(self._work):
                self._file.write(np.ascontiguousarray(tokens, self.dtype).data)
            self._lengths.append(len(tokens))
        self._documents.append(len(self._lengths))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with contextlib.suppress(OSError) if kind is not None else contextlib.nullcontext():
            self._file.close()
        if kind is not None:
            self._work.unlink(missing_ok=True)
            return
        lengths = np.asarray(self._lengths, "<i4")
        offsets = (
            np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)[:-1]]) if len(lengths) else np.zeros(0)
        )
        index = Path(f"{self.prefix}.idx")
        work = temporary_beside(index)
        with disk_errors(index):
            with open(work, "wb") as file:
                file.write(_HEADER.pack(MAGIC, 1, self._code, len(lengths), len(self._documents)))
                file.write(lengths.tobytes())
                file.write((offsets * self.dtype.itemsize).astype("<i8").tobytes())
                file.write(np.asarray(self._documents, "<i8").tobytes())
            self._work.replace(f"{self.prefix}.bin")
            work.replace(index)


def write_token_file(path: str | Path, documents: Iterable[np.ndarray], dtype: str = "<i4") -> TokenFile:
    """Write each document as one sequence; gives what `read_token_file` reads."""
    with TokenFileWriter(path, dtype) as writer:
        for tokens in documents:
            writer.add([tokens])
    return read_token_file(path)
