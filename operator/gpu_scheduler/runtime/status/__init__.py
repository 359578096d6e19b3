"""What objects say of themselves: status, conditions, Events."""
