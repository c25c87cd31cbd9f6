"""Training: the Task that a domain plugs in, the compiled step, the Trainer, and Paddle's Model on top of it."""
