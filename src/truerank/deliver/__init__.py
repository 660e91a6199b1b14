"""Tell receivers by webhook what happened: at least once, signed, and never in anybody's way."""
