"""Data sets of objects on images. `python -m detection.data check <folder or file>` checks one."""
