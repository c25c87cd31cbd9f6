"""How Paddle's eager mode works here: Tensor, tape, dispatch, tracing. What programs import stands beside this
folder."""
