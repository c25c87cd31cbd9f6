"""Data sets of images with a class for every pixel. `python -m segmentation.data check` checks one."""
