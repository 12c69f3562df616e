"""The engine: immutable state, pure transitions, recorded decisions, prompts."""
