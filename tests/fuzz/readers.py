"""Every reader of files from outside: how a valid file for it is made, and what reads it."""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.fuzz import annotations, bodies, tables_and_adapters, texts

_TESTS = Path(__file__).resolve().parents[1]
_INTEROP = _TESTS / "data" / "interop"
_TOKENIZERS = _TESTS / "golden" / "data" / "tokenizers"
_RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Reader:
    """`make` writes what is read into a folder and returns the file to damage; `read` reads that file.

    Attributes:
        values: The file is JSON or YAML, whose values are changed too.
    """

    make: Callable[[Path], Path]
    read: Callable[[Path], object]
    values: bool = False


def _pixels(height: int = 24, width: int = 31) -> np.ndarray:
    return _RNG.integers(0, 255, (height, width, 3), np.uint8)


def _saved(name: str, data: bytes | str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return make


def _copied(source: Path, *others: Path) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        for other in others:
            shutil.copy(other, folder)
        return Path(shutil.copy(source, folder))

    return make


def _image(suffix: str, **options: Any) -> Callable[[Path], Path]:
    data = io.BytesIO()
    kind = {"jpg": "JPEG", "tif": "TIFF"}.get(suffix, suffix.upper())
    image = Image.fromarray(_pixels())
    if suffix == "gif":
        image = image.quantize(16)
    image.save(data, kind, **options)
    return _saved(f"image.{suffix}", data.getvalue())


def _read_image(path: Path) -> object:
    from framework.vision import image

    return image.read(path)


def _read_labels(path: Path) -> object:
    from framework.vision.raw_images import read_labels

    return read_labels(path)


def _read_channels(path: Path) -> object:
    from framework.vision.raw_images import read_channels

    return read_channels(path)


def _palette(folder: Path) -> Path:
    from framework.vision import masks

    path = folder / "mask.png"
    masks.write_classes(path, _RNG.integers(0, 5, (20, 30)).astype(np.uint8), masks.palette(5))
    return path


def _npy(folder: Path) -> Path:
    path = folder / "mask.npy"
    np.save(path, _RNG.integers(0, 5, (20, 30)).astype(np.int32))
    return path


def _bands(folder: Path) -> Path:
    import tifffile

    path = folder / "bands.tif"
    tifffile.imwrite(path, _RNG.integers(0, 999, (6, 20, 30)).astype(np.uint16), compression="zlib")
    return path


def _pdf(folder: Path) -> Path:
    path = folder / "document.pdf"
    data = io.BytesIO()
    pages = [Image.fromarray(_pixels(60, 40)) for _ in range(2)]
    pages[0].save(data, "PDF", save_all=True, append_images=pages[1:])
    path.write_bytes(data.getvalue())
    return path


def _read_pdf(path: Path) -> object:
    from framework.workflow.files.pdf import PdfReader

    with PdfReader(path, dpi=36) as pages:
        return [page.shape for page in pages]


def _video(suffix: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        from framework.vision.video import VideoWriter

        path = folder / f"clip.{suffix}"
        with VideoWriter(path, 5, (48, 64)) as video:
            for _ in range(4):
                video.write(_pixels(48, 64))
        return path

    return make


def _read_video(path: Path) -> object:
    from framework.vision.video import VideoReader

    with VideoReader(path) as video:
        return sum(1 for _ in video)


def _config(folder: Path) -> Path:
    (folder / "base.yml").write_text(
        "optim: {type: SGD, learning_rate: 0.1}\ntrain: {epochs: 2}\n", encoding="utf-8"
    )
    text = "_base_: base.yml\ndomain: classification\nmodel: &m {type: LeNet, num_classes: 10}\nother: *m\n"
    return _saved("config.yml", text)(folder)


def _read_config(path: Path) -> object:
    from framework.config import load, resolved

    return resolved(load(path, ["train.epochs=4"]))


def _classifier(folder: Path) -> Path:
    from framework.export import Artifact, TensorSpec, lower_program

    def fn(weights: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        mean = inputs["image"].astype("float32").mean(axis=(1, 2, 3)) / 255 + weights["zero"]
        return {"scores": np.array([1, -1], np.float32) * mean[:, None] + np.array([0, 1], np.float32)}

    weights = {"zero": np.zeros((), np.float32)}
    program = lower_program(fn, weights, {"image": TensorSpec(("n", 4, 4, 3), "uint8")}, platforms=("cpu",))
    config = {
        "domain": "classification",
        "name": "bright",
        "batch_size": 2,
        "labels": ["light", "dark"],
        "transforms": [{"type": "Resize", "size_hw": [4, 4]}],
    }
    return Artifact(config, {"float32": program}, weights).save(folder / "bright")


def _read_artifact(path: Path) -> object:
    from framework.core.errors import OarError
    from framework.workflow import open_predictor

    predict = open_predictor(str(path.parent))
    with contextlib.suppress(OarError):  # of the image, not of the file
        predict(np.zeros((8, 8, 3), np.uint8))
    return predict


def _jit(folder: Path) -> Path:
    from framework import paddle

    class Net(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.linear = paddle.nn.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            return {"y": self.linear(x), "sum": [x.sum(), 3]}

    paddle.jit.save(Net(), str(folder / "net"), [paddle.static.InputSpec([-1, 4], "float32", "x0")])
    return folder / "net" / "infer_cfg.yml"


def _read_jit(path: Path) -> object:
    from framework import paddle

    layer = paddle.jit.load(str(path.parent))
    return layer(paddle.to_tensor(np.ones((2, 4), np.float32)))


def _transformers(folder: Path) -> Path:
    settings = {
        "model_type": "bert",
        "architectures": ["BertForSequenceClassification"],
        **{"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16},
        **{"vocab_size": 40, "max_position_embeddings": 16, "type_vocab_size": 2, "hidden_act": "gelu"},
        **{"id2label": {"0": "a", "1": "b"}, "num_labels": 2},
    }
    from framework.config import build
    from framework.interop import write_safetensors
    from nlp.pretrained import _model_config, encoder_config

    model = build(_model_config("sequence_classification", encoder_config(settings), settings, 2))
    write_safetensors(
        folder / "model.safetensors", {name: np.asarray(value) for name, value in model.state_dict().items()}
    )
    return _saved("config.json", json.dumps(settings))(folder)


def _read_transformers(path: Path) -> object:
    from framework.core.errors import WeightError
    from nlp.pretrained import read_pretrained

    try:
        return read_pretrained(path.parent)
    except WeightError:  # of sizes that are others now
        return None


def _pdf_of_forms(folder: Path) -> Path:
    form = b"<</Type/XObject/Subtype/Form/BBox[0 0 60 80]/Resources<</XObject<</X %d 0 R>>/Font<</F 8 0 R>>>>"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 60 80]/Contents 4 0 R"
        b"/Resources<</XObject<</X 5 0 R>>/Font<</F 8 0 R>>>>/Annots[9 0 R]>>",
        b"<</Length 53>>\nstream\nBT /F 9 Tf 5 5 Td (a word) Tj ET /X Do 1 1 9 9 re f S\nendstream",
        *(form % number + b"/Length 11>>\nstream\n/X Do /X Do\nendstream" for number in (6, 7)),
        form % 7 + b"/Length 30>>\nstream\n0 0 m 9 9 l S q 1 0 0 1 0 0 cm\nendstream",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Type/Annot/Subtype/Stamp/Rect[0 0 9 9]/AP<</N 5 0 R>>>>",
    ]
    data = b"%PDF-1.7\n" + b"".join(
        b"%d 0 obj\n%s\nendobj\n" % (number, value) for number, value in enumerate(objects, 1)
    )
    return _saved("forms.pdf", (data + b"trailer\n<</Size 10/Root 1 0 R>>\n%%EOF").decode("latin-1"))(folder)


def _read_content(path: Path) -> object:
    from framework.workflow.files.pdf import PdfReader

    with PdfReader(path, dpi=36) as pages:
        return [(pages[index].shape, pages.content(index)) for index in range(min(len(pages), 3))]


def _index(folder: Path) -> Path:
    source = {"url": "https://example.org/a.onnx", "sha256": "0" * 64, "size": 5}
    family = {
        "family": "Nets",
        "domain": "ocr",
        "homepage": "https://example.org",
        "licence": "MIT",
        "entries": {
            "net": {"form": "deploy", "files": {"weights": {"sources": [source]}}, "model": {"a": 1}}
        },
    }
    return _saved("nets.yml", json.dumps(family))(folder)


def _read_index(path: Path) -> object:
    from framework.hub.index import read_family

    return read_family(path)


def _lmdb(folder: Path) -> Path:
    import lmdb  # pyright: ignore[reportMissingImports]

    with lmdb.open(str(folder), map_size=1 << 20) as database, database.begin(write=True) as view:
        view.put(b"num-samples", b"60")
        buffer = io.BytesIO()
        Image.fromarray(_pixels(8, 40)).save(buffer, "PNG")
        for number in range(1, 61):
            view.put(b"image-%09d" % number, buffer.getvalue() + bytes(5000 * (number % 2)))
            view.put(b"label-%09d" % number, b"a word")
    return folder / "data.mdb"


def _read_lmdb(path: Path) -> object:
    from ocr.data import lines

    lines._open_lmdb.cache_clear()
    dataset = lines.TextLineLMDB(path.parent)
    return [dataset[index] for index in range(len(dataset))]


_INFERENCE = "Global: {model_name: net}\nPostProcess:\n  name: CTCLabelDecode\n  character_dict:\n" + "".join(
    f"  - '{symbol}'\n" for symbol in "abc123猫犬"
)


def _read_inference(path: Path) -> object:
    from ocr.text.characters import CharacterSet

    return CharacterSet.from_inference_yml(path).encode("a", skip_unknown=True)


def _read_dictionary(path: Path) -> object:
    from ocr.text.characters import CharacterSet

    return CharacterSet.from_file(path).encode("a", skip_unknown=True)


def _read_tokenizer(path: Path) -> object:
    from framework.text.tokenizer import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    found = tokenizer.encode("a cat, 猫 1,234 \U0001f600 [MASK]", "ünd noch \x00 eines")
    tokenizer.encode(["a", "cat"])
    return tokenizer.decode(found.ids), Tokenizer.from_json(tokenizer.to_json(), path)


def _own_tokenizer(kind: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        from framework.text.tokenizer import Tokenizer

        texts = ["a cat sat on a mat", "the dog and the cat", "1,234 words"]
        return Tokenizer.train(kind, texts, 300).save(folder / "tokenizer.json")  # type: ignore[arg-type]

    return make


def _library_tokenizer(folder: Path) -> Path:
    from framework.text.tokenizer import Tokenizer

    data = json.loads(Tokenizer.train("wordpiece", ["a cat sat on a mat", "the dog"], 60).to_json())["model"]
    data["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}},
    }
    return _saved("tokenizer.json", json.dumps(data))(folder)


def _tokenizer_settings(folder: Path) -> Path:
    shutil.copy(_TOKENIZERS / "bert" / "vocab.txt", folder)
    settings = {
        "do_lower_case": True,
        "cls_token": "[CLS]",
        "added_tokens_decoder": {},
        "strip_accents": None,
    }
    return _saved("tokenizer_config.json", json.dumps(settings))(folder)


def _read_tokenizer_folder(path: Path) -> object:
    return _read_tokenizer(path.parent)


def _read_lines(path: Path) -> object:
    from framework.text.lines import read_lines

    return read_lines(path)


def _read_weights(path: Path) -> object:
    from framework.interop import load_weights

    return load_weights(path)


def _read_program(path: Path) -> object:
    from framework.interop import load_program, weighted_ops

    parameters = path.with_suffix(".pdiparams")
    return weighted_ops(load_program(path, parameters if parameters.exists() else None))


def _onnx_layer(folder: Path) -> Path:
    """Sizes from a shape, a resize, a loop and a gather: what damage can make large, endless or go astray."""
    from onnx import TensorProto, helper, numpy_helper

    node = helper.make_node
    value = helper.make_tensor_value_info
    step = helper.make_graph(
        [node("Identity", ["on"], ["go"]), node("Add", ["v", "v"], ["twice"])],
        "step",
        [
            value("i", TensorProto.INT64, []),
            value("on", TensorProto.BOOL, []),
            value("v", TensorProto.FLOAT, None),
        ],
        [value("go", TensorProto.BOOL, []), value("twice", TensorProto.FLOAT, None)],
    )
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("MaxPool", ["a"], ["b"], kernel_shape=[2, 2], pads=[0, 0, 1, 1]),
        node("Shape", ["b"], ["s"]),
        node("Mul", ["s", "factors"], ["size"]),
        node("Resize", ["b", "", "", "size"], ["c"], mode="linear"),
        node("Pad", ["c", "pads"], ["d"]),
        node("Loop", ["trips", "", "d"], ["e"], body=step),
        node("Gather", ["e", "index"], ["f"], axis=1),
        node("Tile", ["f", "times"], ["g"]),
        node("TopK", ["g", "k"], ["y", "places"]),
    ]
    arrays = {
        "w": np.ones((2, 3, 3, 3), np.float32),
        "factors": np.int64([1, 1, 2, 2]),
        "pads": np.int64([0, 0, 1, 0, 0, 0, 0, 1]),
        "trips": np.int64(3),
        "index": np.int64([1, 0]),
        "times": np.int64([1, 2, 1, 1]),
        "k": np.int64([2]),
    }
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    x = value("x", TensorProto.FLOAT, [1, 3, 6, 6])
    graph = helper.make_graph(nodes, "g", [x], [value("y", TensorProto.FLOAT, None)], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return _saved("graph.onnx", model.SerializeToString())(folder)


def _run_onnx(path: Path) -> object:
    from framework.interop.programs.onnx import load

    return _call(load(path))


def _paddle_layer(name: str, file: str) -> Callable[[Path], Path]:
    """A program with a loop, a branch or suppression, and its parameters beside it."""

    def make(folder: Path) -> Path:
        with np.load(_TESTS / "golden" / "data" / f"paddle_control_{name}.npz") as stored:
            (folder / file).with_suffix(".pdiparams").write_bytes(stored["params"].tobytes())
            (folder / file).write_bytes(stored["program"].tobytes())
        return folder / file

    return make


def _run_paddle(path: Path) -> object:
    from framework.interop.graph.paddle import load

    return _call(load(path))


def _call(layer: Any) -> object:
    """The layer's outputs for ones in the sizes that it declares."""
    sizes = (
        [dim if isinstance(dim, int) and 0 <= dim < 64 else 2 for dim in spec.shape] for spec in layer.inputs
    )
    return layer(*(np.ones(size, spec.dtype or "float32") for size, spec in zip(sizes, layer.inputs)))


def _gguf(folder: Path) -> Path:
    from tests.unit.framework.interop.weights.test_gguf import decoder

    return _saved("model.gguf", decoder()[0])(folder)


def _read_gguf(path: Path) -> object:
    from framework.interop.weights.gguf import read_gguf
    from framework.interop.weights.gguf_models import gguf_state
    from framework.text.gguf_tokenizer import gguf_tokenizer

    file = read_gguf(path)
    gguf_tokenizer(file.metadata, str(path))
    state = gguf_state(file)
    return [state[name] for name in state]


def _safetensors(folder: Path) -> Path:
    from framework.interop import write_safetensors

    path = folder / "model.safetensors"
    write_safetensors(
        path, {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(3, np.int64)}, {"by": "oar"}
    )
    return path


def _shards(folder: Path) -> Path:
    _safetensors(folder)
    index = {
        "metadata": {"total_size": 48},
        "weight_map": {"a": "model.safetensors", "b": "model.safetensors"},
    }
    return _saved("model.safetensors.index.json", json.dumps(index))(folder)


def _archive(suffix: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        data = (_INTEROP / "state_p2.pdparams").read_bytes()
        path = folder / f"weights.{suffix}"
        if suffix == "zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
                made.writestr("net/model.pdparams", data)
            return path
        with tarfile.open(path, {"tar": "w", "tar.gz": "w:gz", "tar.xz": "w:xz"}[suffix]) as made:  # type: ignore[call-overload]
            entry = tarfile.TarInfo("net/model.pdparams")
            entry.size = len(data)
            made.addfile(entry, io.BytesIO(data))
        return path

    return make


def _model_folder(folder: Path) -> Path:
    settings = {"model_type": "bert", "hidden_size": 8, "num_labels": 2, "id2label": {"0": "a", "1": "b"}}
    return _saved("config.json", json.dumps(settings))(folder)


def _read_model_folder(path: Path) -> object:
    from framework.interop.weights.model_folder import read_settings

    return read_settings(path.parent)


def _scene(folder: Path) -> None:
    Image.fromarray(_pixels()).save(folder / "a.png")


_OBJECT = {
    "id": 1,
    "image_id": 1,
    "category_id": 1,
    "bbox": [2, 3, 10, 9],
    "area": 90,
    "iscrowd": 0,
    "segmentation": [[2, 3, 12, 3, 12, 12, 2, 12]],
    "keypoints": [3, 4, 2, 5, 6, 1],
    "num_keypoints": 2,
}
_COCO = {
    "images": [{"id": 1, "file_name": "a.png", "width": 31, "height": 24}],
    "annotations": [
        _OBJECT,
        {**_OBJECT, "id": 2, "iscrowd": 1, "segmentation": {"size": [24, 31], "counts": [744]}},
    ],
    "categories": [{"id": 1, "name": "cat", "keypoints": ["nose", "tail"], "skeleton": [[1, 2]]}],
}
_MASK = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAAAAAC4HznGAAAAEElEQVR4nGP8z8DAxMDAAAAHEQEDMVv08wAAAABJRU5ErkJggg=="
_VOC = """<annotation><filename>a.png</filename><size><width>31</width><height>24</height><depth>3</depth></size>
<object><name>cat</name><difficult>0</difficult>
<bndbox><xmin>2</xmin><ymin>3</ymin><xmax>12</xmax><ymax>12</ymax></bndbox></object></annotation>"""
_CVAT = """<annotations><meta><task><labels><label><name>cat</name></label></labels></task></meta>
<image id="0" name="a.png" width="31" height="24" subset="Train">
<box label="cat" xtl="2.5" ytl="3" xbr="12" ybr="12" rotation="20"><attribute name="age">3</attribute></box>
<polygon label="cat" points="1,1;9,1;9,9"></polygon><ellipse label="cat" cx="9" cy="9" rx="4" ry="3"></ellipse>
<mask label="cat" rle="1, 2, 2, 3" left="7" top="3" width="4" height="2"></mask></image></annotations>"""
_ENTITIES = [
    {
        "data": {"text": "Ann in Oslo"},
        "annotations": [{"result": [{"value": {"start": 0, "end": 3, "labels": ["P"]}}]}],
    },
    {"text": "Ann in Oslo", "label": [[0, 3, "P"], {"start": 7, "end": 11, "text": "Oslo", "labels": ["L"]}]},
]
_SQUAD = {
    "version": "v2.0",
    "data": [
        {
            "title": "t",
            "paragraphs": [
                {
                    "context": "The cat sat on the mat.",
                    "qas": [
                        {"id": "1", "question": "Who sat?", "answers": [{"text": "cat", "answer_start": 4}]},
                        {"id": "2", "question": "Why?", "answers": [], "is_impossible": True},
                    ],
                }
            ],
        }
    ],
}


def _coco(folder: Path) -> Path:
    _scene(folder)
    return _saved("coco.json", json.dumps(_COCO))(folder)


def _labelme(folder: Path) -> Path:
    _scene(folder)
    buffer = io.BytesIO()
    Image.fromarray(_pixels()).save(buffer, "PNG")
    shapes = [
        {"label": "cat", "points": [[2, 3], [12, 3], [12, 12]], "group_id": 1, "shape_type": "polygon"},
        {"label": "cat", "points": [[2, 3], [9, 9]], "group_id": 1, "shape_type": "rectangle"},
        {"label": "dog", "points": [[9, 9], [12, 9]], "shape_type": "circle"},
        {"label": "dog", "points": [[1, 1], [3, 2]], "shape_type": "mask", "mask": _MASK},
    ]
    size = {"imageHeight": 24, "imageWidth": 31}
    data = {"shapes": shapes, "imagePath": "a.png", "imageData": base64.b64encode(buffer.getvalue()).decode()}
    return _saved("a.json", json.dumps({**data, **size}))(folder)


def _read_labelme(path: Path) -> object:
    from framework.workflow.data.labelme import convert_labelme

    with tempfile.TemporaryDirectory() as output:
        return convert_labelme(path.parent, output)


def _voc(folder: Path) -> Path:
    _scene(folder)
    return _saved("a.xml", _VOC)(folder)


def _read_all(dataset: Any) -> object:
    return dataset.class_names, [dataset[index] for index in range(len(dataset))]


def _read_coco(path: Path) -> object:
    from detection.data.coco import CocoDetection

    return [
        _read_all(CocoDetection(path.parent, Path(path.name), keypoints=points)) for points in (False, True)
    ]


def _read_pose(path: Path) -> object:
    from detection.data.coco_pose import CocoPose

    return [_read_all(CocoPose(path.parent, Path(path.name), per_person=single)) for single in (False, True)]


def _yolo(folder: Path) -> Path:
    _scene(folder)
    (folder / "classes.txt").write_text("cat\ndog\n", encoding="utf-8")
    return _saved("a.txt", "0 0.5 0.5 0.2 0.4\n1 0.1 0.1 0.3 0.1 0.3 0.5\n")(folder)


def _yolo_yaml(folder: Path) -> Path:
    _yolo(folder)
    return _saved("data.yaml", "path: .\ntrain: .\nval: [.]\nnames: {0: cat, 1: dog}\n")(folder)


def _read_yolo(path: Path) -> object:
    from detection.data.annotated import YoloDetection

    return _read_all(YoloDetection(path if path.suffix == ".yaml" else path.parent))


def _cvat(folder: Path) -> Path:
    _scene(folder)
    return _saved("annotations.xml", _CVAT)(folder)


def _cvat_video(folder: Path) -> Path:
    for number in range(4):
        Image.fromarray(_pixels()).save(folder / f"frame_{number:06d}.png")
    shapes = "".join(
        f'<box frame="{at}" xtl="{x}" ytl="2" xbr="{x + 9}" ybr="9" outside="0"/>'
        for at, x in ((0, 1), (3, 12))
    )
    more = '<polygon frame="1" points="1,1;9,1;9,9"/><polygon frame="3" points="5,1;9,1;9,9" outside="1"/>'
    text = f'<track id="0" label="cat">{shapes}</track><track id="1" label="dog">{more}</track>'
    return _saved("annotations.xml", f"<annotations>{text}</annotations>")(folder)


def _box_table(folder: Path) -> Path:
    _scene(folder)
    rows = "a.png,31,24,cat,2,3,12,13,0\na.png,31,24,dog,4,5,20,20,1\n" * 3
    first = "filename,width,height,class,xmin,ymin,xmax,ymax,difficult\n"
    return _saved("boxes_train.csv", first + rows)(folder)


def _read_box_table(path: Path) -> object:
    from framework.vision.annotations.box_table import read_box_tables

    return read_box_tables(path), _convert(path)


def _labelme_xml(folder: Path) -> Path:
    _scene(folder)
    points = "".join(f"<pt><x>{x}</x><y>{y}</y></pt>" for x, y in ((2, 3), (12, 3), (12, 12)))
    shape = f"<object><name>cat</name><deleted>0</deleted><polygon>{points}</polygon></object>"
    size = "<imagesize><nrows>24</nrows><ncols>31</ncols></imagesize>"
    return _saved("a.xml", f"<annotation>{size}{shape}{shape}</annotation>")(folder)


def _convert(path: Path) -> object:
    from framework.workflow.data.convert import convert_data

    with tempfile.TemporaryDirectory() as output:
        return [convert_data(path.parent, Path(output) / to, to) for to in ("voc", "cvat", "coco")]


def _read_cvat(path: Path) -> object:
    from detection.data.annotated import CvatDetection
    from segmentation.data.annotated import CvatMasks

    return _read_all(CvatDetection(path.parent)), _read_all(CvatMasks(path.parent))


def _tiled(folder: Path) -> Path:
    import tifffile

    tifffile.imwrite(
        folder / "a.tif", np.tile(_pixels(), (3, 3, 1)), photometric="rgb", tile=(16, 16), compression="zlib"
    )
    return folder / "a.tif"


def _read_windows(path: Path) -> object:
    from framework.vision.windowed import WindowedImage

    opened = WindowedImage(path)
    height, width, _ = opened.shape
    return opened.overview(20), opened[height // 2 : height // 2 + 20, width // 2 : width // 2 + 20]


def _multi_label(folder: Path) -> Path:
    _scene(folder)
    return _saved("list.csv", "file,cat,dog\na.png,1,0\na.png,0,1\n")(folder)


def _read_multi_label(path: Path) -> object:
    from zoo.classification.multi_label_data import MultiLabelList

    return _read_all(MultiLabelList(path.parent, path, header=True))


def _read_voc(path: Path) -> object:
    from detection.data.voc import VocDetection

    return _read_all(VocDetection(path.parent))


def _read_entities(path: Path) -> object:
    from nlp.data.annotated import AnnotatedText

    return list(AnnotatedText(path).samples)


def _read_squad(path: Path) -> object:
    from nlp.data.questions import QuestionAnswers

    return list(QuestionAnswers(path).samples)


def _read_classes(path: Path) -> object:
    from nlp.data.classification import TextClassification

    keys = {"text": "text", "label": "label"} if path.suffix == ".jsonl" else {}
    return _read_all(TextClassification(path, **keys))  # type: ignore[arg-type]


def _read_tags(path: Path) -> object:
    from nlp.data.tagged import TaggedText

    keys = {"word": "words", "tag": "tags"} if path.suffix == ".jsonl" else {}
    return _read_all(TaggedText(path, **keys))  # type: ignore[arg-type]


def _image_zip(folder: Path) -> Path:
    path = folder / "images.zip"
    data = io.BytesIO()
    Image.fromarray(_pixels()).save(data, "PNG")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name in ("cat/1.png", "dog/2.png"):
            made.writestr(name, data.getvalue())
    return path


def _read_image_zip(path: Path) -> object:
    from zoo.classification.data import ImageFolder

    return _read_all(ImageFolder(path))


def _in_artifact(name: str) -> Callable[[Path], Path]:
    return lambda folder: _classifier(folder) / name


def _pages_of_tiff(folder: Path) -> Path:
    pages = [Image.fromarray(_pixels()) for _ in range(3)]
    pages[0].save(folder / "pages.tif", save_all=True, append_images=pages[1:], compression="tiff_lzw")
    return folder / "pages.tif"


def _read_pages(path: Path) -> object:
    from framework.vision.image_pages import ImagePages

    return list(ImagePages(path))


def _read_idx(path: Path) -> object:
    from framework.io.benchmark_files import read_idx

    return read_idx(path, 3)


def _read_line_labels(path: Path) -> object:
    from ocr.text.label_files import read_line_labels

    return read_line_labels(path)


def _read_page_labels(path: Path) -> object:
    from ocr.data.labels import read_page_labels

    return read_page_labels(path)


_BINARY, _HEADER_LENGTH = bodies.binary_tensors()
_IDX = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]) + bytes(24)
_LINE_LABELS = 'a.png\tone\n["b.png", "c.png"]\tzwei\n'
_REGION = '[{"transcription": "a", "points": [[1, 2], [9, 2], [9, 8], [1, 8]]}]'
READERS: dict[str, Reader] = {
    "tensors as JSON": Reader(_saved("body.json", bodies.TENSORS), bodies.read_tensors(), values=True),
    "tensors as bytes": Reader(_saved("body.bin", _BINARY), bodies.read_tensors(_HEADER_LENGTH)),
    "request to predict": Reader(
        _saved("body.json", bodies.PREDICT), bodies.read_predict("json"), values=True
    ),
    "form to predict": Reader(_saved("body.form", bodies.form()), bodies.read_predict("form")),
    "answer of a server": Reader(_saved("answer.jsonl", bodies.ANSWER), bodies.read_answer),
    "pages of a tiff": Reader(_pages_of_tiff, _read_pages),
    "idx": Reader(_saved("images.idx3", _IDX), _read_idx),
    "idx.gz": Reader(_saved("images.idx3.gz", gzip.compress(_IDX)), _read_idx),
    "labels of lines": Reader(_saved("train.txt", _LINE_LABELS), _read_line_labels),
    "labels of pages": Reader(_saved("train.txt", f"a.png\t{_REGION}\n" * 2), _read_page_labels),
    "coco": Reader(_coco, _read_coco, values=True),
    "coco pose": Reader(_coco, _read_pose, values=True),
    "labelme": Reader(_labelme, _read_labelme, values=True),
    "voc": Reader(_voc, _read_voc),
    "yolo txt": Reader(_yolo, _read_yolo),
    "yolo yaml": Reader(_yolo_yaml, _read_yolo),
    "cvat": Reader(_cvat, _read_cvat),
    "cvat of a video": Reader(_cvat_video, _read_cvat),
    "xml of labelme": Reader(_labelme_xml, _convert),
    "voc to others": Reader(_voc, _convert),
    **{name: Reader(*parts) for name, parts in annotations.FILES.items()},
    **{name: Reader(*parts) for name, parts in tables_and_adapters.FILES.items()},
    **{name: Reader(*parts) for name, parts in texts.FILES.items()},
    "table of boxes": Reader(_box_table, _read_box_table),
    "tiff by windows": Reader(_tiled, _read_windows),
    "several classes": Reader(_multi_label, _read_multi_label),
    "squad": Reader(_saved("squad.json", json.dumps(_SQUAD)), _read_squad, values=True),
    "entities": Reader(_saved("entities.json", json.dumps(_ENTITIES)), _read_entities, values=True),
    "classes.tsv": Reader(_saved("classes.tsv", "good\tyes\nbad\tno\n"), _read_classes),
    "classes.jsonl": Reader(_saved("classes.jsonl", '{"text": "good", "label": "yes"}\n' * 2), _read_classes),
    "tags.conllu": Reader(_saved("tags.conllu", "1\tcat\tcat\tNOUN\n2\tsat\tsit\tVERB\n\n"), _read_tags),
    "tags.jsonl": Reader(_saved("tags.jsonl", '{"words": ["a", "b"], "tags": ["X", "Y"]}\n' * 2), _read_tags),
    "zip of images": Reader(_image_zip, _read_image_zip),
    "jpeg": Reader(_image("jpg"), _read_image),
    "png": Reader(_image("png"), _read_image),
    "gif": Reader(_image("gif"), _read_image),
    "bmp": Reader(_image("bmp"), _read_image),
    "tiff": Reader(_image("tif", compression="tiff_lzw"), _read_image),
    "webp": Reader(_image("webp"), _read_image),
    "mask png": Reader(_palette, _read_labels),
    "npy": Reader(_npy, _read_labels),
    "tiff of bands": Reader(_bands, _read_channels),
    "pdf": Reader(_pdf, _read_pdf),
    "avi": Reader(_video("avi"), _read_video),
    "mp4": Reader(_video("mp4"), _read_video),
    "config": Reader(_config, _read_config, values=True),
    "artifact config": Reader(_in_artifact("infer_cfg.yml"), _read_artifact, values=True),
    "artifact program": Reader(_in_artifact("model.jaxexp"), _read_artifact),
    "artifact weights": Reader(_in_artifact("program_weights.safetensors"), _read_artifact),
    "index of weights": Reader(_index, _read_index, values=True),
    "jit settings": Reader(_jit, _read_jit, values=True),
    "folder of transformers": Reader(_transformers, _read_transformers, values=True),
    "pdf of forms": Reader(_pdf_of_forms, _read_content),
    "lmdb": Reader(_lmdb, _read_lmdb),
    "inference.yml": Reader(_saved("inference.yml", _INFERENCE), _read_inference, values=True),
    "dictionary": Reader(_saved("dict.txt", "a\nb\n猫\n"), _read_dictionary),
    "tokenizer of words": Reader(_own_tokenizer("words"), _read_tokenizer, values=True),
    "tokenizer of pieces": Reader(_own_tokenizer("unigram"), _read_tokenizer, values=True),
    "tokenizer.json": Reader(_library_tokenizer, _read_tokenizer, values=True),
    "tokenizer settings": Reader(_tokenizer_settings, _read_tokenizer_folder, values=True),
    "vocab.txt": Reader(_copied(_TOKENIZERS / "bert" / "vocab.txt"), _read_tokenizer),
    "vocab.json": Reader(
        _copied(_TOKENIZERS / "roberta" / "vocab.json", _TOKENIZERS / "roberta" / "merges.txt"),
        _read_tokenizer,
        values=True,
    ),
    "merges.txt": Reader(
        _copied(_TOKENIZERS / "roberta" / "merges.txt", _TOKENIZERS / "roberta" / "vocab.json"),
        _read_tokenizer,
    ),
    "spiece.model": Reader(_copied(_TOKENIZERS / "albert" / "spiece.model"), _read_tokenizer),
    "lines of text": Reader(_saved("texts.txt", "one\nzwei\n三\n"), _read_lines),
    "gguf": Reader(_gguf, _read_gguf),
    "safetensors": Reader(_safetensors, _read_weights),
    "shards": Reader(_shards, _read_weights, values=True),
    "tar": Reader(_archive("tar"), _read_weights),
    "tar.gz": Reader(_archive("tar.gz"), _read_weights),
    "tar.xz": Reader(_archive("tar.xz"), _read_weights),
    "zip": Reader(_archive("zip"), _read_weights),
    "config.json": Reader(_model_folder, _read_model_folder, values=True),
    **{
        name: Reader(_copied(_INTEROP / name), _read_weights)
        for name in (
            "state_p2.pdparams",
            "state_p4.pdparams",
            "static.pdparams",
            "adam.pdopt",
            "legacy.pth",
            "state.pt",
        )
    },
    "onnx_layer": Reader(_onnx_layer, _run_onnx),
    "paddle_layer": Reader(_paddle_layer("greedy_pdmodel", "model.pdmodel"), _run_paddle),
    "pir_layer": Reader(_paddle_layer("boxes_pir", "model.json"), _run_paddle, values=True),
    "onnx": Reader(_copied(_INTEROP / "network.onnx"), _read_program),
    "pdmodel": Reader(_copied(_INTEROP / "network.pdmodel", _INTEROP / "network.pdiparams"), _read_program),
    "pdiparams": Reader(_copied(_INTEROP / "network.pdiparams", _INTEROP / "network.pdmodel"), _read_weights),
    "pir": Reader(
        _copied(_INTEROP / "network_pir.json", _INTEROP / "network_pir.pdiparams"), _read_program, values=True
    ),
}
