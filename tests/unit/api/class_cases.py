"""GPUClasses that are right and that are wrong, for Python and for the CRD alike; see ``cases``."""

from tests.unit.api.cases import Spec, Wrong, job


def gpuclass(**fields: object) -> Spec:
    """A GPUClass's spec; fields that are None are left out."""
    spec = {"match": "V100", "costPerHour": "2.48", "shapes": {"complex_model_m_v100": 4}} | fields
    return {key: value for key, value in spec.items() if value is not None}


RIGHT_CLASSES: dict[str, Spec] = {
    "a model with a price and a shape": gpuclass(),
    "nothing": {},
    "a whole price": gpuclass(costPerHour="3"),
    "shapes of every GPU": gpuclass(match=None, shapes={"standard_gpu": 1, "a.b-c_D": 64}),
    "counts": gpuclass(counts=[4, 8]),
}

WRONG_CLASSES: dict[str, Wrong] = {
    "a shape without a GPU": Wrong(
        gpuclass(shapes={"none": 0}), "spec.shapes.none", "greater than or equal to 1"
    ),
    "a shape with too many": Wrong(
        gpuclass(shapes={"huge": 65}), "spec.shapes.huge", "less than or equal to 64"
    ),
    "a shape with a blank": Wrong(
        gpuclass(shapes={"two words": 2}),
        "spec.shapes",
        "letters, digits",
        "spec.shapes[two words]",
    ),
    "a shape with an endless name": Wrong(
        gpuclass(shapes={"x" * 64: 2}), "spec.shapes", "at most 63", f"spec.shapes[{'x' * 64}]"
    ),
    "a shape that is not on offer": Wrong(
        gpuclass(counts=[1, 2]), "spec.shapes", "one of the numbers in counts"
    ),
    "a price with a unit": Wrong(
        gpuclass(costPerHour="2.48 EUR"), "spec.costPerHour", "should match"
    ),
    "a price below zero": Wrong(gpuclass(costPerHour="-1"), "spec.costPerHour", "should match"),
}

WRONG_CLASSES_FOR_SCHEMA: dict[str, Wrong] = {
    "a price without quotes": Wrong(gpuclass(costPerHour=2.48), "spec.costPerHour", "type"),
    "a count twice": Wrong(gpuclass(counts=[4, 4]), "spec.counts[1]", "Duplicate value"),
    "an empty match": Wrong(gpuclass(match=""), "spec.match", "at least 1"),
}

RIGHT_SHAPES: dict[str, Spec] = {
    "a shape": job(gpu=None, shape="complex_model_m_v100"),
    "a shape on modern devices": job(gpu=None, shape="m", minComputeCapability="7.0"),
}

WRONG_SHAPES: dict[str, Wrong] = {
    "a shape and a share": Wrong(job(shape="m"), "spec", "exactly one of"),
    "a shape and models": Wrong(
        job(gpu=None, shape="m", gpuModels=["A100"]), "spec.gpuModels", "remove gpuModels"
    ),
    "a shape of several devices": Wrong(
        job(gpu=None, shape="m", gpuDevices=2), "spec.gpuDevices", "goes with"
    ),
    "a shape that is no name": Wrong(job(gpu=None, shape="-m"), "spec.shape", "should match"),
}
