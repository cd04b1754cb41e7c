"""Frazil beside its peers, measured: `python -m bench --help`."""
