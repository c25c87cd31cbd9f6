import importlib.util
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import framework
from framework import nn
from framework.config import build
from framework.core.errors import ConfigError, FormatError, HubError, InputError, WeightError
from framework.core.torch_state import TorchState
from framework.engine.experiment import Pretrained
from framework.interop import load_program, weighted_ops, write_safetensors
from framework.interop.named_weights import named_weights
from framework.io.checkpoint import CheckpointStore
from framework.nn.reparam import deploy_state
from framework.workflow.domain.weights import (
    is_torch,
    load_pretrained,
    load_state_into,
    load_weights_into,
    resolve_weights,
)
from ocr.models.dbnet import DBNet, DBNetConfig
from ocr.models.text_recognizer import TextRecognizer, TextRecognizerConfig
from zoo.contracts import build_backbone
from zoo.vision.lenet import LeNet, LeNetConfig
from zoo.vision.pp_lcnet import PPLCNetConfig
from zoo.vision.resnet import ResNetConfig

TINY_DET, TINY_REC = "PP-OCRv6_tiny_det", "PP-OCRv6_tiny_rec"
SHARED = Path(os.environ.get("OAR_SHARED", Path(__file__).resolve().parents[5] / "shared"))


def shared(name: str) -> Path:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path} is not there: set OAR_SHARED to the folder of shared data and weights")
    return path


def same(model: nn.Layer, state: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(value, state[name]) for name, value in model.state_dict().items())


def test_a_training_checkpoint_by_name(tmp_path: Path) -> None:
    model = DBNet(DBNetConfig(TINY_DET))
    state = named_weights(model.state_shapes())
    write_safetensors(tmp_path / "det.safetensors", state)
    assert load_weights_into(model, tmp_path / "det.safetensors") is model
    assert same(model, state)


def test_a_training_checkpoint_into_a_deploy_form(tmp_path: Path) -> None:
    trained = DBNet(DBNetConfig(TINY_DET))
    state = named_weights(trained.state_shapes())
    trained.set_state_dict(state)
    write_safetensors(tmp_path / "det.safetensors", state)
    deployed = load_weights_into(DBNet(DBNetConfig(TINY_DET, deploy=True)), tmp_path / "det.safetensors")
    assert same(deployed, deploy_state(trained))


def test_a_deploy_checkpoint_into_a_deploy_form() -> None:
    model = TextRecognizer(TextRecognizerConfig(TINY_REC, num_classes=9, deploy=True))
    state = named_weights(model.state_shapes())
    assert same(load_state_into(model, state), state)


@pytest.mark.parametrize("deploy", [False, True])
def test_training_only_entries_may_be_left_over(deploy: bool) -> None:
    guided = TextRecognizer(TextRecognizerConfig(TINY_REC, num_classes=9, guided=True))
    state = named_weights(guided.state_shapes())
    model = TextRecognizer(TextRecognizerConfig(TINY_REC, num_classes=9, deploy=deploy))
    load_state_into(model, state)
    np.testing.assert_array_equal(
        model.state_dict()["head.ctc_head.fc2.bias"], state["head.ctc_head.fc2.bias"]
    )


def test_other_entries_may_not() -> None:
    model = TextRecognizer(TextRecognizerConfig(TINY_REC, num_classes=9))
    state = named_weights(model.state_shapes())
    with pytest.raises(WeightError, match=r"1 unexpected: head.extra.weight"):
        load_state_into(model, {**state, "head.extra.weight": np.zeros(1)})
    state.pop("head.ctc_head.fc2.bias")
    with pytest.raises(WeightError, match=r"1 missing: head.ctc_head.fc2.bias"):
        load_state_into(model, state)


def rapidocr_model(name: str) -> Path:
    spec = importlib.util.find_spec("rapidocr")
    if spec is None or spec.origin is None:
        pytest.skip("rapidocr is not installed: its wheel carries the official models")
    return Path(spec.origin).parent / "models" / name


def test_the_official_detector_has_our_parameters_and_no_others() -> None:
    path = rapidocr_model("PP-OCRv6_det_small.onnx")
    held = sum(array.size for op in weighted_ops(load_program(path)) for array in op.arrays.values())
    model = DBNet(DBNetConfig("PP-OCRv6_small_det", deploy=True))
    assert held == sum(p.size for p in model.parameters()) == 2453353


def test_the_official_recogniser_has_three_normalisations_that_ours_folds() -> None:
    ops = weighted_ops(load_program(rapidocr_model("PP-OCRv6_rec_small.onnx")))
    norms = [op for op in ops if op.kind == "batch_norm"]
    held = sum(array.size for op in ops for array in op.arrays.values())
    model = TextRecognizer(TextRecognizerConfig("PP-OCRv6_small_rec", deploy=True))
    assert len(norms) == 3 and held - 3 * 3 * 120 == sum(p.size for p in model.parameters()) == 5266550


