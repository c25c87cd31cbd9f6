"""Data sets of pictures with a class for every pixel. `python -m segmentation.data check` looks one over."""
