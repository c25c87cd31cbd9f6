"""python -m paddle.distributed.launch: `oar launch` under Paddle's name."""
