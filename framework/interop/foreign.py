"""Files that stand where weights should: pages of servers, pointers of git-lfs, other formats."""

from __future__ import annotations

from framework.interop.source import FETCH_AGAIN, Source

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


def refuse_foreign(source: Source, head: bytes) -> None:
    """Raises: FormatError, where the first bytes are those of another kind of file."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:64].lower()
    if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head", b"<!--")):
        raise source.error(
            "this is a web page, not a file of weights",
            received=f"a file that starts with {head[:40]!r}",
            fix="the server sent its page instead of the file: open the address in a browser and use the download link",
        )
    for magic, kind, fix in _FOREIGN:
        if head.startswith(magic):
            raise source.error(f"this is {kind}", fix=fix)
    if head[4:8] == b"TFL3":
        raise source.error("this is a TensorFlow Lite model", fix="export the model as ONNX")
