"""The folder of a page: what stands in it, what it says of transforms, and what is refused."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detection.domain
import ocr.domain
import segmentation.domain
import zoo.classification.domain
from framework.commands.export import main
from framework.core.errors import ConfigError, FormatError, HubError, InputError
from framework.export import Artifact
from framework.hub.store import digest
from framework.workflow.export.onnx import OnnxOptions
from framework.workflow.export.web import pages, runtime_files
from framework.workflow.export.web.folder import PageOptions, write_page
from framework.workflow.export.web.runtime_files import WASM_FILES, WEBGPU_FILES, copy_runtime

_IMAGE = {"inputs": {"image": [["n", 8, 8, 3], "uint8"]}, "labels": ["cat", "dog"]}
PACKAGES = zoo.classification.domain.DOMAIN.packages
_NORMALIZE = {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}


class Stored:
    """A file of an artifact in another format."""

    size = 4

    def __init__(self, *names: str) -> None:
        self.names = names or ("model.onnx",)

    def write(self, folder: Path) -> list[Path]:
        paths = [folder / name for name in self.names]
        for path in paths:
            path.write_bytes(b"onnx")
        return paths


def an_artifact(**config: Any) -> Artifact:
    return Artifact({"name": "pets", **_IMAGE, **config}, formats=(Stored(),))


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A node_modules with files in the place of ONNX Runtime's."""
    dist = tmp_path / "node_modules" / runtime_files.NAME / "dist"
    dist.mkdir(parents=True)
    for files in (WASM_FILES, WEBGPU_FILES):
        for name in files:
            (dist / name).write_text(name, encoding="utf-8")
            monkeypatch.setitem(files, name, digest(dist / name))
    return tmp_path / "node_modules"


def test_a_page_holds_the_model_its_manifest_and_the_runtime(packages: Path, tmp_path: Path) -> None:
    out, options = tmp_path / "page", PageOptions(packages, webgpu=False)
    write_page(an_artifact(), "classes", {"top": 5}, out, options)
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert {"index.html", "app.js", "sw.js", "style.css", "manifest.json", "model.onnx"} <= names
    assert {f"ort/{name}" for name in WASM_FILES} <= names and "ort/NOTICE.txt" in names
    assert not {f"ort/{name}" for name in WEBGPU_FILES} & names
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["module"] == "classes" and manifest["parameters"] == {"top": 5}
    assert manifest["models"]["model"]["bytes"] == 4
    worker = (out / "sw.js").read_text(encoding="utf-8")
    assert '"development"' not in worker
    write_page(
        an_artifact(), "classes", {"top": 4}, out, PageOptions(packages)
    )  # takes the place of the first
    assert (out / "sw.js").read_text(encoding="utf-8") != worker
    assert (out / "ort" / "ort.webgpu.min.mjs").is_file()


def test_a_page_of_a_pipeline_has_a_model_a_stage(packages: Path, tmp_path: Path) -> None:
    whole = Artifact({"name": "reader"}, stages={"detector": an_artifact(), "recognizer": an_artifact()})
    out = write_page(whole, "lines", {}, tmp_path / "page", PageOptions(packages))
    assert {path.name for path in out.glob("*.onnx")} == {"detector.onnx", "recognizer.onnx"}


def test_what_cannot_be_a_page(packages: Path, tmp_path: Path) -> None:
    options = PageOptions(packages)
    with pytest.raises(FormatError, match="no ONNX file") as error:
        write_page(Artifact(dict(_IMAGE)), "classes", {}, tmp_path / "page", options)
    assert "--format onnx" in str(error.value) and not (tmp_path / "page").exists()
    large = Artifact(dict(_IMAGE), formats=(Stored("model.onnx", "model.onnx.data"),))
    with pytest.raises(ConfigError, match="more than 2 GB"):
        write_page(large, "classes", {}, tmp_path / "page", options)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it", encoding="utf-8")
    with pytest.raises(FormatError, match="something that is no page"):
        write_page(an_artifact(), "classes", {}, tmp_path / "mine", options)
    assert (tmp_path / "mine" / "thesis.txt").is_file()


