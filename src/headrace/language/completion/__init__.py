"""What may come next in a statement that is being written, for the shell and the page."""
