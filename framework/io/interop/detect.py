"""What a file is, recognised from its first bytes: people rename files, and servers send pages instead of them."""

from __future__ import annotations

from framework.core.errors import FormatError
from framework.io.interop.archive import is_archive
from framework.io.interop.model_folder import INDEX
from framework.io.interop.source import FETCH_AGAIN, Source
from framework.io.interop.torch_checkpoint import LEGACY_MAGIC, ZIP_MAGIC, is_zip_checkpoint
from framework.io.interop.wire import Message

# start of the file -> what it is, what to do
_FOREIGN: tuple[tuple[bytes, str, str], ...] = (
    (
        b"version https://git-lfs.github.com/spec/",
        "a git-lfs pointer; the weights themselves were not fetched",
        "run `git lfs pull` in the repository, or download the file from its web page",
    ),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file (Keras)", "convert it to safetensors with h5py"),
    (b"\x93NUMPY", "a numpy array file (.npy)", "read it with numpy.load"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "unpack it and give the file inside"),
    (b"%PDF", "a PDF document", FETCH_AGAIN),
    (b"GGUF", "a GGUF file (llama.cpp)", "give the safetensors weights of the same model"),
)
_PROBE = 4096
_MAX_HEADER = 100_000_000  # of the safetensors format


def detect(source: Source) -> str:
    """One of safetensors, torch, pickle, onnx, pdmodel, pir, pdiparams, archive, index (of weights in several files).

    Raises FormatError that says what the file is instead where that can be told. It reads only what tells formats
    apart: a file that passes here may still be damaged.
    """
    data = source.data
    head = bytes(data[:_PROBE])
    if (
        head[8:9] == b"{" and int.from_bytes(head[:8], "little") < _MAX_HEADER
    ):  # before pickle: 0x80 is a length too
        return "safetensors"
    if head.startswith(LEGACY_MAGIC):
        return "torch"
    if head.startswith(ZIP_MAGIC):
        return "torch" if is_zip_checkpoint(source) else "archive"
    if is_archive(head):
        return "archive"
    if len(head) > 1 and head[0] == 0x80 and 2 <= head[1] <= 5:
        return "pickle"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return "index" if b'"weight_map"' in head or source.name.endswith(INDEX) else "pir"
    _refuse_foreign(source, head)
    if head[:16] == bytes(16):
        return "pdiparams"
    try:
        numbers = Message(source, "the file").numbers
    except FormatError:
        numbers = frozenset()
    if 7 in numbers and 1 in numbers and head[0] == 0x08:
        return "onnx"
    if 1 in numbers and numbers <= {1, 2, 3, 4, 5, 6} and head[0] == 0x0A:
        return "pdmodel"
    if head[0] in (0x08, 0x0A):
        kind = "an ONNX model" if head[0] == 0x08 else "a Paddle program (.pdmodel)"
        raise source.error(
            f"the file starts like {kind} but is cut off or damaged", received=f"{len(data)} bytes"
        )
    raise source.error(
        "unknown kind of file",
        received=f"{len(data)} bytes that start with {head[:16]!r}",
        allowed=".safetensors, .onnx, .pdparams, .pdopt, .pdmodel or inference.json with .pdiparams, .pth, .pt",
    )


def _refuse_foreign(source: Source, head: bytes) -> None:
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:64].lower()
    if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head", b"<!--")):
        raise source.error(
            "this is a web page, not a file of weights",
            received=f"{len(source.data)} bytes that start with {head[:40]!r}",
            fix="the server sent its page instead of the file: open the address in a browser and use the download link",
        )
    for magic, kind, fix in _FOREIGN:
        if head.startswith(magic):
            raise source.error(f"this is {kind}", fix=fix)
    if head[4:8] == b"TFL3":
        raise source.error("this is a TensorFlow Lite model", fix="export the model as ONNX")
