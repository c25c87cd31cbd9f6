"""paddle.vision: layouts of transforms and operations, and what models are made of."""

from __future__ import annotations

import functools
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from framework import hub, paddle
from framework.core.errors import ConfigError, HubError, InputError, ShapeError
from framework.interop.named_weights import named_weights
from framework.workflow.open.models import create_model

T, M, ops = paddle.vision.transforms, paddle.vision.models, paddle.vision.ops
PIXELS = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)
CHW = paddle.Tensor(np.moveaxis(PIXELS, -1, 0).astype(np.float32))


def test_to_tensor_puts_channels_first() -> None:
    made = T.Compose([T.Resize((3, 4)), T.ToTensor(), T.Normalize([0.5] * 3, [0.5] * 3)])(
        Image.fromarray(PIXELS)
    )
    assert made.shape == [3, 3, 4] and made.dtype == paddle.float32
    np.testing.assert_allclose(T.to_tensor(PIXELS).numpy(), np.moveaxis(PIXELS, -1, 0) / np.float32(255))
    assert T.to_tensor(PIXELS, "HWC").shape == [6, 8, 3]


def test_parts_end_with_the_image_and_are_drawn_for_labels_too() -> None:
    """As in Paddle 2.6.2; d2l cuts an image and its labels so."""
    np.testing.assert_array_equal(T.crop(PIXELS, 4, 2, 320, 480), PIXELS[4:, 2:])
    with pytest.raises(ShapeError):
        T.crop(PIXELS, 6, 0, 2, 2)
    labels = PIXELS[..., 0]
    part = T.RandomCrop((3, 4))._get_param(img=PIXELS, output_size=(3, 4))
    assert part[2:] == (3, 4) and 0 <= part[0] <= 3 and 0 <= part[1] <= 4
    np.testing.assert_array_equal(T.crop(PIXELS, *part)[..., 0], T.crop(labels, *part))


def test_one_number_normalizes_to_three_channels() -> None:
    """As in Paddle 2.6.2, also a gray image, whatever its form."""
    gray = PIXELS[..., 0]
    for image in (gray, gray[None], Image.fromarray(gray), paddle.Tensor(gray[None].astype(np.float32))):
        made = np.asarray(T.Normalize(0.5, 2.0)(image))
        np.testing.assert_array_equal(made, np.stack([(gray - np.float32(0.5)) / 2] * 3))
    assert np.shape(T.Normalize(0.5, 2.0, "HWC")(gray[..., None])) == (6, 8, 3)
    assert np.shape(T.Normalize([0.5], [2.0])(gray)) == (1, 6, 8)


@pytest.mark.parametrize(
    "call",
    [
        lambda image: T.crop(image, 1, 2, 3, 4),
        lambda image: T.center_crop(image, (2, 4)),
        T.hflip,
        T.vflip,
        lambda image: T.pad(image, (1, 2)),
        lambda image: T.RandomHorizontalFlip(1.0)(image),
        lambda image: T.erase(image, 1, 1, 2, 2, 0),
    ],
)
def test_a_tensor_is_changed_like_its_pixels(call: Any) -> None:
    of_pixels = call(PIXELS.astype(np.float32))
    np.testing.assert_allclose(call(CHW).numpy(), np.moveaxis(of_pixels, -1, 0), atol=1e-4)


# What 2.6.2 gives for its Tensors, which is not what it gives for arrays: sums of the channels of CHW / 255.
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: T.rotate(x, 90), [19.1726, 19.0667, 17.9216]),
        (lambda x: T.resize(x, (3, 5)), [7.5304, 8.34, 7.3467]),
        (lambda x: T.adjust_brightness(x, 1.7), [34.6867, 36.8133, 33.3933]),
        (lambda x: T.adjust_contrast(x, 1.7), [23.9366, 27.8613, 24.3016]),
        (lambda x: T.adjust_hue(x, -0.45), [25.9263, 24.031, 25.2737]),
        (lambda x: T.affine(x, 30, [1, 2], 0.8, [10, -5], "bilinear", 0.5), [23.7864, 25.1558, 23.3066]),
        (lambda x: T.rotate(x, -33, "bilinear", True, None, [1, 2, 3]), [74.3804, 128.5373, 178.3822]),
        (lambda x: T.to_grayscale(x, 3), [25.7342, 25.7342, 25.7342]),
        (lambda x: T.pad(x, (1, 2), 0.5), [50.6431, 52.5137, 50.6039]),
        (lambda x: T.erase(x, 1, 2, 3, 2, 0.5), [25.6, 26.5725, 25.3804]),
    ],
)
def test_a_tensor_has_the_numbers_of_paddle_with_a_gradient_and_in_a_program(
    call: Any, expected: list[float]
) -> None:
    image = CHW / 255
    sums = call(image).numpy().sum((-2, -1))
    np.testing.assert_allclose(sums, expected, rtol=1e-4)
    np.testing.assert_allclose(call(paddle.stack([image] * 2)).numpy().sum((-2, -1)), [sums] * 2, rtol=1e-5)
    image.stop_gradient = False
    call(image).sum().backward()
    assert image.grad is not None and np.isfinite(image.grad.numpy()).all()
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program()) as _:
            result = call(paddle.static.data("x", image.shape))
            (values,) = paddle.static.Executor().run(feed={"x": image.numpy()}, fetch_list=[result])
    finally:
        paddle.disable_static()
    np.testing.assert_allclose(values.sum((-2, -1)), sums, rtol=1e-4)


