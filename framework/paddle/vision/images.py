"""paddle.vision's choice of the kind of images: "pil", "cv2" (arrays) or "tensor"."""

from __future__ import annotations

import os

from framework.core.errors import ConfigError
from framework.core.process_state import state
from framework.paddle.vision.transforms.functional import ImageOrTensor, to_tensor
from framework.vision import backend as core


def set_image_backend(backend: str) -> None:
    """What `image_load` and data sets give that are not told: "pil" PIL images, "cv2" arrays, "tensor" Tensors (of
    `image_load`; data sets then give PIL images).

    Raises:
        ConfigError: there is no such backend.
    """
    if backend not in ("pil", "cv2", "tensor"):
        raise ConfigError(
            "unknown image backend",
            where="paddle.vision.set_image_backend",
            received=repr(backend),
            allowed="pil, cv2, tensor",
        )
    core.set_image_backend("pil" if backend == "tensor" else backend)
    state.image_tensors = backend == "tensor"


def get_image_backend() -> str:
    """ "pil" at first."""
    return "tensor" if state.image_tensors else core.get_image_backend()


def image_load(path: str | os.PathLike[str], backend: str | None = None) -> ImageOrTensor:
    """The image of a file: a PIL image, an array [H, W, 3] in the order B, G, R ("cv2"), or a Tensor [3, H, W]."""
    chosen = get_image_backend() if backend is None else backend
    if chosen == "tensor":
        return to_tensor(core.image_load(path, "pil"))
    loaded = core.image_load(path, chosen)
    return loaded[..., ::-1] if chosen == "cv2" else loaded  # type: ignore[index]
