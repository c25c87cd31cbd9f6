"""`import paddle` means Oar for every process that has the folder above on its PYTHONPATH, as `oar run` sets it."""

import framework.paddle.install  # noqa: F401  (replaces this module in sys.modules)
