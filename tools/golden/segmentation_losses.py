"""Makes tests/golden/data/segmentation_losses/reference.npz: PaddleSeg's losses, their gradients, and its metrics.

Run it from the root of the repository in an environment with paddlepaddle 2.6.2 and paddleseg 2.8:

    python tools/golden/segmentation_losses.py

For each case `<case>/loss` [] and `<case>/gradient` [N, H, W, C] with respect to the logits, where upstream has one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import paddle  # type: ignore[import-not-found]
from paddleseg import models  # type: ignore[import-not-found]  # noqa: F401  (registers the losses)
from paddleseg.cvlibs import manager  # type: ignore[import-not-found]
from paddleseg.utils import metrics  # type: ignore[import-not-found]
from segmentation_losses_cases import CASES, CLASSES, IGNORED, PADDLESEG, Case, labels, logits, predictions

OUTPUT = Path(__file__).resolve().parents[2] / "tests/golden/data/segmentation_losses/reference.npz"


def run(case: Case) -> dict[str, np.ndarray]:
    options = dict(case.options)
    if "hardest" in options:
        options["top_k_percent_pixels"] = options.pop("hardest")
    if case.loss == "Focal":
        options["num_class"] = case.classes
    loss = manager.LOSSES[PADDLESEG[case.loss]](**options)
    given = paddle.to_tensor(logits(case).transpose(0, 3, 1, 2), stop_gradient=False)
    found = loss(given, paddle.to_tensor(labels(case.labels).astype(np.int64)))
    found.backward()
    return {"loss": found.numpy(), "gradient": given.gradient().transpose(0, 2, 3, 1)}


def scores() -> dict[str, np.ndarray]:
    paddle.concat = paddle.stack  # PaddleSeg 2.8 concatenates scalars, which Paddle 2.6 gives no axis
    areas = metrics.calculate_area(
        paddle.to_tensor(predictions()), paddle.to_tensor(labels("absent")), CLASSES, IGNORED
    )
    by_class, mean = metrics.mean_iou(*areas)
    accuracy, precision, recall = metrics.class_measurement(*areas)
    dice, mean_dice = metrics.dice(*areas)
    named = {
        "iou": by_class,
        "miou": mean,
        "accuracy": accuracy,
        "precision": precision,
        "recall": recall,
        "kappa": metrics.kappa(*areas),
        "dice": dice,
        "mean_dice": mean_dice,
    }
    return {f"metrics/{name}": np.asarray(value) for name, value in named.items()}


def main() -> None:
    stored = {f"{name}/{key}": value for name, case in CASES.items() for key, value in run(case).items()}
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(OUTPUT, **stored, **scores())
    print(f"{OUTPUT}: {OUTPUT.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
