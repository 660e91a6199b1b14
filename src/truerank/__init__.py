"""Truerank: leaderboards with PostgreSQL as the truth and Valkey as a fast view of it."""
