"""From the name of a model, a configuration or a folder to an artifact, a predictor or a model."""