def test_the_wrong_variant_is_refused_with_both_sides() -> None:
    with pytest.raises(WeightError) as error:
        load_weights_into(
            DBNet(DBNetConfig(TINY_DET, deploy=True)), rapidocr_model("PP-OCRv6_det_small.onnx")
        )
    message = str(error.value)
    assert "not a DBNet" in message and "operation 1 of 85" in message
    assert "conv backbone.stem.stem1.conv: weight (16, 3, 3, 3)" in message and "(24, 3, 3, 3)" in message


def test_the_official_tiny_detector_gives_the_recorded_output() -> None:
    folder = shared("weights/ppocr_v6_tiny_det")
    model = load_weights_into(DBNet(DBNetConfig(TINY_DET, deploy=True)), folder / "det.onnx")
    model.eval()
    with np.load(folder / "ref_io.npz") as data:
        x, want = data["in:x"].astype(np.float32), data["out:fetch_name_0"]
    out = np.asarray(model(x.transpose(0, 2, 3, 1)).probability)
    assert want.max() > 0.01
    np.testing.assert_allclose(out, want[:, 0], rtol=0, atol=1e-4)


def test_the_official_detectors_on_a_receipt_against_onnx_runtime() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    from framework.vision.image import read

    receipt = read(shared("data/sroie/test/img/033.jpg"))[200:712, 100:612]
    x = ((receipt / 255.0 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]).astype(np.float32)[None]
    for variant, path in (
        ("PP-OCRv6_small_det", rapidocr_model("PP-OCRv6_det_small.onnx")),
        (TINY_DET, shared("weights/ppocr_v6_tiny_det/det.onnx")),
    ):
        model = load_weights_into(DBNet(DBNetConfig(variant, deploy=True)), path)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        want = session.run(None, {"x": x.transpose(0, 3, 1, 2)})[0][:, 0]
        assert (want > 0.5).mean() > 0.01
        # Against float64 ONNX Runtime itself is off by up to 1.4e-4 here, this by 4e-6.
        np.testing.assert_allclose(np.asarray(model.eval()(x).probability), want, rtol=0, atol=2e-4)


