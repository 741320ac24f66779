"""Tables as text and files."""
