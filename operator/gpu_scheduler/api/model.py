"""The base of every API model: snake_case in Python, camelCase in JSON, frozen.

Unknown fields are ignored, so an operator of one version reads objects of the next. Models say
what type a field has and what it means; what values are sensible is said in ``rules`` (CEL, for
the API server) and ``validate`` (Python, for the operator).
"""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel

from gpu_scheduler.api.rule import Rule

JsonSchema = dict[str, JsonValue]
RULES = "x-kubernetes-validations"
SET: JsonSchema = {"x-kubernetes-list-type": "set"}
"""Schema of a list in which nothing stands twice."""


def by_key(name: str) -> JsonSchema:
    """Schema of a list whose entries are told apart by one of their fields."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [name]}


def json_name(python_name: str) -> str:
    """JSON name of an attribute: ``time_limit_seconds`` -> ``timeLimitSeconds``.

    Units and the word GPU keep the case that people write: ``memoryMiB``, ``allocatedGPU``.
    """
    return to_camel(python_name).replace("Mib", "MiB").replace("Gpu", "GPU")


class ApiModel(BaseModel):
    """A part of a custom resource."""

    model_config = ConfigDict(
        alias_generator=json_name,
        populate_by_name=True,
        frozen=True,
        extra="ignore",
    )

    def to_json(self) -> dict[str, Any]:
        """The object as the API server takes it; absent fields are left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def _number_text(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("true and false are not numbers of GPUs")
    return str(value) if isinstance(value, float) else value


def _plain_number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


ExactNumber = Annotated[
    Decimal,
    BeforeValidator(_number_text),
    PlainSerializer(_plain_number),
]
"""A number in JSON that is exact in Python: 0.1 is 0.1, never 0.1000000000000000055."""


def _quantity_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


ComputeCapability = Annotated[str, Field(max_length=5, pattern=r"^[0-9]{1,2}\.[0-9]{1,2}$")]

INT_OR_STRING: JsonSchema = {"x-kubernetes-int-or-string": True, "maxLength": 32}

Quantity = Annotated[
    str,
    BeforeValidator(_quantity_text),
    WithJsonSchema(INT_OR_STRING),
]
"""A quantity as in pods: ``20Gi``, ``500m``, ``4``."""


def rules(*each: Rule) -> JsonSchema:
    """The part of a schema that holds CEL rules; also what ``json_schema_extra`` takes."""
    return {RULES: [dict(rule.to_json()) for rule in each]}


def rules_of(each: Iterable[Rule], fields: Mapping[str, Rule]) -> Callable[[dict[str, Any]], None]:
    """What ``json_schema_extra`` takes where fields have rules beside those of their types."""

    def extend(schema: dict[str, Any]) -> None:
        schema.update(rules(*each))
        for name, rule in fields.items():
            schema["properties"][name].update(rules(rule))

    return extend
