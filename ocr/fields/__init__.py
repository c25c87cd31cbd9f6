"""Fields of forms and receipts: words get tags, tags become fields and pairs; rules for receipts and MRZ lines."""
