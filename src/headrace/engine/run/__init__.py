"""Carrying out: the definitions of a database, and the run that answers them."""
