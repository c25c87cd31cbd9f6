"""Losses of text detection and recognition."""
