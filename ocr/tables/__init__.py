"""Tables: ruling lines, cells, structure networks, HTML, scores."""
