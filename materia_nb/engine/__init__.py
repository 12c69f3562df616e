"""The engine: decides what a cast does next and assembles the prompts, with pure functions on immutable state."""
