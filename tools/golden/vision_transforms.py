"""Makes tests/golden/data/vision_transforms.npz: what paddle.vision.transforms computes for vision_transforms_cases.py.

    python tools/golden/vision_transforms.py         in an environment with paddlepaddle 2.6.2, opencv and Pillow

Each case runs on an array and, but for channels-first ones, on a PIL image. Where Paddle raises, nothing is stored;
where it loses the axis of one channel, the axis is put back. On PIL images it does not look at the `fill` of affine and
perspective and puts an axis before grey images in normalize; those are left out. OF_TENSORS run on Tensors too.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import paddle  # type: ignore[import-not-found]
import paddle.vision.transforms as T  # type: ignore[import-not-found]
from PIL import Image
from vision_transforms_cases import CASES, OF_TENSORS, image, key

OUTPUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "vision_transforms.npz"


def main() -> None:
    stored = {}
    for number, (function, name, args, options) in enumerate(CASES):
        pixels = image(name)
        inputs = {"array": pixels}
        if name != "first":
            inputs["pil"] = Image.fromarray(
                pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels
            )
        for backend, value in inputs.items():
            if backend == "pil" and options.get("fill") and function in ("affine", "perspective"):
                continue
            if backend == "array" and function == "adjust_saturation":  # it is random
                continue
            if backend == "pil" and (function, name) == ("normalize", "gray"):
                continue
            try:
                out = np.asarray(getattr(T.functional, function)(value, *args, **options))
            except Exception as error:
                print(
                    f"{function} {name} {args} {options} on {backend}: {type(error).__name__}: {error}"[:200]
                )
                continue
            if backend == "array" and out.ndim < pixels.ndim:
                out = out[..., None]
            stored[key(number, backend)] = out
        if function in OF_TENSORS and pixels.ndim == 3:
            tensor = paddle.to_tensor(pixels.transpose(2, 0, 1).astype(np.float32) / np.float32(255))
            stored[key(number, "tensor")] = (
                getattr(T.functional, function)(tensor, *args).numpy().transpose(1, 2, 0)
            )
    np.savez_compressed(OUTPUT, **stored)
    print(f"{len(stored)} results, {OUTPUT.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