@pytest.mark.parametrize(
    "call",
    [
        lambda: T.hflip(1),
        lambda: T.to_tensor(1),
        lambda: T.resize(PIXELS, "1"),
        lambda: T.resize(CHW, {1: 1}),
        lambda: T.pad(PIXELS, "1"),
        lambda: T.pad(CHW, 1, {}),
        lambda: T.pad(PIXELS, 1, padding_mode=-1),
    ],
)
def test_another_kind_is_a_type_error(call: Any) -> None:
    with pytest.raises(TypeError):
        call()


def test_a_variable_of_unknown_size_is_refused_and_a_draw_for_a_program_is_said() -> None:
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program()):
            with pytest.raises(NotImplementedError, match="must be known"):
                T.Resize(3)(paddle.static.data("x", [3, -1, -1]))
            with pytest.warns(UserWarning, match="draws while the static program is built"):
                T.RandomCrop(4)(paddle.static.data("y", [3, 6, 8]))
    finally:
        paddle.disable_static()


def test_erase_in_place_changes_the_tensor() -> None:
    tensor = paddle.Tensor(np.ones((1, 3, 3), np.float32))
    assert T.erase(tensor, 0, 0, 2, 2, paddle.Tensor(np.zeros((1, 1, 1), np.float32)), inplace=True) is tensor
    assert tensor.numpy().sum() == 5


def test_image_backends(tmp_path: Any) -> None:
    path = tmp_path / "image.png"
    Image.fromarray(PIXELS).save(path)
    np.testing.assert_array_equal(paddle.vision.image_load(path, "cv2"), PIXELS[..., ::-1])
    np.testing.assert_array_equal(np.asarray(paddle.vision.image_load(path)), PIXELS)
    paddle.vision.set_image_backend("tensor")
    try:
        assert paddle.vision.image_load(path).shape == [3, 6, 8]
    finally:
        paddle.vision.set_image_backend("pil")
    with pytest.raises(ValueError, match="backend"):
        paddle.vision.set_image_backend("nope")


def test_regions_are_pooled_channels_first() -> None:
    x = paddle.Tensor(np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4))
    x.stop_gradient = False
    boxes, counts = paddle.to_tensor([[0.0, 0, 3, 3]]), paddle.to_tensor([1])
    pooled = ops.roi_pool(x, boxes, counts, 2)
    np.testing.assert_array_equal(pooled.numpy(), [[[[5, 7], [13, 15]], [[21, 23], [29, 31]]]])
    pooled.backward()
    assert x.grad is not None and x.grad.numpy().sum() == 8
    assert ops.RoIAlign(2)(x, boxes, counts).shape == [1, 2, 2, 2]
    wide = paddle.concat([x] * 2, axis=1)
    for layer, function in (
        (ops.RoIAlign, ops.roi_align),
        (ops.RoIPool, ops.roi_pool),
        (ops.PSRoIPool, ops.psroi_pool),
    ):
        expected = function(wide, boxes, counts, 2, 0.5).numpy()
        np.testing.assert_allclose(layer(2, 0.5)(wide, boxes, counts).numpy(), expected)


def test_convolution_normalisation_activation() -> None:
    block = ops.ConvNormActivation(3, 8, 5, stride=2, groups=1)
    assert list(block.state_dict())[:2] == ["0.weight", "1.weight"] and len(block) == 3
    assert block(paddle.ones([1, 3, 7, 7])).shape == [1, 8, 4, 4]
    bare = ops.ConvNormActivation(3, 8, norm_layer=None, activation_layer=None)
    assert list(bare.state_dict()) == ["0.weight", "0.bias"]


def test_deformable_convolution_without_offsets_is_a_convolution() -> None:
    layer = ops.DeformConv2D(2, 3, 3, padding=1)
    x = paddle.Tensor(np.random.default_rng(0).standard_normal((1, 2, 5, 5)).astype(np.float32))
    plain = paddle.nn.functional.conv2d(x, layer.weight, layer.bias, padding=1)
    np.testing.assert_allclose(layer(x, paddle.zeros([1, 18, 5, 5])).numpy(), plain.numpy(), atol=1e-5)
    grouped = ops.DeformConv2D(64, 64, 3, groups=4).weight.numpy()
    assert grouped.shape == (64, 16, 3, 3) and abs(grouped.std() - (2 / (64 * 9)) ** 0.5) < 2e-3


