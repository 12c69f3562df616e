"""Run processes with enforced limits, and utilities, which read JSON from stdin (R23-R25)."""
