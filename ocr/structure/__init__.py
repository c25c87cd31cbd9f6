"""Documents: from the text layer of PDFs, ruling lines and the places of words to blocks in reading order.

`ocr.document` is how to get them; see `ocr.structure.document`.
"""
