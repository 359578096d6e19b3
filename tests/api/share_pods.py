"""Generated pods that ask for a share by themselves, honest and odd, and some that do not ask."""

from collections.abc import Iterator
from random import Random
from typing import Any

Json = dict[str, Any]
GROUP = "gpu-scheduler.io"

_SHARES = ("0.5", "0.25", "1", "2", "0.333", "1.0", "0.50")
_ODD_SHARES = ("-1", "1.5", "half", "", "0", "0.3333", "5000", "1e-1", "0.5,1", "a=b")
_MEMORIES = ("8Gi", "512Mi", "1048576", "2G")
_ODD_MEMORIES = ("20", "lots", "17Ti")
_MILLI: tuple[object, ...] = (500, 1000, 3000, "250", 1)
_ODD_MILLI: tuple[object, ...] = (1500, 0)
_PATHS = ("/data", "/opt", "/etc/config", "/etc/gpu-scheduler-x", "/opt/gpu-scheduler2")
_ODD_PATHS = (
    "/etc/gpu-scheduler",
    "/etc/gpu-scheduler/devices",
    "/etc/ld.so.preload",
    "/opt/gpu-scheduler/lib",
    "/data/../etc/gpu-scheduler",
    "/data//x",
)
_NAMES = ("a", "b", "c", "d")


def generated(random: Random, *, odd: bool, asks: bool = True, compat: str = "") -> Json:
    """A pod as its user writes it; ``odd``: something in it may be refused.

    ``compat``: with another scheduler's keys, too, as in a namespace with this label.
    """
    return _Maker(random, odd, asks, compat).pod()


