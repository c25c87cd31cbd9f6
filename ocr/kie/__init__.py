"""Key information of pages: words with boxes get tags, tags become fields and pairs."""
