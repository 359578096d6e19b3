"""The operator at work: queues, the planning loop, the binder, status, recovery, election."""
