"""Where a query that begins has its state from, and from when on it answers: decided once for all changes."""
