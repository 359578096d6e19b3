"""What the API server's own OpenAPI document says of a pod template: fields and types, no more.

Of the document's 1.6 MB only the schemas that a template refers to are kept, without their
descriptions. Every authenticated account may read it.
"""

from collections.abc import Iterator

import msgspec

PATH = "/openapi/v3/api/v1"
_REFERENCE = "#/components/schemas/"
_TEMPLATE = "io.k8s.api.core.v1.PodTemplateSpec"


class Schema(msgspec.Struct, frozen=True, rename="camel"):
    """A schema, as far as it says what may stand somewhere."""

    type: str = ""
    format: str = ""
    properties: dict[str, "Schema"] = {}
    items: "Schema | None" = None
    additional_properties: "Schema | bool | None" = None
    all_of: tuple["Schema", ...] = ()
    one_of: tuple["Schema", ...] = ()
    ref: str = msgspec.field(name="$ref", default="")

    @property
    def below(self) -> Iterator["Schema"]:
        """The schemas that it has in it."""
        yield from (*self.properties.values(), *self.all_of, *self.one_of)
        for each in (self.items, self.additional_properties):
            if isinstance(each, Schema):
                yield each


class Components(msgspec.Struct, frozen=True):
    """Where schemas stand."""

    schemas: dict[str, Schema] = {}


class Document(msgspec.Struct, frozen=True):
    """An OpenAPI document, as far as it is read."""

    components: Components = Components()


class PodSchema:
    """Schemas of a pod template by their names."""

    def __init__(self, document: Document) -> None:
        """Keep of a document what a pod template refers to."""
        self._named: dict[str, Schema] = {}
        left = [_TEMPLATE]
        while left:
            name = left.pop()
            found = document.components.schemas.get(name)
            if found is not None and name not in self._named:
                self._named[name] = found
                left += _references(found)

    @property
    def template(self) -> Schema:
        """That of a pod template; it allows everything where the document says nothing."""
        return self._named.get(_TEMPLATE, Schema())

    def resolved(self, schema: Schema) -> Schema:
        """What a reference means; another schema is itself."""
        while schema.ref or len(schema.all_of) == 1:
            reference = schema.ref.removeprefix(_REFERENCE)
            schema = self._named.get(reference, Schema()) if reference else schema.all_of[0]
        return schema

    def __len__(self) -> int:
        return len(self._named)


def _references(schema: Schema) -> Iterator[str]:
    if schema.ref:
        yield schema.ref.removeprefix(_REFERENCE)
    for each in schema.below:
        yield from _references(each)
