"""What is committed and not yet shown."""
