"""Scores in the caller's own transaction, for libraries other than psycopg.

Each module has `submit_score` and `submit_scores` of one library, with the receipts and errors of
`truerank.submit_score` and `truerank.submit_scores`. It sends one statement and never commits.
Each needs the extra of its name: `pip install 'truerank[sqlalchemy]'`. For psycopg itself see
`truerank` (blocking) and `truerank.aio`.
"""
