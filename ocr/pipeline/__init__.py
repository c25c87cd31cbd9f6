"""Detect, crop, orient, recognise: stages composed to a reader of pages."""
