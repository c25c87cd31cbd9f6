"""Files of weights: safetensors, Paddle's .pdparams and .pdiparams, torch checkpoints; weights matched to layers."""
