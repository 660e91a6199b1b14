"""What Valkey shows: keys, scripts, and the worker that brings it up to date."""
