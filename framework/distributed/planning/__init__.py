"""What a training step needs on a mesh that is not here: memory, products and traffic, from its jaxpr alone.

`trace` flattens a jaxpr, `spread` says how each of its arrays is divided on a mesh, `estimate` what that needs,
`hardware` what devices give, `search` tries the meshes.
"""
