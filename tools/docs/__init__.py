"""Tables and images of the documents: `python -m tools.docs` renews the tables."""
