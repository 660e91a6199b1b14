"""Take in events from files: read line by line, load in batches, tell what became of each.

Nothing here knows of a terminal.
"""
