"""Files of programs: ONNX, Paddle's ProgramDesc (.pdmodel) and PIR (.json), in one form."""
