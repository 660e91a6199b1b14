"""The command line: everything that Truerank does, for people and for scripts."""

from truerank.cli.app import main

__all__ = ["main"]
