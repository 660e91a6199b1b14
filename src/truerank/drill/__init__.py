"""The failure experiment on real engines: break something, look what readers see, wait, compare."""
