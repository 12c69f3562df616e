"""How a process is run: commands with real limits, utilities with their JSON on stdin (R23-R25)."""
