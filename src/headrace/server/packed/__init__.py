"""Packed bodies: how much they say they unpack to, read from their headers before anything is unpacked."""
