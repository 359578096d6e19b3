"""What several of the leader's loops use: Events, polls, queues, limits, settings."""
