"""From what the watches deliver to the records of the state."""
