"""Run processes with enforced limits, and run utilities, which read JSON from stdin (R23-R25)."""
