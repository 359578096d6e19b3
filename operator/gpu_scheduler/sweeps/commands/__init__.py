"""``kubectl gpu sweep``: look at a sweep before it runs, while it runs and when it is over."""
