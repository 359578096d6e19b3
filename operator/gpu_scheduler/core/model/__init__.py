"""What the planner speaks of: the cluster, what pods ask for, what it decides.

Values, and the snapshot that a plan consumes; no step of the plan is here.
"""
