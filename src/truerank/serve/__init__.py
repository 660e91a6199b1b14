"""The HTTP edge: scores in, answers with their age out, live hints, and a page that shows them."""
