r"""Graphs as ONNX, with an input and the outputs of the originals: of both torch exporters, TensorFlow, TFLite, Caffe.

    onnx_graphs               pip install torch onnx onnxscript
    foreign_graphs tensorflow pip install tensorflow-cpu==2.21.0 tf2onnx==1.17.0
    foreign_graphs tflite     the same packages
    foreign_graphs caffe      pip install onnx==1.14.1 protobuf==3.20.3 "numpy<2" opencv-python-headless==4.10.0.84
                              pip install --no-deps caffe2onnx==2.0.1

Each in an environment of its own, with the commands that docs/graphs.md prints. OpenCV speaks for Caffe, which has no
package. Of torch TorchScript ("script") and torch.export ("dynamo"); widths are small, so that a file stays small.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data"


def run(*command: str) -> None:
    subprocess.run([sys.executable, "-m", *command], check=True)


def keras_model():
    import tensorflow as tf  # type: ignore[import-not-found]

    tf.keras.utils.set_random_seed(0)
    layers = tf.keras.layers
    image = tf.keras.Input((16, 12, 3), name="image")
    x = layers.Conv2D(6, 3, strides=2, padding="same", activation="relu")(image)
    x = layers.BatchNormalization(moving_mean_initializer="random_normal")(x)
    x = layers.DepthwiseConv2D(3, padding="same")(x)
    y = layers.Conv2DTranspose(4, 2, strides=2, name="map")(layers.Activation("swish")(x))
    x = layers.GlobalAveragePooling2D()(layers.MaxPooling2D(2)(x))
    return tf.keras.Model(image, [layers.Dense(5, activation="softmax", name="classes")(x), y])


def tensorflow(folder: Path, x: np.ndarray) -> tuple[bytes, list[np.ndarray]]:
    model = keras_model()
    model.export(str(folder / "saved_model"), verbose=False)
    run("tf2onnx.convert", "--saved-model", f"{folder}/saved_model", "--output", f"{folder}/model.onnx")
    return (folder / "model.onnx").read_bytes(), [one.numpy() for one in model(x)]


def tflite(folder: Path, x: np.ndarray) -> tuple[bytes, list[np.ndarray]]:
    import tensorflow as tf  # type: ignore[import-not-found]

    data = tf.lite.TFLiteConverter.from_keras_model(keras_model()).convert()
    (folder / "model.tflite").write_bytes(data)
    run("tf2onnx.convert", "--tflite", f"{folder}/model.tflite", "--output", f"{folder}/model.onnx")
    interpreter = tf.lite.Interpreter(model_content=data)
    (given,), found = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.resize_tensor_input(given["index"], x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(given["index"], x)
    interpreter.invoke()
    return (folder / "model.onnx").read_bytes(), [interpreter.get_tensor(one["index"]) for one in found]


PROTOTXT = """
name: "small"
input: "data"
input_shape { dim: 1 dim: 3 dim: 16 dim: 12 }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 6 kernel_size: 3 stride: 2 pad: 1 } }
layer { name: "norm" type: "BatchNorm" bottom: "conv" top: "conv" batch_norm_param { use_global_stats: true } }
layer { name: "scale" type: "Scale" bottom: "conv" top: "conv" scale_param { bias_term: true } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "fc" type: "InnerProduct" bottom: "pool" top: "fc" inner_product_param { num_output: 5 } }
layer { name: "classes" type: "Softmax" bottom: "fc" top: "classes" }
"""


def caffe(folder: Path, x: np.ndarray) -> tuple[bytes, list[np.ndarray]]:
    import cv2  # type: ignore[import-not-found]
    from caffe2onnx.proto import caffe_upsample_pb2 as pb  # type: ignore[import-not-found]

    (folder / "model.prototxt").write_text(PROTOTXT, encoding="utf-8")
    random, net = np.random.RandomState(0), pb.NetParameter(name="small")
    shapes = {
        "conv": ("Convolution", [(6, 3, 3, 3), (6,)]),
        "norm": ("BatchNorm", [(6,), (6,), (1,)]),
        "scale": ("Scale", [(6,), (6,)]),
        "fc": ("InnerProduct", [(5, 72), (5,)]),
    }
    for name, (kind, forms) in shapes.items():
        layer = net.layer.add(name=name, type=kind)
        for number, form in enumerate(forms):
            values = random.randn(*form) * 0.3
            if name == "norm":
                values = np.abs(values) + 0.5 if number == 1 else values if number == 0 else np.ones(1)
            blob = layer.blobs.add()
            blob.shape.dim.extend(form)
            blob.data.extend(values.astype("float32").ravel())
    (folder / "model.caffemodel").write_bytes(net.SerializeToString())
    run(
        "caffe2onnx.convert",
        *("--prototxt", f"{folder}/model.prototxt", "--caffemodel", f"{folder}/model.caffemodel"),
        *("--onnx", f"{folder}/model.onnx"),
    )
    reference = cv2.dnn.readNetFromCaffe(f"{folder}/model.prototxt", f"{folder}/model.caffemodel")
    reference.setInput(x)
    return (folder / "model.onnx").read_bytes(), [reference.forward()]


def files(name: str, cases: list[str]) -> Iterator[tuple[Path, dict[str, np.ndarray]]]:
    if name == "onnx_graphs":
        from tools.golden.torch_graphs import exported

        for case, arrays in exported():
            if not cases or case in cases:
                yield DATA / f"onnx_{case}.npz", arrays
        return
    for case in cases:
        x = np.random.RandomState(1).rand(1, 16, 12, 3).astype("float32")
        x = np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if case == "caffe" else x
        convert = {"tensorflow": tensorflow, "tflite": tflite, "caffe": caffe}[case]
        with tempfile.TemporaryDirectory() as folder:
            model, outputs = convert(Path(folder), x)
        arrays = {f"out{number}": out for number, out in enumerate(outputs)}
        yield DATA / f"foreign_{case}.npz", {"model": np.frombuffer(model, np.uint8), "x": x, **arrays}
