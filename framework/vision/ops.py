"""Operations of paddle.vision.ops on arrays, maps channels-last, by this path for one more release.

They stand in `framework.nn.functional`; Paddle's own, layers and files among them, are `framework.paddle.vision.ops`.
"""

import importlib

_MODULES = {
    "boxes": ("matrix_nms", "nms"),
    "deform": ("deform_conv2d",),
    "proposals": ("box_coder", "distribute_fpn_proposals", "generate_proposals", "prior_box"),
    "roi": ("psroi_pool", "roi_align", "roi_pool"),
    "yolo": ("yolo_box", "yolo_loss"),
}
_NAMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name in _NAMES:
        return getattr(importlib.import_module(f"framework.nn.functional.{_NAMES[name]}"), name)
    raise AttributeError(f"framework.vision.ops has no {name!r}; framework.paddle.vision.ops has Paddle's")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
