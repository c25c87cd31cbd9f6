"""`oar verify-deploy`: one model on every runtime that is installed, and whether its results are equal."""
