"""Examine a deployment, and say what to do about what isn't as it should be."""
