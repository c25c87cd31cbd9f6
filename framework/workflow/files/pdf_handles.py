"""What PDFium's functions take and give, as ctypes sees it."""

from __future__ import annotations

import ctypes
from typing import TypeAlias

Handle: TypeAlias = "ctypes._Pointer[ctypes.Structure]"
"""A pointer to a page, an object, an annotation, …, whose structures PDFium does not show; without an address it is
false."""
