"""Rules that leave out or merge what changes nothing."""
