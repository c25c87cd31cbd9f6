"""A folder with a page that runs an artifact in a browser; its code is built of tools/web."""
