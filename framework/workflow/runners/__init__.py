"""Run exported models: images or texts in, typed results out."""
