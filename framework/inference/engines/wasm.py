"""ONNX Runtime's build for browsers (wasm), in a process of node: what a web page computes, without a browser."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import struct
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np

from framework.core.errors import FormatError, InputError
from framework.inference.engine import TensorShape
from framework.inference.engines.onnx_file import OnnxEngine

PACKAGE_VARIABLE = "OAR_ONNXRUNTIME_WEB"
_ROOT = Path(__file__).resolve().parents[3]
_PACKAGES = (
    "tools/web/node_modules/onnxruntime-web",
    "node_modules/onnxruntime-web",
)


def find_onnxruntime_web() -> Path | None:
    """The folder of the npm package: that of OAR_ONNXRUNTIME_WEB, else in tools/web, else in the current folder."""
    named = os.environ.get(PACKAGE_VARIABLE)
    candidates = [Path(named)] if named else [_ROOT / _PACKAGES[0], Path.cwd() / _PACKAGES[1]]
    return next((path for path in candidates if (path / "package.json").is_file()), None)


class WasmEngine(OnnxEngine):
    """Run an ONNX file with onnxruntime-web in node, one thread; see `OnnxEngine`. Safe in threads: calls wait.

    Args:
        file: An ONNX file with its weights in it.
        inputs, outputs: Their shapes and dtypes, which the package does not tell.

    Raises:
        InputError: node or onnxruntime-web is not installed. FormatError: it cannot read the file.
    """

    def __init__(
        self, file: Path, inputs: Mapping[str, TensorShape], outputs: Mapping[str, TensorShape]
    ) -> None:
        node, package = shutil.which("node"), find_onnxruntime_web()
        if node is None or package is None:
            raise InputError(
                "onnxruntime-web cannot run here",
                received="no node" if node is None else "no folder of the package",
                allowed=f"node, and onnxruntime-web in tools/web/node_modules or in {PACKAGE_VARIABLE}",
                fix="npm install onnxruntime-web",
            )
        runner = Path(__file__).with_name("wasm_runner.cjs")
        self._lock, self._file = threading.Lock(), file
        self._process = subprocess.Popen(
            [node, str(runner), str(package.resolve()), str(file.resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        header, _ = self._read()
        if "error" in header:
            self.close()
            raise FormatError(
                "onnxruntime-web cannot read the file",
                where=file,
                received=str(header["error"])[:300],
                allowed="an ONNX file of operators that it has, with its weights in it",
            )
        self._declare(inputs, outputs, dict(inputs), file)

    def run(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        tensors = [
            {"name": name, "dtype": one.dtype.name, "shape": list(one.shape), "bytes": one.nbytes}
            for name, one in arrays.items()
        ]
        with self._lock:
            text = json.dumps({"tensors": tensors}).encode()
            stream = self._stream(self._process.stdin)
            stream.write(
                struct.pack("<I", len(text)) + text + b"".join(one.tobytes() for one in arrays.values())
            )
            stream.flush()
            header, outputs = self._read()
        if "error" in header:
            raise RuntimeError(str(header["error"]))
        return outputs

    def close(self) -> None:
        """End the process."""
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                self._stream(stream).close()
        self._process.terminate()
        self._process.wait()

    def __del__(self) -> None:
        if hasattr(self, "_process"):
            self.close()

    def _stream(self, stream: IO[bytes] | None) -> IO[bytes]:
        assert stream is not None  # all of the process are pipes
        return stream

    def _read(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        """(header, tensors) of the next message."""
        stream = self._stream(self._process.stdout)
        length = stream.read(4)
        if len(length) < 4:
            raise FormatError(
                "onnxruntime-web ended",
                where=self._file,
                received=f"exit status {self._process.wait()}",
                allowed="a model that fits into 4 GB of memory",
            )
        header = json.loads(stream.read(struct.unpack("<I", length)[0]))
        tensors = {
            one["name"]: np.frombuffer(stream.read(one["bytes"]), np.dtype(one["dtype"])).reshape(
                one["shape"]
            )
            for one in header.get("tensors", [])
        }
        return header, tensors
