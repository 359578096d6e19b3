"""Pods as last seen: what they ask for, hold and say."""
