"""Quota, limits and fair shares: what each project may take."""
