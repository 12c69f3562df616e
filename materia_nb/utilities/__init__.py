"""Runs processes with enforced limits, and utilities, which are processes that read JSON from stdin (R23-R25)."""
