"""Reference outputs of a model, as the table REFERENCES of its golden test asks for them.

    python tools/golden/reference.py vgg [case ...]        needs: what the calls name, such as paddlepaddle 2.6

reads tests/golden/test_vgg.py, which it does not import: REFERENCES is a literal, and the environment of a reference
has no jax. A case is a row

    "vgg11": {"call": "paddle.vision.models.vgg11", "options": {}, "size_hw": (64, 96), "stages": ("features.2",)}

of the function or class that makes the model, its keywords, the size of the images, and the sublayers to look at; a
dict {ours: theirs} where their names differ. Optional: `images` (2) is how many there are, `gain` (1.0) multiplies
kernels, so that the outputs still depend on the image, `train` (False) asks for the outputs in training too, `eval`
("eval.{}") are the names of those in inference: "eval.0" is the first alone.

Written to tests/golden/data/<test>/<case>.npz: names and shapes, the number of parameters, and the thinned stages and
outputs, NCHW. Weights are drawn from their names (framework/interop/named_weights.py), so none are stored.
tests/golden/parity.py compares.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import paddle

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"


def load(path: Path) -> Any:
    """A module by path: its package would import jax."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


named_weights = load(GOLDEN.parents[1] / "framework" / "interop" / "named_weights.py").named_weights
shared = load(GOLDEN / "thinning.py")


def references(test: str) -> dict[str, dict[str, Any]]:
    """The literal REFERENCES of tests/golden/test_<test>.py."""
    path = GOLDEN / f"test_{test}.py"
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == "REFERENCES":
            return ast.literal_eval(node.value)
    sys.exit(f"{path} has no table REFERENCES")


def build(call: str, options: dict[str, Any]) -> paddle.nn.Layer:
    module, _, name = call.rpartition(".")
    return getattr(importlib.import_module(module), name)(**options)


def shapes_of(model: Any) -> dict[str, tuple[int, ...]]:
    """Of every array of a model's state, by its name."""
    return {key: tuple(value.shape) for key, value in model.state_dict().items()}


def spell(shapes: dict[str, tuple[int, ...]]) -> np.ndarray:
    """Names with their shapes as bytes, a line each, which compress better than an array of texts."""
    lines = (f"{key} {'x'.join(map(str, shape))}" for key, shape in sorted(shapes.items()))
    return np.array("\n".join(lines).encode())


def outputs(model: paddle.nn.Layer, images: np.ndarray) -> list[np.ndarray]:
    with paddle.no_grad():
        found = model(paddle.to_tensor(images))
    return [out.numpy() for out in (found if isinstance(found, (list, tuple)) else [found])]


def write(test: str, name: str, case: dict[str, Any]) -> None:
    model = build(case["call"], case.get("options", {}))
    state = model.state_dict()
    shapes = {key: tuple(value.shape) for key, value in state.items()}
    weights, first = shared.amplify(named_weights(shapes), case), {}
    # A parameter of two names has the values of the first, as in a file of weights both are equal.
    model.set_state_dict({key: weights[first.setdefault(id(value), key)] for key, value in state.items()})
    model.eval()
    found: dict[str, np.ndarray] = {}
    sublayers, stages = dict(model.named_sublayers()), case.get("stages", ())
    handles = []
    for ours, theirs in (stages if isinstance(stages, dict) else dict(zip(stages, stages))).items():
        keep = lambda layer, args, out, ours=ours: found.__setitem__(ours, out.numpy())  # noqa: E731
        handles.append(sublayers[theirs].register_forward_post_hook(keep))
    images = shared.images(case)
    found |= {
        f"eval.{i}": out for i, out in enumerate(outputs(model, images)[: 1 if "eval" in case else None])
    }
    for handle in handles:
        handle.remove()
    if case.get("train"):
        model.train()
        for layer in model.sublayers():
            if isinstance(layer, (paddle.nn.Dropout, paddle.nn.Dropout2D)):
                layer.eval()
        found |= {f"train.{i}": out for i, out in enumerate(outputs(model, images))}
    for key, out in found.items():
        print(f"{name:20} {key:24} {out.shape!s:20} max |x| {np.abs(out).max():.4f}, std {out.std():.4f}")
    count = sum(int(np.prod(p.shape)) for p in model.parameters() if not p.stop_gradient)
    print(f"{name:20} {len(shapes)} entries, {count:,} parameters")
    keys = "\n".join(f"{key} {'x'.join(map(str, shape))}" for key, shape in sorted(shapes.items()))
    folder = GOLDEN / "data" / test
    folder.mkdir(parents=True, exist_ok=True)
    thinned = {key: shared.thin(out) for key, out in found.items()}
    np.savez_compressed(
        folder / f"{name}.npz", keys=np.array(keys.encode()), count=np.array(count), **thinned
    )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    table = references(sys.argv[1])
    for chosen in sys.argv[2:] or table:
        write(sys.argv[1], chosen, table[chosen])
