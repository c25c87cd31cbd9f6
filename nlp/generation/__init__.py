"""Texts that language models write: options, processors of scores, searches, and the engine that serves many at once."""
