"""What is kept? The journal, artifacts, recovery, the catalogue, and the reader of recorded casts."""
