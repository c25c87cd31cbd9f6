"""Transforms of lines and pages of text; those of all images are in framework/vision/sample_transforms."""
