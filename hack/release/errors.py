"""What keeps a release from being made, in words for who makes it."""


class ReleaseError(Exception):
    """Something that the maker of the release can put right."""
