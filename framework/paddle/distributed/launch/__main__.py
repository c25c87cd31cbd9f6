"""python -m paddle.distributed.launch --nproc_per_node 2 train.py"""

from __future__ import annotations

from framework.paddle.distributed.launch.main import launch

launch()
