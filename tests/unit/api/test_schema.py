"""From pydantic's JSON schema to a structural one."""

from enum import StrEnum

import pytest
from pydantic import Field

from gpu_scheduler.api.model import ApiModel
from gpu_scheduler.api.schema import structural


class Colour(StrEnum):
    """Of the class."""

    RED = "red"


class Inner(ApiModel):
    """Of the class."""

    size_mib: int = 0


class Outer(ApiModel):
    """An outer object."""

    colour: Colour = Field(Colour.RED, description="Of the field.")
    maybe: Inner | None = Field(None, description="Of the field.")
    names: dict[str, Inner] = Field(max_length=4)


class Union(ApiModel):
    both: int | str


def test_references_and_optional_fields_are_inlined_and_the_fields_description_wins():
    inner = {"type": "object", "properties": {"sizeMiB": {"type": "integer"}}}
    assert structural(Outer, defaults=False) == {
        "description": "An outer object.",
        "type": "object",
        "required": ["names"],
        "properties": {
            "colour": {"description": "Of the field.", "type": "string", "enum": ["red"]},
            "maybe": {"description": "Of the field.", **inner},
            "names": {
                "type": "object",
                "maxProperties": 4,
                "additionalProperties": {"description": "Of the class.", **inner},
            },
        },
    }


def test_defaults_are_kept_on_request():
    schema = structural(Outer, defaults=True)
    assert schema["properties"]["colour"]["default"] == "red"
    assert schema["properties"]["maybe"]["properties"]["sizeMiB"]["default"] == 0


def test_a_field_of_two_types_is_refused():
    with pytest.raises(ValueError, match="one type"):
        structural(Union, defaults=False)
