"""Text to syntax trees: one module per clause, over one cursor."""
