"""Looking into a cast: why it went where it went."""
