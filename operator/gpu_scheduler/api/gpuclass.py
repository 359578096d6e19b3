"""GPUClass: a name for a kind of GPU, with its price and the shapes that GPUJobs may ask for.

Optional: without classes, models are parts of product names and memory alone says which GPU is the
cheapest. ``match`` is looked for in the product name; of several classes that match, the one that
says most of the name counts, then the oldest. Read by the state; the CRD is generated from these
classes.
"""

from typing import Annotated

from pydantic import ConfigDict, Field, WithJsonSchema

from gpu_scheduler.api.condition import Conditions
from gpu_scheduler.api.model import SET, ApiModel, rules
from gpu_scheduler.api.rules import GPU_CLASS_SPEC, SHAPE_NAME, SHAPES

MOST_GPUS = 64  # of one node, hence of one pod

ShapeName = Annotated[str, Field(min_length=1, max_length=63, pattern=SHAPE_NAME)]
Count = Annotated[int, Field(ge=1, le=MOST_GPUS)]


class GPUClassSpec(ApiModel):
    """What is said of a kind of GPU."""

    model_config = ConfigDict(json_schema_extra=rules(*GPU_CLASS_SPEC))

    match: str | None = Field(
        None,
        min_length=1,
        max_length=63,
        description="Whole words of the product name, upper or lower case, such as V100. Absent: "
        "every GPU that no other class matches.",
    )
    cost_per_hour: str | None = Field(
        None,
        max_length=16,
        pattern=r"^[0-9]{1,9}(\.[0-9]{1,6})?$",
        description='Price of one GPU, a decimal in quotes such as "2.48". When every GPU of the '
        "cluster has one, a gpuMemory request goes to the cheapest that holds it.",
    )
    shapes: (
        Annotated[
            dict[str, Count],
            WithJsonSchema(
                {
                    "type": "object",
                    "maxProperties": 64,
                    "additionalProperties": {"type": "integer", "minimum": 1, "maximum": MOST_GPUS},
                }
                | rules(*SHAPES)
            ),
        ]
        | None
    ) = Field(
        None,
        max_length=64,
        description="Names for numbers of these GPUs: a GPUJob's spec.shape is such a name, and "
        "its pods get that many. A name belongs to the oldest class that has it.",
    )
    counts: list[Count] | None = Field(
        None,
        min_length=1,
        max_length=64,
        description="How many whole GPUs a pod may have, where not every number is on offer, "
        "such as [1, 2, 4]. Absent: any number that a node has.",
        json_schema_extra=SET,
    )


class GPUClassStatus(ApiModel):
    """What the class stands for now."""

    observed_generation: int | None = Field(None, description="metadata.generation judged here.")
    gpus: int = Field(0, description="GPUs of the class in the cluster.")
    nodes: int = Field(0, description="Nodes that have some.")
    shapes: str = Field("", description="Its shapes with their numbers of GPUs.")
    conditions: Conditions = Field(
        default_factory=list,
        description="Accepted: False when the spec cannot be used, or a shape belongs to another "
        "class. Matches: whether the cluster has such GPUs.",
    )
