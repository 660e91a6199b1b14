"""What a process tells about itself: its log, and what it counts."""
