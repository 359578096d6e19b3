"""GPUProjects on the command line: names, what is created, what is shown."""
