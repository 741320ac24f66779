"""The functions of the language: what they take and what they give."""
