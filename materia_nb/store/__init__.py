"""Casts on disk: journals, artifacts, recovery, the list of casts, and the reader of recorded casts."""
