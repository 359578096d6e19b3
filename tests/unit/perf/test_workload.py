"""The pods that are measured: ours by a label, and told apart by what makes them."""

from typing import Any, cast

import msgspec
import pytest
from tests.perf.admission import ASKING, MADE, PLAIN, pods
from tests.perf.bindings import new
from tests.perf.bound import BoundWatch
from tests.perf.schedulers import BIND_CAP, SHARE, SHARE_RENDERED, STOCK_DEPLOYMENT, Variant
from tests.perf.workload import CAP_IMAGE, NAMESPACE

from gpu_scheduler.api.names import SCHEDULER_NAME
from gpu_scheduler.jobs.cap import CapImage
from gpu_scheduler.jobs.share_form import lacks
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.pods.shares import share_of


def test_the_pods_that_ask_are_those_that_the_operator_binds() -> None:
    made = pods()[MADE]
    pod = msgspec.convert(made, Pod)
    asked = share_of(pod)
    assert asked is not None and asked.request is not None
    assert [request.milli for request in asked.devices] == [500]
    assert lacks(pod, asked.request, CapImage(SHARE.environment["GPUSCHED_CAP_IMAGE"])) == ""
    assert made["spec"]["schedulerName"] == SCHEDULER_NAME
    assert "schedulingGates" not in made["spec"]


def test_pods_of_a_gpujob_with_the_library_and_pods_that_ask_bring_the_same_image() -> None:
    assert BIND_CAP.environment == SHARE.environment
    assert SHARE.environment["GPUSCHED_CAP_IMAGE"] == CAP_IMAGE


def test_a_plain_pod_and_one_that_asks_differ_by_the_label_alone() -> None:
    plain, asking = pods()[PLAIN], pods()[ASKING]
    assert asking["metadata"]["labels"].pop("gpu-scheduler.io/gpu") == "0.5"
    assert asking == plain


@pytest.mark.parametrize("variant", [SHARE, SHARE_RENDERED, STOCK_DEPLOYMENT])
def test_pods_of_a_deployment_are_known_by_its_name(variant: Variant) -> None:
    path, body = variant.job("web-7", 400)
    assert path == f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
    assert body["spec"]["replicas"] == 400
    template = body["spec"]["template"]
    watch = BoundWatch(cast("Client", None), NAMESPACE, lambda: None)
    for uid, node in (("a", ""), ("b", "gpu-0001")):
        meta = {**template["metadata"], "uid": uid}
        spec = {**template["spec"], **({"nodeName": node} if node else {})}
        watch.changed(cast("Any", msgspec.convert({"metadata": meta, "spec": spec}, Pod)))
    assert watch.created["web-7"].keys() == {"a", "b"}
    assert watch.bound["web-7"].keys() == {"b"}


def test_a_binding_is_created_again_without_what_the_server_gave_it() -> None:
    saved = """\
apiVersion: v1
items:
- kind: MutatingAdmissionPolicyBinding
  metadata:
    name: gpu-scheduler-shares
    resourceVersion: "12"
    uid: 5d4f8
  spec:
    policyName: gpu-scheduler-shares
kind: List
metadata:
  resourceVersion: \"\""""
    assert (
        new(saved)
        == """\
apiVersion: v1
items:
- kind: MutatingAdmissionPolicyBinding
  metadata:
    name: gpu-scheduler-shares
  spec:
    policyName: gpu-scheduler-shares
kind: List
metadata:
"""
    )