def test_the_official_recogniser_on_lines_of_text_against_onnx_runtime() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    from framework.vision.image import read, resize

    path = rapidocr_model("PP-OCRv6_rec_small.onnx")
    model = load_weights_into(TextRecognizer(TextRecognizerConfig(deploy=True)), path)
    model.eval()
    batch = np.zeros((3, 48, 320, 3), np.float32)
    for line, number in zip(batch, (1, 2, 3)):
        image = read(shared(f"data/ppocr_imgs/imgs_words/ch/word_{number}.jpg"))
        width = min(320, -(-48 * image.shape[1] // image.shape[0]))
        line[:, :width] = resize(image, (48, width)) / 127.5 - 1
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    want = session.run(None, {"x": batch.transpose(0, 3, 1, 2)})[0]
    assert (want.argmax(-1) > 0).sum() > 20
    np.testing.assert_allclose(np.asarray(jax.nn.softmax(model(batch))), want, rtol=0, atol=1e-4)


# -- checkpoints, torch, pretrained ------------------------------------------------------------------------------------


def lenet(classes: int = 10) -> LeNet:
    return LeNet(LeNetConfig(classes))


def test_a_checkpoint_is_loaded_with_its_average(tmp_path: Path) -> None:
    state = {name: np.asarray(value) for name, value in lenet().state_dict().items()}
    rest = {"ema/weight": np.float32(0.5), "ema/average/fc.2.bias": np.full(10, 3.0, np.float32)}
    CheckpointStore(tmp_path / "checkpoints").save(3, state, rest, {"labels": []}, best=True)
    for path in (tmp_path, resolve_weights(tmp_path)):
        model = load_weights_into(lenet(), path)
        assert np.array_equal(model.state_dict()["fc.2.bias"], np.full(10, 6.0))
        assert np.array_equal(model.state_dict()["fc.1.bias"], state["fc.1.bias"])


@pytest.mark.parametrize("name", ["inference.pdmodel", "inference.json", "__model__"])
def test_a_folder_that_paddle_exported_to_means_its_program(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    (tmp_path / "inference.yml").touch()
    assert resolve_weights(tmp_path) == resolve_weights(str(tmp_path)) == tmp_path / name


def test_torchs_conventions_are_recognised() -> None:
    model = lenet()
    state = {name: np.asarray(value) for name, value in model.state_dict().items()}
    turned = {name: value.T if value.ndim == 2 else value for name, value in state.items()}
    assert not is_torch(state, model) and is_torch(turned, model)
    assert is_torch({"bn.running_mean": np.zeros(2)}, model)
    other = load_state_into(lenet(), turned)
    assert all(np.array_equal(value, state[name]) for name, value in other.state_dict().items())


SQUARE = Path(__file__).resolve().parents[5] / "docs" / "examples" / "square.pth"


class Square(nn.Layer):
    """Its only matrix has as many rows as columns, so its shape does not say which way round it is."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return self.fc(x)


@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
def test_a_square_matrix_of_torch_is_turned(suffix: str, tmp_path: Path) -> None:
    """torch computes x @ weight.T + bias; the file of torch 2.13 has weight = arange(9).reshape(3, 3)."""
    state = framework.load(SQUARE)
    assert isinstance(state, TorchState)
    path = SQUARE
    if suffix == "safetensors":  # as transformers and timm write it
        path = tmp_path / "model.safetensors"
        write_safetensors(path, state, {"format": "pt"})
    for net in (load_weights_into(Square(), path), Square()):
        load_pretrained(net, str(path))
        np.testing.assert_array_equal(net(np.eye(3, dtype=np.float32)[:1]), [[0.5, 2.0, 8.0]])
    with pytest.raises(
        WeightError, match=r"Square: these weights are torch's[\s\S]*fc\.weight[\s\S]*load_pretrained"
    ):
        Square().set_state_dict(framework.load(path))


def test_one_of_ours_is_not(tmp_path: Path) -> None:
    net = Square()
    framework.save(net.state_dict(), tmp_path / "a.safetensors")
    other = load_weights_into(Square(), tmp_path / "a.safetensors")
    np.testing.assert_array_equal(other.fc.weight, net.fc.weight)


def test_torchs_state_is_a_pytree() -> None:
    doubled = jax.tree.map(lambda array: 2 * array, framework.load(SQUARE))
    assert isinstance(doubled, TorchState) and doubled["fc.bias"].tolist() == [1.0, -2.0, 4.0]


def test_pretrained_takes_what_names_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OAR_OFFLINE", "1")
    source = lenet()
    framework.save(source.state_dict(), tmp_path / "a.pdparams")
    for spec in (tmp_path / "a.pdparams", str(tmp_path / "a.pdparams")):
        net = lenet()
        assert load_pretrained(net, spec) == []
        assert np.array_equal(net.state_dict()["fc.1.bias"], source.state_dict()["fc.1.bias"])
    net = build(PPLCNetConfig("pplcnet_x0_25", num_classes=10))
    load_pretrained(net, "pp_lcnet_x0_25_clothing")
    assert np.asarray(net.fc.bias).any()
    with pytest.raises(
        HubError, match=r"no weights of this name[\s\S]*'pp_lcnet_x0_25_cloth'[\s\S]*did you mean"
    ):
        load_pretrained(net, "pp_lcnet_x0_25_cloth")
    with pytest.raises(FormatError, match="empty"):
        (tmp_path / "b.pth").touch()
        load_pretrained(net, str(tmp_path / "b.pth"))
    with pytest.raises(InputError, match=r"load_pretrained[\s\S]*a dict[\s\S]*set_state_dict"):
        load_pretrained(net, {"a": np.zeros(1)})  # type: ignore[arg-type]


@pytest.mark.parametrize("project_first", [False, True])
def test_resnet18_takes_the_form_of_its_weights(project_first: bool) -> None:
    """torchvision's and paddle.vision's have no projection in the first block, PaddleClas's have one."""
    source = build(ResNetConfig("resnet18", 2, project_first=project_first))
    state = named_weights(source.state_shapes())
    net = load_state_into(build(ResNetConfig("resnet18", 2, project_first=not project_first)), state)
    assert list(net.state_shapes()) == list(source.state_shapes()) and net.config == source.config
    model = Detector()
    model.backbone = build_backbone(ResNetConfig("resnet18", project_first=not project_first))
    inner = {f"backbone.{name}": value for name, value in state.items() if not name.startswith("fc.")}
    load_state_into(
        model, {**inner, "head.weight": np.ones((4, 2), np.float32), "head.bias": np.ones(2, np.float32)}
    )
    assert model.backbone.config.project_first is project_first


def test_pretrained_weights_but_for_what_is_skipped(tmp_path: Path) -> None:
    source = lenet()
    write_safetensors(tmp_path / "a.safetensors", {k: np.asarray(v) for k, v in source.state_dict().items()})
    model = lenet(3)
    fresh = np.asarray(model.state_dict()["fc.2.weight"])
    assert load_pretrained(model, tmp_path / "a.safetensors", r"^fc\.2") == ["fc.2.weight", "fc.2.bias"]
    assert np.array_equal(model.state_dict()["fc.2.weight"], fresh)
    assert np.array_equal(model.state_dict()["fc.1.weight"], source.state_dict()["fc.1.weight"])
    with pytest.raises(WeightError, match=r"fc\.2\.bias: ours \(3,\), theirs \(10,\)"):
        load_pretrained(lenet(3), tmp_path / "a.safetensors")
    with pytest.raises(WeightError, match="no parameter is skipped"):
        load_pretrained(lenet(3), tmp_path / "a.safetensors", "head")


class Detector(nn.Layer):
    """A classifier without its head, and a head of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = build_backbone(PPLCNetConfig("pplcnet_x0_25"))
        self.head = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return x


def test_pretrained_weights_for_a_part(tmp_path: Path) -> None:
    whole = build(PPLCNetConfig("pplcnet_x0_25", num_classes=3))
    state = {name: np.full(shape, 0.5, np.float32) for name, shape in whole.state_shapes().items()}
    framework.save(state, tmp_path / "a.safetensors")
    model = Detector()
    before = np.asarray(model.head.weight)
    assert load_pretrained(model, tmp_path / "a.safetensors", into="backbone") == []
    assert all((np.asarray(value) == 0.5).all() for value in model.backbone.state_dict().values())
    assert np.array_equal(model.head.weight, before)
    with pytest.raises(WeightError, match="no such part") as caught:
        load_pretrained(model, tmp_path / "a.safetensors", into="bakbone")
    assert "'bakbone'" in str(caught.value) and "backbone, head" in str(caught.value)
    del state[next(name for name in state if name.endswith("conv.weight"))]
    framework.save(state, tmp_path / "b.safetensors")
    with pytest.raises(WeightError, match="1 missing"):
        load_pretrained(model, tmp_path / "b.safetensors", into="backbone")


class _Detector(nn.Layer):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4))
        self.head = nn.Linear(4, classes)


def test_what_fits_of_a_detector_or_of_its_backbone(tmp_path: Path) -> None:
    """As PaddleDetection's pretrain_weights: a detector of other classes, and weights of a backbone alone."""
    trained, model = _Detector(80), _Detector(3)
    framework.save(trained.state_dict(), tmp_path / "coco.safetensors")
    framework.save(trained.backbone.state_dict(), tmp_path / "imagenet.safetensors")
    framework.save({"x": np.zeros(2, np.float32)}, tmp_path / "other.safetensors")
    assert load_pretrained(model, tmp_path / "coco.safetensors", partial=True) == ["head.weight", "head.bias"]
    assert same(model.backbone, {k: np.asarray(v) for k, v in trained.backbone.state_dict().items()})
    model = _Detector(80)
    before = np.asarray(model.head.weight)
    left = load_pretrained(model, tmp_path / "imagenet.safetensors", partial=True)
    assert left == ["head.weight", "head.bias"] and np.array_equal(model.head.weight, before)
    assert same(model.backbone, {k: np.asarray(v) for k, v in trained.backbone.state_dict().items()})
    with pytest.raises(
        WeightError, match=r"nothing of these weights fits the model\n  received: 1 entries such as x"
    ):
        load_pretrained(model, tmp_path / "other.safetensors", partial=True)
    with pytest.raises(
        ConfigError, match=r"`partial` takes what fits\n  received: skip None, into 'backbone'"
    ):
        Pretrained("a", into="backbone", partial=True)


def test_parts_that_are_tried_are_not_announced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Blocks that bear the names of a file's components are no wrapped models."""
    trained = nn.Sequential(
        *(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)) for _ in range(3))
    )
    model = nn.Sequential(*trained.children(), nn.Linear(4, 2))
    framework.save(trained.state_dict(), tmp_path / "blocks.safetensors")
    with caplog.at_level("INFO", logger="oar"):
        left = load_pretrained(model, tmp_path / "blocks.safetensors", partial=True)
    assert left == ["3.weight", "3.bias"] and "left out" not in caplog.text
    framework.save(
        {f"backbone.{k}": v for k, v in trained.state_dict().items()} | {"fc.bias": np.zeros(2)},
        tmp_path / "inside.safetensors",
    )
    with caplog.at_level("INFO", logger="oar"):
        load_pretrained(trained, tmp_path / "inside.safetensors", partial=True)
    assert caplog.text.count("the weights are those below 'backbone.'; 1 others are left out") == 1
