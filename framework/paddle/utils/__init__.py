"""paddle.utils: unique names and small helpers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.utils import cpp_extension as cpp_extension
from framework.paddle.utils import dlpack as dlpack
from framework.paddle.utils import download as download
from framework.paddle.utils import unique_name as unique_name
from framework.paddle.utils.helpers import deprecated as deprecated
from framework.paddle.utils.helpers import require_version as require_version
from framework.paddle.utils.helpers import run_check as run_check
from framework.paddle.utils.helpers import try_import as try_import
from framework.paddle.utils.structure import assert_same_structure as assert_same_structure
from framework.paddle.utils.structure import flatten as flatten
from framework.paddle.utils.structure import is_sequence as is_sequence
from framework.paddle.utils.structure import map_structure as map_structure
from framework.paddle.utils.structure import pack_sequence_as as pack_sequence_as

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
