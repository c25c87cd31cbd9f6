"""paddle.utils.cpp_extension: operators in C++ build against Paddle's headers, which are not here."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import NoReturn

from framework.core.errors import ForeignNameError
from framework.paddle._kernel.modules import complete as _complete


def _refuse(name: str) -> NoReturn:
    raise ForeignNameError(
        "operators in C++ or CUDA for Paddle do not load here",
        where=f"paddle.utils.cpp_extension.{name}",
        fix="write it with paddle operations or jax (paddle.core_layer, a paddle.autograd.PyLayer over jax functions); "
        "XLA fuses them",
    )


def load(*args: object, **kwargs: object) -> NoReturn:
    """Build and load C++ operators: not here. Raises: ForeignNameError."""
    _refuse("load")


def setup(**attr: object) -> NoReturn:
    """Install C++ operators: not here. Raises: ForeignNameError."""
    _refuse("setup")


def CppExtension(sources: object, *args: object, **kwargs: object) -> NoReturn:
    """Sources of C++ operators: not here. Raises: ForeignNameError."""
    _refuse("CppExtension")


def CUDAExtension(sources: object, *args: object, **kwargs: object) -> NoReturn:
    """Sources of CUDA operators: not here. Raises: ForeignNameError."""
    _refuse("CUDAExtension")


CUDA_HOME = None  # no compiler of CUDA is looked for: what it would build does not load


def get_build_directory(verbose: bool = False) -> str:
    """Where Paddle would put built operators: PADDLE_EXTENSION_DIR, or a folder of the user's cache."""
    folder = os.environ.get("PADDLE_EXTENSION_DIR")
    path = Path(folder) if folder else Path.home() / ".cache" / "paddle_extensions"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        path = Path(tempfile.gettempdir()) / "paddle_extensions"
        path.mkdir(parents=True, exist_ok=True)
    return str(path)


_complete(__name__)
