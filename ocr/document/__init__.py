"""Documents: what a page says by its text layer, its ruling lines and the places of its words."""
