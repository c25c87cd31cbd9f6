"""What OCR results are written as: JSON, PaddleOCR's structures, Markdown, hOCR, ALTO, searchable PDF, pictures.

Each is also a method of `ocr.results.Document` or `Page`.
"""
