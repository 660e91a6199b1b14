"""What Truerank costs and achieves, beside baselines that run in the same way: see __main__."""
