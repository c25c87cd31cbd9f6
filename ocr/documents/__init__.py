"""Documents: text layers, ruling lines and lines of text to blocks in reading order. `ocr.document` is how to get
them."""
