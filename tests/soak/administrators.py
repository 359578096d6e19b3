"""What administrators do to the cluster while others work in it: things that come and go.

Policies, ResourceQuotas and accounts, without which pods or Jobs of a team cannot be made for a
while; more seldom one of our CRDs, with which all of its objects go. All of it is as before in the
end, and what was refused meanwhile is to run then.
"""

from collections.abc import Callable
from typing import Any

from tests.api.tenant import GROUP, Json
from tests.soak.load import ACCOUNT, HONEST, Load
from tests.soak.site import AWAY, Site, say

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_POLICIES = f"{_ADMISSION}/validatingadmissionpolicies"
_BINDINGS = f"{_ADMISSION}/validatingadmissionpolicybindings"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_MAY_GO = "gpu-scheduler.io/allow-deletion"
_KINDS = ("gpujobs", "gpuprojects", "gpunodes", "gpuclasses")
_POLICY, _QUOTA = "soak-comes-and-goes", "soak-comes-and-goes"
_LONGEST_SECONDS = 30.0
# What a policy refuses for a while: the group, the resource and the verb.
_REFUSED = (
    ("", "pods", "CREATE"),
    ("batch", "jobs", "CREATE"),
    ("batch", "jobs", "UPDATE"),
    ("", "events", "CREATE"),
)
_HARD = ({"pods": "0"}, {"count/jobs.batch": "0"}, {"requests.cpu": "1m"}, {"count/pods": "1"})


class Administrators:
    """One after the other."""

    def __init__(self, site: Site, load: Load, *, crds: bool) -> None:
        """``crds``: whether one of our CRDs is deleted and restored now and then."""
        self._site, self._load, self._dice = site, load, site.dice("administrators")
        self._kinds: list[Callable[[], None]] = [self._policy, self._quota, self._account] * 3
        if crds:
            self._kinds.append(self._crd)

    def change(self) -> None:
        """Something goes, or comes, and then it is as before."""
        kind = self._dice.choice(self._kinds)
        name = kind.__name__.strip("_")
        self._site.count(f"administrator {name}")
        say(f"administrator: {name}")
        kind()
        self._site.rest(self._dice.uniform(5, 30))

    def restore(self) -> None:
        """All as it was before the first change; again where the API server is away."""
        admin = self._site.admin
        admin.send("DELETE", f"{_BINDINGS}/{_POLICY}")
        admin.send("DELETE", f"{_POLICIES}/{_POLICY}")
        for team in HONEST:
            admin.send("DELETE", f"/api/v1/namespaces/{team}/resourcequotas/{_QUOTA}")
        self._load.create_accounts()

    def _surely(self, work: Callable[[], object]) -> None:
        """Again until the API server has answered, or nobody looks any more."""
        while not self._site.stop.is_set():
            try:
                work()
            except AWAY:
                self._site.rest(1.0)
            else:
                return

    def _for_a_while(self) -> None:
        self._site.rest(self._dice.uniform(1, _LONGEST_SECONDS))

    def _policy(self) -> None:
        """A policy that refuses one kind of write in a team's namespace."""
        group, resource, verb = self._dice.choice(_REFUSED)
        rule: Json = {
            "apiGroups": [group],
            "apiVersions": ["v1"],
            "operations": [verb],
            "resources": [resource],
            "resourceNames": [],
        }
        policy: Json = {
            "metadata": {"name": _POLICY},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": "false", "message": "not while the soak says so"}],
            },
        }
        where = {"matchLabels": {"kubernetes.io/metadata.name": self._dice.choice(HONEST)}}
        binding: Json = {
            "metadata": {"name": _POLICY},
            "spec": {
                "policyName": _POLICY,
                "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": where},
            },
        }
        try:
            self._site.must(self._site.admin.create(_POLICIES, policy), "a policy")
            self._site.must(self._site.admin.create(_BINDINGS, binding), "a policy's binding")
            self._for_a_while()
        finally:
            self._surely(self.restore)

    def _quota(self) -> None:
        """A ResourceQuota that allows next to nothing."""
        team = self._dice.choice(HONEST)
        body: Json = {"metadata": {"name": _QUOTA}, "spec": {"hard": self._dice.choice(_HARD)}}
        try:
            path = f"/api/v1/namespaces/{team}/resourcequotas"
            self._site.must(self._site.admin.create(path, body), "a ResourceQuota")
            self._for_a_while()
        finally:
            self._surely(self.restore)

    def _account(self) -> None:
        """The ServiceAccount of some jobs of a team."""
        team = self._dice.choice(HONEST)
        path = f"/api/v1/namespaces/{team}/serviceaccounts/{ACCOUNT}"
        try:
            self._site.admin.send("DELETE", path)
            self._for_a_while()
        finally:
            self._surely(self.restore)

    def _crd(self) -> None:
        """One of our CRDs is deleted, with all of its objects, and restored."""
        admin, name = self._site.admin, f"{self._dice.choice(_KINDS)}.{GROUP.split('/')[2]}"
        found = admin.get(f"{_CRDS}/{name}")
        if not found.ok:
            return
        meta: dict[str, Any] = found.body["metadata"]
        kept = {k: meta[k] for k in ("name", "labels", "annotations") if k in meta}
        body = {**found.body, "metadata": kept, "status": None}
        self._site.disturbed.begin()
        try:
            if name.startswith("gpujobs"):
                self._load.all_deleted()
            self._surely(lambda: self._delete(name))
            self._surely(lambda: self._until_gone(name))
            if name.startswith("gpujobs"):
                self._load.all_deleted()  # those that came meanwhile, too
            self._site.rest(self._dice.uniform(0, 10))
        finally:
            self._surely(lambda: self._make(body))
            if name.startswith("gpuprojects"):
                self._surely(self._load.create_projects)
            self._site.rest(10)
            self._site.disturbed.end()

    def _delete(self, name: str) -> None:
        """As somebody who means it: while there are objects a policy refuses it otherwise."""
        path = f"{_CRDS}/{name}"
        self._site.admin.patch(path, {"metadata": {"annotations": {_MAY_GO: "true"}}})
        self._site.must(self._site.admin.send("DELETE", path), f"deleting {name}")

    def _make(self, body: Json) -> None:
        answer = self._site.admin.create(_CRDS, body)
        if not answer.ok and answer.status != 409:
            raise OSError(answer.message)  # it is asked for again

    def _until_gone(self, name: str) -> None:
        if self._site.admin.get(f"{_CRDS}/{name}").status != 404:
            raise OSError(f"{name} is still there")
