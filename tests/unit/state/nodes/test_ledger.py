"""Charges in any order; the model is the sum over what was charged."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gpu_scheduler.core.model.cluster import NodeInfo
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.model.resources import NOTHING, NodeResources
from gpu_scheduler.state.nodes.devices import NodeDevice
from gpu_scheduler.state.nodes.ledger import Charge, Ledger

NODES = ("a", "b", "c")
PODS = tuple(PodUID(f"pod-{i}") for i in range(5))
NAMESPACES = ("team-a", "team-b")

nodes = st.sampled_from(NODES)
pods = st.sampled_from(PODS)


def some_devices(count: int, usable_mib: int, *, by_uuid: bool) -> tuple[NodeDevice, ...]:
    ids = (f"GPU-{i}" if by_uuid else str(i) for i in range(count))
    return tuple(NodeDevice(name, i, "A100", usable_mib) for i, name in enumerate(ids))


def some_charge(
    node: str, namespace: str, amount: int, devices: list[tuple[str, int]], plugin: bool
) -> Charge:
    """A charge whose amounts all differ, from few draws: these are most of what a step costs."""
    return Charge(
        node=node,
        namespace=namespace,
        resources=NodeResources(amount, amount << 18, amount * 7, (("rdma/hca", amount * 3),)),
        devices=tuple(
            DeviceAllocation(milli % 2, device, milli, milli // 2) for device, milli in devices
        ),
        pod=f"pod-{amount}",
        plugin=("gpu",) if plugin else (),
    )


# None, some by index (labels), or the same by UUID (an agent).
device_sets = st.sampled_from(
    [
        some_devices(count, usable_mib, by_uuid=by_uuid)
        for count in range(4)
        for usable_mib in (1000, 40960)
        for by_uuid in (False, True)
    ]
)
devices = st.tuples(
    st.sampled_from(["0", "1", "2", "GPU-0", "GPU-1", "GPU-2", "GPU-gone"]), st.integers(1, 1000)
)
charges = st.builds(
    some_charge,
    nodes,
    st.sampled_from(NAMESPACES),
    st.integers(0, 4000),
    st.lists(devices, max_size=3),
    st.booleans(),
)


class LedgerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.nodes: dict[str, tuple[NodeInfo, tuple[NodeDevice, ...], frozenset[str]]] = {}
        self.charges: dict[PodUID, Charge] = {}

    @rule(
        name=nodes,
        cpu=st.integers(0, 64000),
        devices=device_sets,
        unschedulable=st.booleans(),
        plugin=st.sampled_from([frozenset[str](), frozenset({"gpu"})]),
    )
    def set_node(
        self,
        name: str,
        cpu: int,
        devices: tuple[NodeDevice, ...],
        unschedulable: bool,
        plugin: frozenset[str],
    ) -> None:
        info = NodeInfo(
            name,
            unschedulable="is cordoned" if unschedulable else "",
            cpu_milli=cpu,
            pods=3,
            scalars=(("rdma/hca", cpu),) if cpu % 2 else (),
        )
        changed = self.nodes.get(name) != (info, devices, plugin)
        assert self.ledger.set_node(info, devices, plugin) == changed
        self.nodes[name] = (info, devices, plugin)

    @rule(name=nodes)
    def drop_node(self, name: str) -> None:
        assert self.ledger.drop_node(name) == (self.nodes.pop(name, None) is not None)

    @rule(uid=pods, charge=charges)
    def charge(self, uid: PodUID, charge: Charge) -> None:
        assert self.ledger.charge_pod(uid, charge) == (self.charges.get(uid) != charge)
        self.charges[uid] = charge

    @rule(uid=pods)
    def release(self, uid: PodUID) -> None:
        assert self.ledger.release_pod(uid) == (self.charges.pop(uid, None) is not None)

    @rule()
    def read(self) -> None:
        """Lay the arrays out now: later charges are then applied one by one."""
        _ = self.ledger.cluster

    @invariant()
    def held_is_exact(self) -> None:
        held: dict[str, int] = {}
        for charge in self.charges.values():
            held[charge.namespace] = held.get(charge.namespace, 0) + charge.milli
        assert self.ledger.held_milli == {ns: milli for ns, milli in held.items() if milli}

    def teardown(self) -> None:
        self.arrays_are_capacity_minus_charges()

    @rule()
    def arrays_are_capacity_minus_charges(self) -> None:
        cluster = self.ledger.cluster
        assert [info.name for info in cluster.nodes] == sorted(self.nodes)
        assert cluster.first[-1] == len(cluster.dev_id)
        for n, seen in enumerate(cluster.nodes):
            info, devices, plugin = self.nodes[seen.name]
            here = [c for c in self.charges.values() if c.node == info.name]
            assert cluster.free_cpu_milli[n] == info.cpu_milli - sum(
                c.resources.cpu_milli for c in here
            )
            assert cluster.free_memory_bytes[n] == -sum(c.resources.memory_bytes for c in here)
            storage = sum(c.resources.ephemeral_bytes for c in here)
            assert cluster.free_ephemeral_bytes[n] == -storage
            for name, free in cluster.free_scalars.items():
                taken = sum(dict(c.resources.scalars).get(name, 0) for c in here)
                assert free[n] == info.amount(name) - taken
            assert cluster.free_pods[n] == 3 - len(here)
            names = {name for d in devices for name in (d.id, str(d.index))}
            lost = [g for c in here for g in c.devices if g.device not in names]
            strangers = [f"{c.namespace}/{c.pod}" for c in here if plugin & {*c.plugin}]
            assert seen.foreign == bool(lost or strangers)
            assert bool(seen.unschedulable) == bool(info.unschedulable or seen.foreign)
            if strangers and not info.unschedulable:
                assert min(strangers) in seen.unschedulable
            held = self.ledger.unlisted.get(info.name, {})
            assert sum(held.values()) == sum(g.milli for g in lost)
            assert held.keys() == {g.device for g in lost}
            at = cluster.first[n]
            assert tuple(cluster.dev_id[at : cluster.first[n + 1]]) == tuple(d.id for d in devices)
            for offset, device in enumerate(devices):
                shares = [
                    g for c in here for g in c.devices if g.device in (device.id, str(device.index))
                ]
                unheld = 1000 - sum(g.fraction_milli for g in shares)
                assert cluster.unheld_milli(at + offset) == unheld
                assert cluster.free_milli[at + offset] <= unheld
                assert cluster.free_mib[at + offset] == device.usable_mib - sum(
                    g.mib for g in shares
                )


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=40, stateful_step_count=30)


def two_gpus(by_uuid: bool) -> tuple[NodeDevice, ...]:
    return tuple(NodeDevice(f"GPU-{i}" if by_uuid else str(i), i, "A100", 40960) for i in range(2))


def charge_of(*devices: str) -> Charge:
    return Charge("a", "team-a", NOTHING, tuple(DeviceAllocation(0, d, 400, 100) for d in devices))


def test_an_allocation_by_index_and_one_by_uuid_take_from_the_same_device() -> None:
    ledger = Ledger()
    ledger.set_node(NodeInfo("a"), two_gpus(by_uuid=True))
    ledger.charge_pod(PodUID("old"), charge_of("1"))
    ledger.charge_pod(PodUID("new"), charge_of("GPU-1"))
    assert ledger.cluster.free_milli == [1000, 200]
    assert ledger.cluster.free_mib == [40960, 40760]


def test_an_allocation_by_index_survives_the_coming_of_the_agent() -> None:
    ledger = Ledger()
    ledger.set_node(NodeInfo("a"), two_gpus(by_uuid=False))
    ledger.charge_pod(PodUID("p"), charge_of("0"))
    assert ledger.cluster.free_milli == [600, 1000]
    ledger.set_node(NodeInfo("a"), two_gpus(by_uuid=True))
    assert ledger.cluster.free_milli == [600, 1000]
    ledger.release_pod(PodUID("p"))
    assert ledger.cluster.free_milli == [1000, 1000]


def test_a_charge_outlives_its_node() -> None:
    ledger = Ledger()
    ledger.set_node(NodeInfo("a"), two_gpus(by_uuid=False))
    ledger.charge_pod(PodUID("p"), charge_of("0"))
    ledger.drop_node("a")
    assert ledger.held_milli == {"team-a": 400}
    ledger.set_node(NodeInfo("a"), two_gpus(by_uuid=False))
    assert ledger.cluster.free_milli == [600, 1000]
