import shutil

import pytest

from framework.core.errors import FormatError
from framework.interop import load_weights, write_safetensors
from framework.interop.detect import detect
from framework.interop.source import read_source

KINDS = {
    "network.onnx": "onnx",
    "network.pdmodel": "pdmodel",
    "network_pir.json": "pir",
    "network.pdiparams": "pdiparams",
    "state.pt": "torch",
    "legacy.pth": "torch",
    "state_p2.pdparams": "pickle",
    "state_p4.pdparams": "pickle",
    "adam.pdopt": "pickle",
}


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_the_content_counts_and_not_the_suffix(data, tmp_path, name, kind):
    wrong = tmp_path / "renamed.safetensors"
    shutil.copy(data / name, wrong)
    assert detect(read_source(wrong)) == kind


@pytest.mark.parametrize("name", ["network.onnx", "state.pt", "legacy.pth", "state_p4.pdparams"])
def test_a_file_with_the_wrong_suffix_loads(data, tmp_path, name):
    wrong = tmp_path / "wrong.pdmodel"
    shutil.copy(data / name, wrong)
    assert load_weights(wrong).keys() == load_weights(data / name).keys()


def test_a_safetensors_header_of_640_bytes_looks_like_a_pickle(tmp_path):
    path = tmp_path / "x"
    for pad in range(700):
        write_safetensors(path, {}, {"pad": "x" * pad})
        if path.read_bytes()[:2] == b"\x80\x02":
            break
    else:
        pytest.fail("no header of 640 bytes was made")
    assert detect(read_source(path)) == "safetensors"


def test_json_with_a_byte_order_mark(source):
    assert detect(source(b"\xef\xbb\xbf {}")) == "pir"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"\n<!DOCTYPE html>\n<html>",
            "this is a web page, not a file of weights(.|\n)*use the download link",
        ),
        (b"<html><body>403", "this is a web page"),
        (b"<?xml version='1.0'?><Error>", "this is a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1", "a git-lfs pointer(.|\n)*git lfs pull"),
        (b"\x89HDF\r\n\x1a\n", "this is an HDF5 file"),
        (b"\x93NUMPY\x01", r"this is a numpy array file \(.npy\)(.|\n)*numpy.load"),
        (b"7z\xbc\xaf\x27\x1c", "this is a 7-Zip archive"),
        (b"%PDF-1.7", "this is a PDF document"),
        (b"GGUF\x03", "this is a GGUF file"),
        (b"\x1c\0\0\0TFL3", "this is a TensorFlow Lite model"),
        (b"\x08\x08\x12\xff\x7f", "starts like an ONNX model but is cut off or damaged\n  received: 5 bytes"),
        (b"\x0a\xff\x7f", r"starts like a Paddle program \(.pdmodel\) but is cut off"),
        (b"\x00", "unknown kind of file"),
        (
            b"what is this",
            "unknown kind of file(.|\n)*12 bytes that start with b'what is this'(.|\n)*.safetensors",
        ),
    ],
)
def test_files_that_are_something_else(source, content, message):
    with pytest.raises(FormatError, match=message) as error:
        detect(source(content))
    assert "made.bin" in str(error.value)
