"""From a text to a plan, and what is decided about how it runs."""