class _Maker:
    def __init__(self, random: Random, odd: bool, asks: bool, compat: str) -> None:
        self.random, self.odd, self.asks, self.compat = random, odd, asks, compat

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def strange(self, chance: float = 0.06) -> bool:
        return self.odd and self.maybe(chance)

    def one(self, usual: tuple[Any, ...], odd: tuple[Any, ...]) -> Any:
        return self.random.choice(odd if self.strange(0.3) else usual)

    def pod(self) -> Json:
        count = self.random.randint(1, 4)
        containers = [self.container(_NAMES[number]) for number in range(count)]
        inits = [self.init(number) for number in range(self.random.choice((0, 0, 1, 2)))]
        labels: Json = {"app": "x"} if self.maybe(0.5) else {}
        notes: Json = {"other/note": "y"} if self.maybe(0.3) else {}
        if self.asks and (not self.compat or self.maybe(0.2)):
            self.ask(labels, notes, containers, inits)
        elif self.compat:
            self.ask_as_others(notes, containers, inits)
        self.say_more(labels, notes)
        if self.asks or self.compat:
            self.ask_in_vain(inits)
        self.claim(labels, notes)
        meta: Json = {"generateName": "p-"}
        if labels:
            meta["labels"] = labels
        if notes:
            meta["annotations"] = notes
        if self.maybe(0.7):
            owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}
            meta["ownerReferences"] = [{**owner, "controller": True}]
        spec: Json = {"containers": containers, **self.rest()}
        if inits:
            spec["initContainers"] = inits
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def ask(self, labels: Json, notes: Json, containers: list[Json], inits: list[Json]) -> None:
        way = self.random.choice(("label", "note", "memory", "limits", "limits"))
        if self.strange(0.05):
            names = ("nobody", *(each["name"] for each in inits))
            notes[f"{GROUP}/gpu-container"] = self.random.choice(names)
        elif self.maybe(0.3):
            notes[f"{GROUP}/gpu-container"] = self.random.choice(containers)["name"]
        if way == "label":
            labels[f"{GROUP}/gpu"] = self.random.choice(_SHARES)
        if way == "note" or self.strange():
            notes[f"{GROUP}/gpu"] = self.one(_SHARES, _ODD_SHARES)
        if way == "memory" or self.strange():
            notes[f"{GROUP}/gpu-memory"] = self.one(_MEMORIES, _ODD_MEMORIES)
        if way == "limits" or self.strange():
            sidecars = [each for each in inits if each.get("restartPolicy") == "Always"]
            for limits in self.some_limits([*containers, *sidecars], len(containers)):
                if self.maybe(0.7) or self.strange():
                    limits[f"{GROUP}/milligpu"] = self.one(_MILLI, _ODD_MILLI)
                else:
                    limits[f"{GROUP}/gpu-mib"] = self.one((8192, 100, "2048"), (0,))
                if self.strange():
                    limits[f"{GROUP}/gpu-mib"] = 5

    def ask_in_vain(self, inits: list[Json]) -> None:
        """What an init container that ends cannot have."""
        for each in inits:
            if each.get("restartPolicy") != "Always" and self.strange(0.1):
                limits = each.setdefault("resources", {}).setdefault("limits", {})
                limits[self.random.choice((f"{GROUP}/milligpu", "nvidia.com/gpu"))] = 1

    def claim(self, labels: Json, notes: Json) -> None:
        """What a pod of ours has; nothing of it makes one ours."""
        for key in ("job", "component", "path"):
            if self.maybe(0.03):
                labels[f"{GROUP}/{key}"] = "x"
        if self.maybe(0.03):
            notes[f"{GROUP}/c0-devices"] = "void"
        if self.asks and self.strange(0.03):
            notes[f"{GROUP}/asked"] = f"0:{GROUP}/gpu=1"

    def some_limits(self, containers: list[Json], most: int) -> Iterator[Json]:
        for each in self.random.sample(containers, self.random.randint(1, most)):
            yield each.setdefault("resources", {}).setdefault("limits", {})

    def ask_as_others(self, notes: Json, containers: list[Json], inits: list[Json]) -> None:
        if self.compat == "kai" and self.maybe(0.3):
            sidecars = [each for each in inits if self.odd or each.get("restartPolicy") == "Always"]
            several = len(containers) > 1 and self.maybe(0.3)
            for each in self.random.sample([*containers, *sidecars], 2 if several else 1):
                name = "nobody" if self.strange() else each["name"]
                for way in ("request", "limit") if self.maybe(0.3) else ("request",):
                    word = self.one(("512Mi", "8Gi"), ("20", "lots", ""))
                    notes[f"nvidia.com/container.{name}.gpu-memory.{way}"] = word
            if self.maybe(0.2):
                notes["gpu-fraction-num-devices"] = self.one(("2", "1"), ("0", "x"))
            if not self.strange(0.1):
                return
        elif self.compat == "kai" and self.maybe(0.7):
            key = self.random.choice(("gpu-fraction", "gpu-memory"))
            for each in {key, *(("gpu-fraction", "gpu-memory") if self.strange(0.1) else ())}:
                share = each == "gpu-fraction"
                usual = ("0.5", "0.25") if share else ("2500", "512")
                notes[each] = self.one(usual, _ODD_SHARES if share else ("8Gi", "0"))
            if self.maybe(0.2):
                notes["gpu-fraction-num-devices"] = self.one(("2", "1"), ("0", "x"))
            if self.maybe(0.2):
                names = tuple(each["name"] for each in containers)
                notes["gpu-fraction-container-name"] = self.one(names, ("nobody",))
            if not self.strange(0.1):
                return
        sidecars = [each for each in inits if each.get("restartPolicy") == "Always"]
        for limits in self.some_limits([*containers, *sidecars], len(containers)):
            limits["nvidia.com/gpu"] = self.one((1, 2, "1", 0), (65, "1k"))
            if self.compat != "hami":
                continue
            if self.maybe(0.4):
                limits["nvidia.com/gpumem"] = self.one((3000, "2048", "3k"), (0, 20000000))
            if self.maybe(0.4):
                limits["nvidia.com/gpumem-percentage"] = self.one((50, 100, 1), (0, 101))
            if self.maybe(0.3):
                limits["nvidia.com/gpucores"] = self.one((0, 30, 100), (101,))
            if self.maybe(0.2):
                del limits["nvidia.com/gpu"]
        if self.maybe(0.2):
            first = containers[0].setdefault("resources", {})
            first["requests"] = {**first.get("requests", {}), **first.get("limits", {})}
        if self.strange(0.1):
            limits["gpu-scheduler.io/milligpu"] = 100

    def say_more(self, labels: Json, notes: Json) -> None:
        more = {
            "gpu-devices": (("2",), ("0", "65", "x"), 0.05),
            "priority": (("0", "50", "100"), ("101", "-1", "01", "x"), 0.2),
            "type": (("training", "interactive"), ("other",), 0.2),
            "isolation": (("interposer", "framework"), ("none",), 0.3),
            "time-limit": (("60", "2147483647"), ("0", "1h", "2147483648"), 0.2),
            "gpu-models": (("A100", "A100,H100"), (",",), 0.1),
        }
        for key, (usual, odd, chance) in more.items():
            whole = key == "gpu-devices" and not self.odd  # it goes with shares alone
            if self.maybe(chance) and not whole:
                notes[f"{GROUP}/{key}"] = self.one(usual, odd)
        if self.maybe(0.1):
            labels[f"{GROUP}/gang"] = "ring"
        if (f"{GROUP}/gang" in labels) is not self.strange():
            notes[f"{GROUP}/gang-size"] = self.one(("4",), ("0", "x", "1001"))
        if (f"{GROUP}/gang" in labels and self.maybe(0.3)) or self.strange(0.05):
            notes[f"{GROUP}/distinct-gpus"] = self.one(("true", "false"), ("no", ""))
        if self.maybe(0.1):
            labels["kueue.x-k8s.io/pod-group-name"] = "group"
        if self.maybe(0.1):
            notes["kueue.x-k8s.io/pod-group-total-count"] = self.one(("3",), ("0", "x"))
        if self.maybe(0.05):
            labels["leaderworkerset.sigs.k8s.io/group-key"] = "a1b2"
            notes["leaderworkerset.sigs.k8s.io/size"] = self.one(("2",), ("", "-1"))

    def container(self, name: str) -> Json:
        made: Json = {"name": name, "image": "example:1"}
        if self.maybe(0.5):
            made["env"] = [
                {"name": f"V{n}", "value": "$(X)"} for n in range(self.random.randint(1, 3))
            ]
            if self.maybe(0.2):
                made["env"].append({"name": "CUPY_GPU_MEMORY_LIMIT", "value": "1"})
            if self.strange():
                name = self.random.choice(
                    ("NVIDIA_VISIBLE_DEVICES", "GPU_MEMORY_LIMIT_MIB", "GPUCAP_X", "GPUJOB_NAME")
                )
                made["env"].append({"name": name, "value": "void"})
        if self.maybe(0.5):
            made["resources"] = {"limits": {"cpu": "1000m", "memory": "1Gi"}}
            if self.maybe(0.5):
                made["resources"]["requests"] = {"cpu": "0.5", "ephemeral-storage": "1Gi"}
            if self.strange(0.02):
                made["resources"]["limits"]["nvidia.com/gpu"] = 1
        if self.maybe(0.3):
            path = self.one(_PATHS, _ODD_PATHS)
            made["volumeMounts"] = [{"name": "data", "mountPath": path}]
            if path == "/opt" and self.strange(0.5):
                made["volumeMounts"][0]["readOnly"] = True
        if self.strange(0.03):
            made["terminationMessagePath"] = self.random.choice((*_PATHS, *_ODD_PATHS))
        if self.maybe(0.1):
            port = 80 + len(made["image"]) + ord(made["name"][-1])  # of each container another
            host = {"hostPort": port} if self.maybe(0.5) else {}
            made["ports"] = [{"containerPort": port, **host}]
        return made

    def init(self, number: int) -> Json:
        made = self.container(f"i{number}")
        if self.maybe(0.5):
            made["restartPolicy"] = "Always"
        if self.strange(0.02):
            made["name"] = "gpu-scheduler-cap"
        return made

    def rest(self) -> Json:
        volumes: list[Json] = [{"name": "data", "emptyDir": {}}]
        if self.maybe(0.15):
            volumes.append({"name": "claim", "persistentVolumeClaim": {"claimName": "c"}})
        if self.strange(0.03):
            volumes.append({"name": self.random.choice(("gpu-scheduler-cap", "gpu-scheduler-c0"))})
        spec: Json = {"volumes": volumes}
        term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"}
        wish = {"weight": 1, "podAffinityTerm": term}
        wishes = "preferredDuringSchedulingIgnoredDuringExecution"
        some: tuple[tuple[float, Json], ...] = (
            (
                0.1,
                {
                    "topologySpreadConstraints": [
                        {**term, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
                    ]
                },
            ),
            (
                0.1,
                {
                    "affinity": {
                        "podAntiAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": [term]
                        }
                    }
                },
            ),
            (0.1, {"affinity": {"podAffinity": {wishes: [wish]}}}),
            (0.1, {"schedulingGates": [{"name": "example.com/license"}]}),
            (0.05, {"schedulingGates": [{"name": "gpu-scheduler.io/placement"}]}),
            (0.2, {"securityContext": {"runAsUser": self.random.choice((0, 1000))}}),
            (0.1, {"runtimeClassName": "other"}),
            (0.1, {"priorityClassName": "mine"}),
            (0.1, {"activeDeadlineSeconds": 5}),
            (0.2, {"schedulerName": self.random.choice(("default-scheduler", "gpu-scheduler"))}),
            (0.2, {"restartPolicy": self.random.choice(("Never", "OnFailure"))}),
        )
        for chance, part in some:
            if self.maybe(chance):
                spec |= part
        theirs = {"hami": ("hami-scheduler",), "kai": ("kai-scheduler", "runai-scheduler")}
        if self.compat in theirs and self.maybe(0.3):
            spec["schedulerName"] = self.random.choice(theirs[self.compat])
        if self.strange(0.03):
            spec["schedulerName"] = self.random.choice(("volcano", "kai-scheduler"))
        if self.strange(0.03):
            spec["terminationGracePeriodSeconds"] = 4000
        if self.strange(0.02):
            spec["nodeName"] = "n"
            spec.pop("schedulingGates", None)  # both the API server refuses by itself
        return spec
