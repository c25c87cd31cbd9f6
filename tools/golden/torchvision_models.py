"""Names, shapes and logits of torchvision's classifiers, for tests/golden/test_torchvision.py.

    python tools/golden/torchvision_models.py [case ...]        needs: torch 2.13, torchvision 0.28

Weights are drawn from Paddle's spelling of each name and from Paddle's layout (framework/interop/named_weights.py),
so the test draws the same ones. Written to tests/golden/data/torchvision/<case>.npz; and what torch.save makes of a
square linear layer to docs/examples/square.pth.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

# The CPU build of torch lacks the operators of torchvision's GPU build; models need none of them.
torch.library.register_fake = lambda *_, **__: lambda function: function
import torchvision  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "tests" / "golden" / "data" / "torchvision"
SIDE = {"vit_b_16": 224, "swin_t": 88}
CASES = (
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "resnext50_32x4d",
    "resnext101_32x8d",
    "wide_resnet50_2",
    "vgg11",
    "vgg16_bn",
    "mobilenet_v3_small",
    "mobilenet_v3_large",
    "vit_b_16",
    "swin_t",
)


def load(path: Path) -> Any:
    """A module by path: its package would import jax."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


named_weights = load(ROOT / "framework" / "io" / "named_weights.py").named_weights
shared = load(ROOT / "tests" / "golden" / "torch_weights.py")
thinning = load(ROOT / "tests" / "golden" / "thinning.py")


def write(case: str) -> None:
    model = getattr(torchvision.models, case)().eval()
    state = model.state_dict()
    shapes = {name: tuple(value.shape) for name, value in state.items()}
    linear = {f"{name}.weight" for name, part in model.named_modules() if type(part) is torch.nn.Linear}
    linear |= {name for name in state if name.endswith(("in_proj_weight", "out_proj.weight"))}
    drawn = shared.torch_weights(shapes, linear, named_weights)
    model.load_state_dict(
        {name: torch.from_numpy(drawn.get(name, np.asarray(state[name]))) for name in state}
    )
    x = thinning.images({"size_hw": (SIDE.get(case, 64),) * 2, "images": 1})
    with torch.no_grad():
        logits = model(torch.from_numpy(x)).numpy()
    print(f"{case:20} {len(shapes)} entries, logits max {np.abs(logits).max():.4f}, std {logits.std():.4f}")
    keys = "\n".join(
        f"{name} {'x'.join(map(str, shape))} {'T' if name in linear else '-'}"
        for name, shape in shapes.items()
    )
    OUT.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(OUT / f"{case}.npz", keys=np.array(keys.encode()), logits=thinning.thin(logits))


def write_square(path: Path) -> None:
    """What torch.save makes of a net whose linear layers are all square."""
    weight = torch.arange(9, dtype=torch.float32).reshape(3, 3)
    torch.save({"fc.weight": weight, "fc.bias": torch.tensor([0.5, -1.0, 2.0])}, path)


if __name__ == "__main__":
    write_square(ROOT / "docs" / "examples" / "square.pth")
    for chosen in sys.argv[1:] or CASES:
        write(chosen)
