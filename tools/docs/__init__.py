"""Tables and pictures of the documents: `python -m tools.docs` renews the tables."""
