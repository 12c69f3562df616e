"""What happens next, and why? Immutable state, pure transitions, decisions, prompts."""
