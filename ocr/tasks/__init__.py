"""What is trained: losses, inference and metrics of each kind of model."""
