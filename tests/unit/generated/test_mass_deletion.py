"""Many GPUJobs are deleted at once, and the garbage collector takes their pods a few at a time.

What those pods hold comes free by itself: nobody is evicted for it, themselves least of all, and
who waits for it starts as they go.
"""

from random import Random

from tests.unit.generated.nodes import node
from tests.unit.generated.ours import gpujob, gpuproject
from tests.unit.generated.server import Server, path_of
from tests.unit.generated.stage import ROOT, Stage
from tests.unit.runtime.virtual_loop import virtual

GPUS, JOBS = 4, 12
TEAMS = {"team-a": {"quota": 8, "limit": 16}, "team-b": {"quota": 8, "limit": 16}}
_GPUJOBS, _JOBS, _PODS = f"{ROOT}/gpujobs", "/apis/batch/v1/jobs", "/api/v1/pods"


class Lazy(Server):
    """A server whose garbage collector does what it does when ``collect`` is called."""

    def delete_alone(self, collection: str, namespace: str, name: str) -> None:
        """Delete an object, and nothing that it owns."""
        key = collection, namespace, name
        owned = {k: o for k, o in self.objects.items() if _owned(o, self.objects[key])}
        for each in owned:
            del self.objects[each]
        self.remove(path_of(key))
        self.objects |= owned

    def collect(self, most: int) -> None:
        """Delete some objects whose owner is gone."""
        uids = {obj["metadata"]["uid"] for obj in self.objects.values()}
        for key, obj in list(self.objects.items()):
            owners = [owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ()]
            if most and owners and uids.isdisjoint(owners):
                self.delete_alone(*key)
                most -= 1


def _owned(obj: dict, owner: dict) -> bool:  # type: ignore[type-arg]
    owners = obj["metadata"].get("ownerReferences") or ()
    return any(each["uid"] == owner["metadata"]["uid"] for each in owners)


@virtual
async def test_nobody_is_evicted_for_room_of_jobs_that_are_deleted() -> None:
    stage, server = Stage(), Lazy()
    stage.use(server)
    for number in range(4):
        server.put(f"/api/v1/nodes/n{number}", node(f"n{number}", GPUS))
    for team, sizes in TEAMS.items():
        server.put(f"{ROOT}/gpuprojects/{team}", gpuproject(team, [team], **sizes))
    await stage.lead(Random(0))
    try:
        for number in range(4 * GPUS):  # it borrows half of the cluster
            path = f"{ROOT}/namespaces/team-a/gpujobs/old-{number}"
            server.put(path, gpujob(f"old-{number}", "team-a", gpu=1, priority=60))
        await stage.passes(5)
        assert len(stage.placed("team-a")) == 4 * GPUS
        for number in range(JOBS):
            server.delete_alone(_GPUJOBS, "team-a", f"old-{number}")
        for number in range(JOBS // 2):
            for team in TEAMS:
                path = f"{ROOT}/namespaces/{team}/gpujobs/new-{number}"
                server.put(path, gpujob(f"new-{number}", team, gpu=1, priority=50))
        for turn in range(2 * JOBS + 20):
            if turn > 8:
                server.collect(1)
            for pod in server.of(_PODS):  # a kubelet has news of it
                if not turn % 10 and pod["metadata"]["name"].startswith("old-"):
                    meta = pod["metadata"]
                    server.put(path_of((_PODS, meta["namespace"], meta["name"])), pod)
            await stage.passes(1)
        assert stage.evicted == []
        assert {name for name, _ in stage.placed("team-b")} == {
            f"new-{n}" for n in range(JOBS // 2)
        }
        names = {name for name, _ in stage.placed("team-a")}
        assert names >= {f"new-{n}" for n in range(JOBS // 2)}
    finally:
        await stage.end()


@virtual
async def test_a_pod_that_its_job_left_behind_says_so() -> None:
    """As kubectl delete --cascade=orphan has it, of the GPUJob and then of the Job."""
    stage, server = Stage(), Lazy()
    stage.use(server)
    server.put("/api/v1/nodes/a", node("a", GPUS))
    server.put(f"{ROOT}/gpuprojects/team-a", gpuproject("team-a", ["team-a"], quota=GPUS))
    await stage.lead(Random(0))
    try:
        server.put(f"{ROOT}/namespaces/team-a/gpujobs/left", gpujob("left", "team-a", gpu=1))
        await stage.passes(5)
        for collection, owner in ((_JOBS, _GPUJOBS), (_PODS, _JOBS)):
            (owned,) = server.of(collection)
            meta = {k: v for k, v in owned["metadata"].items() if k != "ownerReferences"}
            path = path_of((collection, "team-a", meta["name"]))
            server.put(path, {**owned, "metadata": meta})
            server.delete_alone(owner, "team-a", "left")
        await stage.passes(5)
        (pod,) = server.of(_PODS)
        told = {each["type"]: each for each in pod["status"]["conditions"]}
        assert told["gpu-scheduler.io/Owned"]["reason"] == "OwnerGone"
    finally:
        await stage.end()
