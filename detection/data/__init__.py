"""Data sets of objects on pictures. `python -m detection.data check <folder or file>` looks one over."""
