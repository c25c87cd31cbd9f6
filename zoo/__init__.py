"""Architectures that the domains share, their weights, and the smaller domains, each a folder."""


def __getattr__(name: str) -> object:
    if name == "predictor":  # its name of before, for one release
        from zoo.classification import predictor

        return predictor
    raise AttributeError(f"module 'zoo' has no attribute {name!r}")
