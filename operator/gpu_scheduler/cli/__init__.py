"""The command line: one program, and a module for each command, imported when it runs."""
