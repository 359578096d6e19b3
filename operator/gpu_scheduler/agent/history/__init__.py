"""What each GPU and each container did, kept on the node that it happened on (ADR 0069)."""
