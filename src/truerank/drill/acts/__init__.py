"""One module for each way in which a pipeline breaks."""
