"""What OCR results are written as: JSON, PaddleOCR's structures, Markdown, hOCR, ALTO, searchable PDF, images.

Each is also a method of `ocr.results.pages.Document` or `Page`.
"""
