"""Marks text that names nothing of an owner's, such as a label's key or the model of a GPU.

All other text of what is planned with is replaced where names are not to be given away.
"""

from typing import Annotated

VOCABULARY = "vocabulary"
Word = Annotated[str, VOCABULARY]
