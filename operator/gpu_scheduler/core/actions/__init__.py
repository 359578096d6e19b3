"""The steps of a plan, one module each, in the order in which ``core.plan`` lists them."""
