"""Data of OCR: lines and pages with their text, in the formats that PaddleOCR, ICDAR and LMDB have them in."""
