"""Batch work over many files: inputs, a row for each file, files of rows, and the workers of Ray Data."""
