"""Pages as images: orientation, unwarping, pages that lie on their side."""
