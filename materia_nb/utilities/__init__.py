"""Run processes with enforced limits. A utility is a process that reads JSON from stdin (R23-R25)."""
