"""What OCR gives back: words, lines, pages, blocks, and the text layer of pages."""
