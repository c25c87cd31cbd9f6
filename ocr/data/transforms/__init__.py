"""Augmentations of lines and pages of text. Those of any image are in `framework.vision.sample_transforms`."""
