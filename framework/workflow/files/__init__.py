"""Files in and out: images, PDFs, videos and documents, and what is written of them."""
