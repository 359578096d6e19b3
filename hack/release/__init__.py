"""A release, built into dist/: nothing is published, and the same commit makes the same bytes.

Everything is made from an export of the commit (`source`), never from the working tree, and dated
by the commit. docs/release.md says what is in a release, how it is published and how it is
checked.
"""
