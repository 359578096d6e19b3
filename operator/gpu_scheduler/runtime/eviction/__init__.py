"""Pods that must leave their node: who decides so, and how it is carried out."""
