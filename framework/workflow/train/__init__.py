"""Train and evaluate a configuration."""
