"""Room that is kept for a group, and room that is about to come free."""