def test_nms_keeps_the_best_of_each_category() -> None:
    boxes = paddle.to_tensor([[0.0, 0, 2, 2], [0, 0, 2, 2.1], [5, 5, 6, 6]])
    scores = paddle.to_tensor([0.5, 0.9, 0.1])
    assert ops.nms(boxes, 0.5, scores).numpy().tolist() == [1, 2]
    labels = paddle.to_tensor([0, 1, 1])
    kept = ops.nms(boxes, 0.5, scores, labels, [0, 1], top_k=2)
    assert kept.numpy().tolist() == [1, 0] and kept.dtype == paddle.int64


def test_matrix_nms_gives_what_is_asked_for() -> None:
    boxes, scores = paddle.to_tensor([[[0.0, 0, 4, 4]]]), paddle.to_tensor([[[0.9], [0.8]]])
    rows, counts, index = ops.matrix_nms(
        boxes, scores, 0.1, 0.0, 5, 5, background_label=-1, return_index=True
    )
    assert rows.numpy()[:, 0].tolist() == [0, 1] and counts.numpy().tolist() == [2]
    assert index.numpy().tolist() == [[0], [0]]
    assert ops.matrix_nms(boxes, scores, 0.1, 0.0, 5, 5, return_rois_num=False)[1:] == (None, None)


