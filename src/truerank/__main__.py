"""`python -m truerank` is the command `truerank`."""

from truerank.cli import main

main()
