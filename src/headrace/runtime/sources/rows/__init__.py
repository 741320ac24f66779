"""The contract of a split source, and values and types as any of them reads them."""
