"""A database as it is shown: status, summary, progress, and tables in a notebook."""
