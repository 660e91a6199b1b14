"""A season ends: what is due to be closed is closed."""
