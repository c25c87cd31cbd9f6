"""What a domain is to the workflow, and the base classes of its options, predictors and results."""
