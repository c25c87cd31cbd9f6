"""Rows of tables and logs of interactions: files, data sets, features, and the hash of features."""
