"""What a database shows of itself: status, summary, progress, and tables in a notebook."""
