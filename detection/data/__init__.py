"""Data sets of objects on images. `python -m detection.data check <folder or file>` looks one over."""
