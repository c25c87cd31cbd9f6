"""From images to masks, with a program whose classes are the brightest channel of each pixel."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import segmentation
from framework import nn
from framework.core.errors import ConfigError, FormatError, InputError
from framework.engine.experiment import Data, Experiment, ExportOptions, Input, PredictOptions
from framework.export import Artifact, TensorSpec
from framework.export.program import lower_layer
from framework.vision import image as vision_image
from framework.vision.sample_transforms.crop import CenterCrop
from framework.vision.sample_transforms.pad import PadToMultiple
from framework.vision.sample_transforms.resize import Resize
from framework.workflow import open_predictor
from framework.workflow.export.export import with_input_shape
from framework.workflow.open.artifacts import DomainArtifact
from segmentation import palettes
from segmentation.domain import DOMAIN, prepare_export
from segmentation.tasks import SemanticSegmentation
from segmentation.test_time_augmentation import Slide, TestTimeAugmentation

RNG = np.random.default_rng(0)
WHOLE, FILL = TestTimeAugmentation(), (PadToMultiple(32),)


class Brightest(nn.Layer):
    """Scores are the channels."""

    def __init__(self, inference):
        super().__init__()
        self.inference = inference

    def forward(self, images):
        return self.inference.on_device(lambda x: x.astype(jnp.float32), images)


def artifact(
    inference=WHOLE, transforms=(), shape=("n", "4*h", "4*w", 3), dtype="uint8", exported=None, **changes
):
    program, weights = lower_layer(
        Brightest(inference).eval(), {"image": TensorSpec(shape, dtype)}, after=lambda out: out
    )
    slide = None if exported is None or exported.slide is None else exported.slide
    shown = exported or inference
    config = {
        "domain": "segmentation",
        "name": "brightest",
        "transforms": list(transforms),
        "batch_size": 2,
        "labels": ["red", "green", "blue"],
        "palette": palettes.voc(3).tolist(),
        "inference": {
            "scales": list(shown.scales),
            "flip": shown.flip,
            "slide": slide and {"crop_hw": list(slide.crop_hw), "stride_hw": list(slide.stride_hw)},
        },
        "bf16_verified": False,
    }
    return Artifact({**config, **changes}, {"float32": program}, weights)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    fill = {"type": "PadToMultiple", "multiple": 4, "per_octave": 1, "fill": 127}
    return artifact(transforms=[fill]).save(tmp_path_factory.mktemp("artifacts") / "brightest")


def noise(height, width):
    return RNG.permutation(height * width * 3).reshape(height, width, 3).astype(np.uint8)


def test_labels_are_of_the_size_of_the_image(folder):
    segment = segmentation.predictor(folder)
    for size in [(1, 1), (7, 9), (16, 8)]:
        image = noise(*size)
        found = segment(image)
        assert found.size_hw == size and found.labels.dtype == np.uint8
        np.testing.assert_array_equal(found.labels, image.argmax(-1))
        assert set(found.class_pixels) <= {"red", "green", "blue"}


def test_a_list_gives_a_list_and_few_programs(folder):
    segment = segmentation.predictor(folder)
    images = [noise(int(h), int(w)) for h, w in RNG.integers(1, 33, (40, 2))]
    results = segment(images)
    assert isinstance(results, list)
    for image, found in zip(images, results):
        np.testing.assert_array_equal(found.labels, image.argmax(-1))
    # Sides up to 32 are filled up to 4, 8, 16 or 32, in batches of two and alone.
    assert segment.runner.engine.compile_count <= 4 * 4 * 2


def test_windows_give_what_the_whole_gives():
    exported = TestTimeAugmentation((0.5, 1.0), flip=True, slide=Slide((8, 12), (5, 9)))
    windowed = artifact(
        TestTimeAugmentation(output="scores"), shape=("n", 8, 12, 3), dtype="float32", exported=exported
    )
    image = noise(21, 30)
    plain = TestTimeAugmentation((0.5, 1.0), flip=True).on_device(
        lambda x: x.astype(jnp.float32), jnp.asarray(image[None])
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "framework.workflow.open.predict.find_artifact", lambda *_: DomainArtifact(windowed, DOMAIN)
        )
        segment = segmentation.predictor("windowed")
    np.testing.assert_array_equal(segment(image).labels, plain["labels"][0])
    assert segment(noise(2, 3)).labels.shape == (2, 3)  # smaller than a window
    assert segment.runner.engine.compile_count <= 2


def test_scaled_images_come_back(tmp_path):
    resized = artifact(
        TestTimeAugmentation(output="scores"),
        [{"type": "Resize", "size_hw": [8, 8]}],
        ("n", 8, 8, 3),
        exported=TestTimeAugmentation(),
    ).save(tmp_path / "a")
    image = np.zeros((32, 16, 3), np.uint8)
    image[:16, :, 0], image[16:, :, 2] = 200, 200
    np.testing.assert_array_equal(
        segmentation.predictor(resized)(image).labels, np.repeat([[0], [2]], 16, 0) + np.zeros((1, 16), int)
    )


def test_a_program_for_batches_alone(tmp_path):
    fixed = artifact(TestTimeAugmentation(output="scores"), (), (2, 8, 8, 3)).save(tmp_path / "a")
    images = [noise(8, 8) for _ in range(3)]
    for image, found in zip(images, segmentation.predictor(fixed)(images)):
        np.testing.assert_array_equal(found.labels, image.argmax(-1))


def test_files_of_every_kind(folder, tmp_path):
    segment = segmentation.predictor(folder)
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4)
    vision_image.write(tmp_path / "grey.png", grey)
    assert (segment(tmp_path / "grey.png").labels == 0).all()  # a draw: the first class
    assert segment(tmp_path / "grey.png").source == str(tmp_path / "grey.png")
    assert segment(np.zeros((3, 4, 4), np.uint8)).labels.shape == (3, 4)  # RGBA
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "broken.png").write_bytes((tmp_path / "grey.png").read_bytes()[:40])
    for name in ("empty.png", "broken.png", "no.png"):
        with pytest.raises(InputError, match=name):
            segment(tmp_path / name)


def test_images_of_other_channels(tmp_path):
    made = artifact(
        TestTimeAugmentation(), (), ("n", 4, 4, 5), "uint16", palette=palettes.voc(5).tolist()
    ).save(tmp_path / "a")
    segment = segmentation.predictor(made)
    values = RNG.permutation(80).reshape(4, 4, 5).astype(np.uint16)
    np.save(tmp_path / "a.npy", values)
    for source in (values, tmp_path / "a.npy"):
        found = segment(source)
        np.testing.assert_array_equal(found.labels, values.argmax(-1))
        assert found.overlay().shape == (4, 4, 3) and found.overlay().dtype == np.uint8
    with pytest.raises(InputError, match=r"the image does not fit the model[\s\S]*\[H, W, 5\] uint16"):
        segment(np.zeros((4, 4, 3), np.uint8))


def test_wrong_options(folder, tmp_path):
    for opacity in (-0.1, 1.5):
        with pytest.raises(InputError, match="opacity is out of range"):
            segmentation.predictor(folder, opacity=opacity)
    with pytest.raises(ConfigError, match="unknown background"):
        segmentation.predictor(folder, background="no/such.png")
    other = artifact(domain="classification").save(tmp_path / "other")
    with pytest.raises(FormatError, match="another domain than segmentation"):
        segmentation.predictor(other)


def test_the_look_of_results(folder):
    image = np.full((4, 4, 3), 100, np.uint8)
    clear = segmentation.predictor(folder, opacity=0.0)(image)
    np.testing.assert_array_equal(clear.overlay(), image)
    green = open_predictor(folder, options={"background": "0,255,0"})(image)
    np.testing.assert_array_equal(green.overlay(), np.broadcast_to([0, 255, 0], (4, 4, 3)))  # class 0 alone


# ---- what is exported ----


def experiment(transforms=FILL, inference=WHOLE, shape=("n", "32*h", "32*w", 3)):
    return Experiment(
        "segmentation",
        task=SemanticSegmentation(inference=inference),
        data=Data(),
        export=ExportOptions({"image": Input(shape)}),
        predict=PredictOptions(tuple(transforms), 1),
    )


@pytest.mark.parametrize(
    ("transforms", "output"),
    [
        ((), "labels"),
        ((PadToMultiple(32),), "labels"),
        ((Resize((64, 64)),), "scores"),
        ((Resize((64, 64)), PadToMultiple(32)), "scores"),
        ((CenterCrop((64, 64)),), "scores"),
    ],
)
def test_the_output_follows_from_the_transforms(transforms, output):
    inference = TestTimeAugmentation((0.5, 1.0), flip=True)
    task = prepare_export(experiment(transforms, inference)).task
    assert task is not None and task.inference == TestTimeAugmentation((0.5, 1.0), flip=True, output=output)


@pytest.mark.parametrize(("scales", "dtype"), [((1.0,), "uint8"), ((1.0, 0.5), "float32")])
def test_a_slide_exports_its_window(scales, dtype):
    made = prepare_export(experiment(inference=TestTimeAugmentation(scales, slide=Slide((96, 64), (32, 32)))))
    assert made.export.inputs == {"image": Input(("n", 96, 64, 3), dtype)}
    assert made.task is not None and made.task.inference == TestTimeAugmentation(output="scores")


def test_a_program_takes_images():
    with pytest.raises(
        ConfigError, match=r"takes images[\s\S]*export.inputs|export.inputs[\s\S]*takes images"
    ):
        prepare_export(experiment(shape=("n", 3)))


def test_a_fixed_shape_scales_images():
    made = with_input_shape(experiment(), (1, 3, 1024, 512))
    assert made.export.inputs["image"].shape == (1, 1024, 512, 3)
    assert made.predict == PredictOptions((PadToMultiple(32), Resize((1024, 512))), 1)
    task = prepare_export(made).task
    assert task is not None and task.inference.output == "scores"


def test_free_numbers_stay_free():
    assert with_input_shape(experiment(), (-1, 3, -1, -1)) == experiment()
    made = with_input_shape(experiment(), (4, -1, -1, -1))
    assert made.export.inputs["image"].shape == (4, "32*h", "32*w", 3) and made.predict.batch_size == 4


def test_the_transform_that_makes_the_size_makes_the_new_one():
    made = with_input_shape(experiment([Resize((64, 64))], shape=("n", 64, 64, 3)), (-1, 3, 32, 96))
    assert made.predict.transforms == (Resize((32, 96)),)


@pytest.mark.parametrize(
    "shape", [(1, 4, 32, 32), (0, 3, 32, 32), (1, 3, -1, 32), (1, 3, 0, 32), (1, 3, -2, -2)]
)
def test_shapes_that_do_not_fit(shape):
    with pytest.raises(ConfigError, match=r"does not fit the program's images"):
        with_input_shape(experiment(), shape)


def test_a_program_without_images_has_no_shape():
    with pytest.raises(ConfigError, match="no shape of images"):
        with_input_shape(experiment(shape=("n", 3)), (1, 3, 32, 32))
