"""Find every difference between the source and what is shown, and put it right."""
