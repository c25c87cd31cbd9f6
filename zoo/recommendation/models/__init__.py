"""Networks of clicks, of several tasks, of sequences and of pairs of users and items."""
