"""Casts on disk: the journal, artifacts, recovery, the catalogue, and the reader of recorded casts."""
