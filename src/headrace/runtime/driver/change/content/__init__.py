"""The content that new operators begin with, and the answers that queries have given so far."""
