"""Running processes with enforced limits, and running utilities, which read JSON from stdin (R23-R25)."""
