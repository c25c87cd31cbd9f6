"""Engines that run an artifact's ONNX file. Their packages are extras and are imported when an engine is opened."""
