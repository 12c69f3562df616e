"""Run processes with enforced limits, and utilities with JSON on stdin (R23-R25)."""
