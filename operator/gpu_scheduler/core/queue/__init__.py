"""What waits, in which order; kept from cycle to cycle."""
