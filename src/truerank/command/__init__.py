"""The caller's transaction: one SQL call that has one effect, however often it is sent."""