def test_the_runtime_of_a_node_modules_is_compared(packages: Path, tmp_path: Path) -> None:
    (packages / runtime_files.NAME / "dist" / "ort.wasm.min.mjs").write_text("another", encoding="utf-8")
    with pytest.raises(InputError, match="another file"):
        copy_runtime(tmp_path / "ort", packages)
    with pytest.raises(InputError, match="has no onnxruntime-web"):
        copy_runtime(tmp_path / "ort", tmp_path / "nothing")


def test_the_runtime_comes_out_of_the_archive_of_the_registry(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "ort.tgz"
    with tarfile.open(archive, "w:gz") as file:
        for name in WASM_FILES:
            info = tarfile.TarInfo(f"package/dist/{name}")
            info.size = len(name)
            file.addfile(info, io.BytesIO(name.encode()))
    monkeypatch.setattr(runtime_files, "_ARCHIVE", str(archive))
    copy_runtime(tmp_path / "ort", webgpu=False)
    assert {path.name for path in (tmp_path / "ort").iterdir()} == {*WASM_FILES, "NOTICE.txt"}


def test_without_a_network_the_error_names_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OAR_OFFLINE", "1")
    with pytest.raises(HubError, match=f"{runtime_files.NAME} .* cannot be had") as error:
        copy_runtime(tmp_path / "ort")
    assert "--node_modules" in str(error.value) and "OAR_OFFLINE" in str(error.value)


def test_transforms_have_all_of_their_fields() -> None:
    transforms = [{"type": "Resize", "size_hw": [8, 8]}, {"type": "CenterCrop", "size_hw": [4, 4]}]
    assert pages.page_transforms(an_artifact(transforms=transforms), PACKAGES) == [
        {"type": "Resize", "size_hw": [8, 8], "mode": "exact", "interpolation": "linear"},
        {"type": "CenterCrop", "size_hw": [4, 4], "fill": 0},
    ]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"transforms": [{"type": "RandomHorizontalFlip"}]}, "does not have this transform"),
        (
            {"transforms": [{"type": "Resize", "size_hw": [8, 8], "interpolation": "lanczos"}]},
            "interpolation",
        ),
        ({"transforms": [{"type": "ResizeShort", "short": [480, 512]}]}, "training alone"),
        ({"inputs": {"image": [["n", 8, 8, 1], "uint8"]}, "transforms": []}, "RGB images of 8 bits"),
        ({"inputs": {"image": [["n", 8, 8, 3], "float32"]}, "transforms": []}, "RGB images of 8 bits"),
    ],
)
def test_what_the_page_cannot_do_to_images(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        pages.page_transforms(an_artifact(**config), PACKAGES)


def test_each_domain_says_what_its_page_needs() -> None:
    boxes = detection.domain.describe_page(an_artifact(transforms=[]))
    assert boxes == {"transforms": [], "labels": ["cat", "dog"], "threshold": 0.5}
    classes = zoo.classification.domain.describe_page(an_artifact(transforms=[]))
    assert classes["threshold"] is None and classes["top"] == 5
    masks = segmentation.domain.describe_page(
        an_artifact(
            transforms=[], labels=["person", "background"], palette=[[0, 0, 0], [1, 2, 3]], inference={}
        )
    )
    assert masks["background"] == 1 and masks["palette"] == [[0, 0, 0], [1, 2, 3]]


def test_models_that_no_page_shows() -> None:
    with pytest.raises(ConfigError, match="no keypoints"):
        detection.domain.describe_page(an_artifact(pose={}, transforms=[]))
    slide = {"slide": {"crop_hw": [8, 8], "stride_hw": [8, 8]}}
    with pytest.raises(ConfigError, match="as a whole"):
        segmentation.domain.describe_page(an_artifact(transforms=[], palette=[], inference=slide))
    crop = [{"type": "CenterCrop", "size_hw": [4, 4]}]
    with pytest.raises(ConfigError, match="every pixel"):
        segmentation.domain.describe_page(an_artifact(transforms=crop, palette=[], inference={}))


def page_of_reader(*stages: str) -> dict[str, Any]:
    """What the manifest of the page of a reader says."""
    return json.loads(json.dumps(ocr.domain.describe_page(a_reader(*stages))))


def a_reader(*stages: str, **options: Any) -> Artifact:
    """An artifact that reads text, with the options of its recogniser or of its detector's postprocess."""
    detect = {"normalize": _NORMALIZE, "postprocess": {"box_type": options.pop("box_type", "quad")}}
    right_to_left = options.pop("right_to_left", False)
    symbols = {"characters": ["a", "b"], "space": True, "right_to_left": right_to_left}
    configs: dict[str, dict[str, Any]] = {
        "detector": {"options": detect},
        "recognizer": {"options": {"normalize": _NORMALIZE, **options}, **symbols},
        "orientation": {"options": {"normalize": _NORMALIZE}},
    }
    return Artifact({"name": "reader"}, stages={name: Artifact(configs.get(name, {})) for name in stages})


def test_the_page_of_a_reader_of_text() -> None:
    parameters = page_of_reader("detector", "recognizer", "orientation")
    assert parameters["recognizer"]["symbols"] == ["", "a", "b", " "]
    assert parameters["detector"]["size"]["limit_side"] == 960
    assert parameters["detector"]["postprocess"]["max_candidates"] == 1000
    assert parameters["orientation"] == {"size_hw": [48, 192], "thresh": 0.9, "batch": 16}
    assert page_of_reader("detector", "recognizer")["orientation"] is None


@pytest.mark.parametrize(
    ("artifact", "message"),
    [
        (a_reader("detector"), "finds and recognises"),
        (
            a_reader("detector", "recognizer", "recognizer2"),
            "does not have these stages: recognizer2|recognizer2",
        ),
        (a_reader("detector", "recognizer", "unwarp"), "unwarp"),
        (a_reader("detector", "recognizer", box_type="poly"), "curved text"),
        (a_reader("detector", "recognizer", right_to_left=True), "right to left"),
        (a_reader("detector", "recognizer", stretch=True, widths=[128]), "words of one size"),
    ],
)
def test_readers_that_no_page_has(artifact: Artifact, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ocr.domain.describe_page(artifact)


def test_the_command_refuses_what_has_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-c", "bigru_crf_pos_en", "--format", "web"]) == 2
    assert "models of this domain have no page" in capsys.readouterr().err
    assert main(["--model_dir", str(tmp_path), "--format", "onnx"]) == 2
    assert "only --format web" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="uint8 NHWC"):
        pages.write_web("lenet_mnist", tmp_path, onnx=OnnxOptions(layout="NCHW"))


def test_the_command_writes_the_page_of_an_artifact(
    packages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    artifact = Artifact(
        {"domain": "classification", "batch_size": 1, "transforms": [], "name": "pets", **_IMAGE},
        weights={"w": np.zeros(1, np.float32)},
        formats=(Stored(),),
    )
    folder = artifact.save(tmp_path / "pets")
    command = ["--model_dir", str(folder), "--format", "web", "--node_modules", str(packages)]
    assert main([*command, "--output_dir", str(tmp_path / "out")]) == 0
    manifest = json.loads((tmp_path / "out" / "pets_web" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["parameters"]["labels"] == ["cat", "dog"] and "wrote" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("name", ["sw", "worker"])
def test_workers_of_the_page_without_a_browser(name: str) -> None:
    file = Path(__file__).resolve().parents[5] / f"tools/web/test/{name}.test.mjs"
    done = subprocess.run(["node", "--test", str(file)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
