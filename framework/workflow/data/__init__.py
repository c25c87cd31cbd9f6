"""Data sets before training: check, split, synthesise, and labels of other tools."""
