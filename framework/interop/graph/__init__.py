"""Graphs of other frameworks as Layers: the Layer, its values with their layout, and the operators of each format."""
