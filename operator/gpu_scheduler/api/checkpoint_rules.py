"""The rules of ``spec.checkpoint``, as CEL and in Python, and their sentences.

What a template mounts and has for volumes is out of CEL's sight: ``jobs.conflicts`` says that.
"""

import re
from typing import Any

from gpu_scheduler.api.names import CAP_FOLDER, CAP_PRELOAD_PATH, MOUNT_PATH, TOKEN_PATH
from gpu_scheduler.api.rule import Rule

ONE_VOLUME = (
    "set exactly one of persistentVolumeClaim: {claimName: …}, nfs: {server: …, path: …}, "
    "hostPath: {path: …} and name, of a volume of the template"
)
PLAIN_PATH = (
    "must be a plain absolute path: ASCII without spaces, ':' and '$', without '.' and '..' as "
    "parts and without a slash at its end, such as /checkpoint"
)
TAKEN = (MOUNT_PATH, TOKEN_PATH, CAP_FOLDER, CAP_PRELOAD_PATH, "/dev", "/proc", "/sys")
TAKEN_PATH = (
    f"must neither be nor hold nor lie in one of {', '.join(TAKEN)}; choose another folder, such "
    "as /checkpoint"
)
SOURCE_PATH = "must be an absolute path without '..', such as /export/checkpoints"
CLAIM_NAME = "is the name of a PersistentVolumeClaim of this namespace: a-z, 0-9, '-' and '.'"
NEEDS_TEMPLATE = (
    "names a volume of the template, and there is a pod without one: write persistentVolumeClaim, "
    "nfs or hostPath here instead"
)

_PLAIN, _DOTS = "(/[!-#%-.0-9;-~]+)+", "/[.][.]?(/|$)"
_CLAIM = "[a-z0-9]([-a-z0-9.]*[a-z0-9])?"
_SLASHED = tuple(f"{path}/" for path in TAKEN)


def _sources(volume: Any) -> int:
    each = (volume.name, volume.persistent_volume_claim, volume.nfs, volume.host_path)
    return sum(source is not None for source in each)


def _is_plain(path: str) -> bool:
    parts = path.split("/")
    return re.fullmatch(_PLAIN, path) is not None and not {".", ".."} & set(parts)


def _is_taken(path: str) -> bool:
    return any(f"{path}/".startswith(each) or each.startswith(f"{path}/") for each in _SLASHED)


def _all_have_templates(spec: Any) -> bool:
    return spec.template is not None or (
        spec.roles is not None and all(role.template is not None for role in spec.roles)
    )


VOLUME = (
    Rule(
        "[has(self.name), has(self.persistentVolumeClaim), has(self.nfs), has(self.hostPath)]"
        ".exists_one(x, x)",
        ONE_VOLUME,
        holds=lambda volume: _sources(volume) == 1,
    ),
)
CLAIM = (
    Rule(
        f"self.matches('^{_CLAIM}$')",
        CLAIM_NAME,
        holds=lambda name: re.fullmatch(_CLAIM, name) is not None,
    ),
)
SOURCE = (
    Rule(
        "self.startsWith('/') && !self.split('/').exists(part, part == '..')",
        SOURCE_PATH,
        holds=lambda path: path.startswith("/") and ".." not in path.split("/"),
    ),
)
MOUNT = (
    Rule(f"self.matches('^{_PLAIN}$') && !self.matches('{_DOTS}')", PLAIN_PATH, holds=_is_plain),
    Rule(
        f"!{list(_SLASHED)}.exists(p, (self + '/').startsWith(p) || p.startsWith(self + '/'))",
        TAKEN_PATH,
        holds=lambda path: not _is_taken(path),
    ),
)
IN_JOB = (
    Rule(
        "!has(self.checkpoint) || !has(self.checkpoint.volume.name) || has(self.template) || "
        "(has(self.roles) && self.roles.all(r, has(r.template)))",
        NEEDS_TEMPLATE,
        ".checkpoint.volume.name",
        holds=lambda spec: (
            spec.checkpoint is None
            or spec.checkpoint.volume.name is None
            or _all_have_templates(spec)
        ),
    ),
)
"""Over a GPUJob's spec."""
