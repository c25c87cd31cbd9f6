"""Text that is drawn while it is read: lines for recognisers, pages for detectors, and the command that writes them."""
