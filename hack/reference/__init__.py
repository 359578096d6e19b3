"""The generated pages of docs/reference: ``make reference`` writes them, tests compare them.

Each module has ``page()``, which makes one page of what the code says of itself. What the code
leaves unsaid is an error here, and is mended there.
"""
