"""What docs/mobile.md tells: the Kotlin samples compile, and ncnn runs a classifier by way of ONNX.

The compiler is npm's kotlin-compiler (OAR_KOTLIN_COMPILER is its folder); the classes of LiteRT, ONNX Runtime and
Android are stubs with the signatures that the samples call. pnnx is the package's binary, without torch.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from framework.commands.export import main

REPO = Path(__file__).resolve().parents[2]
STUBS = REPO / "tests/data/mobile_stubs"
ANDROID = REPO / "tools/mobile/android"


def kotlin_jars() -> Path | None:
    """The folder of the compiler's jars."""
    folder = Path(os.environ.get("OAR_KOTLIN_COMPILER", REPO / "node_modules/kotlin-compiler")) / "lib"
    return folder if (folder / "kotlin-compiler.jar").is_file() else None


def find_pnnx() -> str | None:
    """pnnx's binary: on the path, in the package, or where OAR_PNNX says."""
    spec = importlib.util.find_spec("pnnx")
    inside = Path(spec.origin).with_name("pnnx") if spec is not None and spec.origin else None
    named = os.environ.get("OAR_PNNX") or (str(inside) if inside is not None and inside.is_file() else None)
    return named or shutil.which("pnnx")


@pytest.mark.skipif(shutil.which("javac") is None, reason="no javac")
def test_the_stubs_of_the_samples_compile(tmp_path: Path) -> None:
    sources = [str(path) for path in STUBS.rglob("*.java")]
    subprocess.run(["javac", "-d", str(tmp_path), *sources], check=True, timeout=120)
    assert (tmp_path / "org/tensorflow/lite/Interpreter.class").is_file()


@pytest.mark.slow
@pytest.mark.skipif(
    kotlin_jars() is None or shutil.which("javac") is None, reason="no kotlin-compiler, or no javac"
)
def test_the_kotlin_samples_compile_to_class_files(tmp_path: Path) -> None:
    sources = [str(path) for path in STUBS.rglob("*.java")]
    subprocess.run(["javac", "-d", str(tmp_path / "stubs"), *sources], check=True, timeout=120)
    command = ["java", "-cp", f"{kotlin_jars()}/*", "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler"]
    flags = ["-no-reflect", "-Werror", "-cp", str(tmp_path / "stubs"), "-d", str(tmp_path / "classes")]
    done = subprocess.run(
        [*command, *flags, *map(str, sorted(ANDROID.glob("*.kt")))], capture_output=True, timeout=600
    )
    assert done.returncode == 0, done.stderr.decode()
    names = {path.name for path in (tmp_path / "classes").rglob("*.class")}
    assert {"LiteRtModel.class", "OrtModel.class", "ImageInput.class"} <= names


@pytest.mark.parametrize(
    "source", sorted([*ANDROID.glob("*.kt"), *(REPO / "tools/mobile/ios").glob("*.swift")])
)
def test_samples_name_the_inputs_and_outputs_of_the_programs(source: Path) -> None:
    text = source.read_text(encoding="utf-8")
    if source.stem != "Images":
        assert '"image"' in text or "toInputAt: 0" in text
        assert '"scores"' in text and '"boxes"' in text and '"labels"' in text
    if source.suffix == ".swift":
        assert "Not compiled here" in text


@pytest.mark.skipif(find_pnnx() is None or not importlib.util.find_spec("ncnn"), reason="no pnnx, or no ncnn")
def test_ncnn_runs_a_classifier_by_way_of_onnx(tmp_path: Path) -> None:
    import ncnn
    import onnxruntime

    folder, shape = tmp_path / "artifact", ["--input_shape", "1", "3", "128", "128"]
    flags = ["--format", "onnx", "--onnx_layout", "NCHW", *shape, "--save_dir", str(folder)]
    assert main(["-c", "pp_lcnet_x0_25_clothing", *flags]) == 0
    pnnx = find_pnnx()
    assert pnnx is not None
    command = [pnnx, "model.onnx", "inputshape=[1,3,128,128]f32", "fp16=0"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
    net = ncnn.Net()
    assert net.load_param(str(folder / "model.ncnn.param")) == 0
    assert net.load_model(str(folder / "model.ncnn.bin")) == 0
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    for seed in range(3):
        image = np.random.default_rng(seed).integers(0, 256, (1, 3, 128, 128)).astype(np.float32)
        extractor = net.create_extractor()
        extractor.input("in0", ncnn.Mat(image[0]))
        status, output = extractor.extract("out0")
        (want,) = session.run(None, {session.get_inputs()[0].name: image})
        assert status == 0
        np.testing.assert_allclose(np.array(output).ravel(), want.ravel(), atol=1e-3)