def test_files(tmp_path: Path) -> None:
    pixels = np.full((6, 9, 3), (200, 20, 20), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.jpg")
    data = ops.read_file(tmp_path / "a.jpg")
    assert data.dtype == paddle.uint8 and data.shape == [(tmp_path / "a.jpg").stat().st_size]
    decoded = ops.decode_jpeg(data)
    assert np.abs(decoded.numpy().astype(int) - np.moveaxis(pixels, -1, 0)).max() < 4
    assert ops.decode_jpeg(data, "gray").shape == [1, 6, 9]
    gray, png = io.BytesIO(), io.BytesIO()
    Image.fromarray(pixels[..., 0]).save(gray, "JPEG")
    Image.fromarray(pixels).save(png, "PNG")
    encoded, other = (paddle.Tensor(np.frombuffer(file.getvalue(), np.uint8)) for file in (gray, png))
    assert ops.decode_jpeg(encoded).shape == [1, 6, 9] and ops.decode_jpeg(encoded, "rgb").shape == [3, 6, 9]
    for damaged, message in ((data[:-2], "cut off"), (other, "not the bytes of a JPEG")):
        with pytest.raises(InputError, match=message):
            ops.decode_jpeg(damaged)
    with pytest.raises(ConfigError, match="unchanged"):
        ops.decode_jpeg(data, "hsv")
    with pytest.raises(InputError, match="there is no such"):
        ops.read_file(tmp_path / "b.jpg")


def test_proposals_go_to_levels_and_back() -> None:
    sides = np.array([[0, 0, 10, 10], [0, 0, 300, 300], [0, 0, 40, 40]], np.float32)
    levels, restore, numbers = ops.distribute_fpn_proposals(
        paddle.Tensor(sides), 2, 5, 4, 224, rois_num=paddle.to_tensor([3])
    )
    joined = np.concatenate([level.numpy() for level in levels])
    np.testing.assert_array_equal(joined[restore.numpy()[:, 0]], sides)
    assert [int(number.item()) for number in numbers] == [2, 0, 1, 0]


# Numbers of parameters as published (torchvision's or the papers'), at 1000 classes.
@pytest.mark.parametrize(
    ("make", "count"),
    [
        (M.squeezenet1_1, 1_235_496),
        (M.shufflenet_v2_x0_5, 1_366_792),
        (M.mobilenet_v2, 3_504_872),
        (M.densenet121, 7_978_856),
        (M.resnet18, 11_689_512),
    ],
)
def test_models_have_their_parameters(make: Any, count: int) -> None:
    with paddle.LazyGuard():
        model = make()
    trained = [p for p in model.parameters() if not p.stop_gradient]
    assert sum(int(np.prod(p.shape)) for p in trained) == count


def test_a_model_trains_and_takes_another_head() -> None:
    net = M.resnet18(num_classes=0)
    assert "fc.weight" not in net.state_dict() and "layer4.1.bn2._variance" in net.state_dict()
    with pytest.raises(HubError):
        M.mobilenet_v1(pretrained=True, scale=0.25)
    with pytest.raises(ShapeError):
        M.ShuffleNetV2(scale=3.0)
    lenet = M.LeNet()
    lenet(paddle.zeros([2, 1, 28, 28])).backward()
    assert lenet.fc[2].bias.grad.numpy().tolist() == [2.0] * 10


# Classes of the zoo whose weights have the names of paddle.vision, with one function of each of Paddle's.
NETWORKS = (
    *("alexnet", "densenet121", "densenet161", "densenet264", "googlenet", "inception_v3", "mobilenet_v2"),
    *("shufflenet_v2_x0_25", "shufflenet_v2_x1_5", "shufflenet_v2_x2_0", "shufflenet_v2_swish"),
    *("squeezenet1_0", "squeezenet1_1", "vgg11"),
)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_on_tensors_have_the_arrays_of_the_zoo(name: str) -> None:
    with paddle.LazyGuard():
        state = getattr(M, name)().state_dict()
    variant = "mobilenetv2_x1_0" if name == "mobilenet_v2" else name
    assert {key: tuple(value.shape) for key, value in state.items()} == create_model(variant).state_shapes()


@pytest.mark.parametrize(
    ("net", "variant", "gain"),
    [
        (functools.partial(M.mobilenet_v1, scale=0.25), "mobilenetv1_x0_25", 1.9),
        (functools.partial(M.mobilenet_v2, scale=0.25), "mobilenetv2_x0_25", 1.9),
        (M.shufflenet_v2_swish, "shufflenet_v2_swish", 1.7),
        (M.squeezenet1_1, "squeezenet1_1", 1.0),
    ],
)
def test_networks_on_tensors_compute_what_the_zoo_computes(net: Any, variant: str, gain: float) -> None:
    tensors, ours = net(num_classes=5), create_model(variant, num_classes=5).eval()
    made = named_weights({key: tuple(value.shape) for key, value in tensors.state_dict().items()})
    # Larger kernels, so that the outputs depend on the image.
    state = {key: value * gain if value.ndim == 4 else value for key, value in made.items()}
    tensors.set_state_dict(state)
    tensors.eval()
    ours.set_state_dict(state)
    x = np.random.default_rng(0).standard_normal((2, 64, 96, 3)).astype(np.float32)
    want = np.asarray(ours(x))
    assert np.ptp(want, axis=0).max() > 1e-3
    np.testing.assert_allclose(tensors(paddle.to_tensor(x.transpose(0, 3, 1, 2))).numpy(), want, atol=1e-4)


def test_pretrained_takes_what_the_hub_has(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OAR_HOME", str(tmp_path))
    monkeypatch.setenv("OAR_OFFLINE", "1")
    monkeypatch.setattr("framework.paddle.vision.models.parts.WEIGHTS_HOME", tmp_path / "paddle")
    with pytest.raises(HubError, match=r"^squeezenet1_1_imagenet \(weights\)[\s\S]*SqueezeNet1_1_pretrained"):
        M.squeezenet1_1(pretrained=True)
    there = M.squeezenet1_1()
    paddle.save(there.state_dict(), str(tmp_path / "weights/squeezenet1_1_imagenet/weights.pdparams"))
    made = M.squeezenet1_1(pretrained=True)
    np.testing.assert_array_equal(made._conv9.weight.numpy(), there._conv9.weight.numpy())
    assert M.squeezenet1_1.__name__ == "squeezenet1_1" and M.vgg16.__module__ == M.__name__


def test_every_network_of_paddle_has_weights_where_paddle_publishes_them() -> None:
    published = [entry for entry in hub.entries("zoo").values() if entry.files["weights"].sources[0].md5]
    assert len(published) == 36


def test_datasets_are_those_of_paddle_io() -> None:
    """Model.fit makes batches of what is a Dataset."""
    assert issubclass(paddle.vision.datasets.MNIST, paddle.io.Dataset)
    assert not issubclass(list, paddle.io.Dataset)


def test_what_packages_import_of_the_transforms() -> None:
    # Values of Paddle 2.6.2.
    from framework.paddle.vision.transforms.transforms import _check_input, _get_image_size

    assert _get_image_size(np.zeros((7, 5, 3))) == _get_image_size(paddle.zeros([3, 7, 5])) == (5, 7)
    assert _check_input(0.4, "brightness") == [0.6, 1.4] and _check_input(2.0, "brightness") == [0, 3.0]
    assert _check_input(0.3, "hue", 0, (-0.5, 0.5), False) == [-0.3, 0.3] and _check_input(0, "hue") is None
    wrong: list[tuple[Any, type[Exception]]] = [(-1, ValueError), ((3, 1), ValueError), ("x", TypeError)]
    for value, kind in wrong:
        with pytest.raises(kind, match="hue"):
            _check_input(value, "hue")
