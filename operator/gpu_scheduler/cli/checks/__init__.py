"""What ``kubectl gpu check`` looks at: a table of pure functions, each from facts to findings."""
