"""Random programs over the driver's calls, against a model of what a driver counts of them."""
