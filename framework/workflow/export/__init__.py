"""From trained models to artifacts, ONNX files, quantised models, and the programs that the package carries."""
