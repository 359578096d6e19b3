"""The pod of a job that a command is about, and handing it over to kubectl."""
