"""A number that stands as text in an annotation or a label.

Whoever may edit the object may write anything there, and the object must not vanish for it: a pod
that is not seen holds no devices. Python itself refuses to read some thousands of digits.
"""

LARGEST = 2**31 - 1  # of an int32, as which Kubernetes counts indexes
_MOST_DIGITS = len(str(LARGEST))


def number(text: str) -> int | None:
    """The number from 0 to ``LARGEST`` that ``text`` is in decimal digits; None for what is none.

    >>> number("12"), number("-1"), number("9" * 5000)
    (12, None, None)
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        return None
    found = int(text)
    return found if found <= LARGEST else None
