"""Analysis of loadouts and casts: explanations, comparisons, replays, exploration, estimates and odds."""
