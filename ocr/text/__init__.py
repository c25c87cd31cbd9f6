"""Lines of text: detection, recognition, their decoding, dictionaries, reading order, scores."""
