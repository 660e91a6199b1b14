"""Answers, each with its freshness."""
