"""Oar's framework: layers, data, training, export and inference on JAX/XLA."""
