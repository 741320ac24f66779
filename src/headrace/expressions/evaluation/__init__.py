"""How expressions are evaluated over Arrow columns: one module per family of functions."""
