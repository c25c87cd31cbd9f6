"""Data sets of images with text and the transforms they are trained with; nothing that runs artifacts imports it."""
