"""What stands behind ``kubectl gpu dashboard``."""
