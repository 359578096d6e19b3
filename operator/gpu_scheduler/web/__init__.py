"""What the operator serves over HTTP: health and metrics."""
