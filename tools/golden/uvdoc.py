"""Reference outputs of UVDoc, from PaddleX' network definition.

    python tools/golden/uvdoc.py PADDLEX        needs: pip install paddlepaddle==2.6.2 "numpy<2"

PADDLEX is an unpacked PaddleX 3.7, of which the one file of the network is read, with plain layers in place of what it
imports. Written to tests/golden/data/uvdoc.npz: names and shapes of the state dict as the official .pdparams has them,
the number of parameters, each stage's output, NCHW, thinned, the grid, and an image that was unwarped with it, thinned.
Every entry of the state dict is drawn from its name (framework/interop/named_weights.py), kernels times GAIN.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from reference import GOLDEN, load

named_weights = load(GOLDEN.parents[1] / "framework" / "io" / "named_weights.py").named_weights
shared = load(GOLDEN / "thinning.py")
GAIN = 0.8
SIZE_HW = (150, 100)
# PaddleX' attributes, and those of the official .pdparams (modules/base/utils/pdparams2safetensors/mapping.py).
NAMES = (
    (r"backbone\.resnet\.resnet_head\.0\.convolution", "resnet_head.0"),
    (r"backbone\.resnet\.resnet_head\.0\.normalization", "resnet_head.1"),
    (r"backbone\.resnet\.resnet_head\.1\.convolution", "resnet_head.3"),
    (r"backbone\.resnet\.resnet_head\.1\.normalization", "resnet_head.4"),
    (r"backbone\.bridge\.bridge\.(\d)\.blocks\.(\d)\.convolution", r"bridge_@\1.\2.0"),
    (r"backbone\.bridge\.bridge\.(\d)\.blocks\.(\d)\.normalization", r"bridge_@\1.\2.1"),
    (r"backbone\.resnet\.resnet_down\.(\d)\.layers\.(\d)\.", r"resnet_down.layer@\1.\2."),
    (r"(layer@\d\.0)\.conv_start\.convolution", r"\1.conv1"),
    (r"(layer@\d\.0)\.conv_final\.convolution", r"\1.conv2"),
    (r"conv_start\.convolution", "conv1.0"),
    (r"conv_final\.convolution", "conv2.0"),
    (r"conv_start\.normalization", "bn1"),
    (r"conv_final\.normalization", "bn2"),
    (r"(layer@\d\.\d)\.conv_down\.convolution", r"\1.downsample.0"),
    (r"(layer@\d\.\d)\.conv_down\.normalization", r"\1.downsample.1"),
    (r"head\.bridge_connector\.convolution", "bridge_concat.0"),
    (r"head\.bridge_connector\.normalization", "bridge_concat.1"),
    (r"head\.out_point_positions2D\.conv_down\.convolution", "out_point_positions2D.0"),
    (r"head\.out_point_positions2D\.conv_down\.normalization", "out_point_positions2D.1"),
    (r"head\.out_point_positions2D\.conv_down\.activation", "out_point_positions2D.2"),
    (r"head\.out_point_positions2D\.conv_up", "out_point_positions2D.3"),
)
STAGES = {
    "resnet_head": "backbone.resnet.resnet_head.1",
    "resnet_down.layer1": "backbone.resnet.resnet_down.0",
    "resnet_down.layer2": "backbone.resnet.resnet_down.1",
    "resnet_down.layer3": "backbone.resnet.resnet_down.2",
    "bridge_4": "backbone.bridge.bridge.3",
    "bridge_6": "backbone.bridge.bridge.5",
    "bridge_concat": "head.bridge_connector",
    "out_point_positions2D": "head.out_point_positions2D",
}


def official(name: str) -> str:
    for pattern, other in NAMES:
        name = re.sub(pattern, other, name)
    return re.sub(r"@(\d)", lambda match: str(int(match[1]) + 1), name)


def build(root: Path) -> paddle.nn.Layer:
    """The network of the file alone: its imports are of a package that needs a newer Paddle."""

    class Config:
        def __init__(self, **given: Any) -> None:
            pass

    class Model(paddle.nn.Layer):
        def __init__(self, config: Any) -> None:
            super().__init__()

    class Activations(dict):
        def __missing__(self, name: str) -> paddle.nn.Layer:
            return {"relu": paddle.nn.ReLU, "prelu": paddle.nn.PReLU}[name]()

    contents = {
        "activations": {"ACT2FN": Activations()},
        "transformers": {
            "BatchNormHFStateDictMixin": type("Mixin", (), {}),
            "PretrainedModel": Model,
            "PretrainedConfig": Config,
        },
    }
    for name in ("px", "px.common", "px.common.transformers", "px.unwarp", "px.unwarp.modeling"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = []  # type: ignore[attr-defined]
    for name, values in contents.items():
        module = sys.modules[f"px.common.transformers.{name}"] = types.ModuleType(name)
        vars(module).update(values)
    folder = root / "paddlex" / "inference" / "models" / "image_unwarping" / "modeling"
    for name in ("_config", "uvdoc"):
        spec = importlib.util.spec_from_file_location(f"px.unwarp.modeling.{name}", folder / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules["px.unwarp.modeling.uvdoc"].UVDocNet(
        sys.modules["px.unwarp.modeling._config"].UVDocConfig()
    )


def main(root: str) -> None:
    model = build(Path(root))
    model.eval()
    state = model.state_dict()
    names = {name: official(name) for name in state}
    shapes = {names[name]: tuple(value.shape) for name, value in state.items()}
    weights = shared.amplify(named_weights(shapes), {"gain": GAIN})
    model.set_state_dict({name: weights[ours] for name, ours in names.items()})
    found: dict[str, np.ndarray] = {}
    layers = dict(model.named_sublayers())
    for ours, theirs in STAGES.items():
        keep = lambda layer, args, out, ours=ours: found.__setitem__(ours, out.numpy())  # noqa: E731
        layers[theirs].register_forward_post_hook(keep)
    image = np.random.RandomState(7).uniform(0, 1, (1, 3, *SIZE_HW)).astype(np.float32)
    with paddle.no_grad():
        (flat,) = model([image])
    stored = {name: shared.thin(value) for name, value in found.items()}
    stored["keys"] = np.frombuffer(
        "\n".join(f"{n} {'x'.join(map(str, s))}" for n, s in sorted(shapes.items())).encode(), np.uint8
    )
    stored["count"] = np.array(sum(int(np.prod(p.shape)) for p in model.parameters()))
    stored["grid"] = found["out_point_positions2D"]
    stored["flat"] = shared.thin(flat)
    for name, value in stored.items():
        print(
            name,
            value.shape,
            float(np.std(value)) if value.dtype == np.float32 else value if value.ndim == 0 else "",
        )
    np.savez_compressed(GOLDEN / "data" / "uvdoc.npz", **stored)


if __name__ == "__main__":
    main(sys.argv[1])
