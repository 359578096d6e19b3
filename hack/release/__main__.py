"""`python -m release build | check | version`: see docs/release.md."""

import argparse
import os
import sys
from pathlib import Path

from cluster import ClusterError
from release import build, compare, version
from release.errors import ReleaseError

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Run one of the three; errors end with 1 and their message."""
    parser = argparse.ArgumentParser(prog="release")
    parser.add_argument("what", choices=("build", "check", "version"))
    parser.add_argument("--target", type=Path, default=ROOT / "dist")
    given = parser.parse_args()
    try:
        if given.what == "version":
            version.write(ROOT)
            print(version.stated(ROOT))
        elif given.what == "check":
            _check(given.target)
        else:
            _build(given.target)
    except (ReleaseError, ClusterError) as error:
        sys.exit(f"release: {error}")


def _build(target: Path) -> None:
    release = build.make(
        ROOT,
        target,
        allow_dirty=bool(os.environ.get("ALLOW_DIRTY")),
        releases=os.environ.get("RELEASES", ""),
    )
    print(f"{release.source.version}, of commit {release.source.commit}, is in {target}:")
    for path in sorted(target.iterdir()):
        print(f"  {path.stat().st_size / 1e6:8.2f} MB  {path.name}")
    for what, why in release.left_out.items():
        print(f"left out: {what}: {why}")
    for remark in release.remarks:
        print(f"note: {remark}")


def _check(target: Path) -> None:
    differing = compare.twice(ROOT, target)
    if differing:
        sys.exit("the two releases differ in: " + ", ".join(differing))
    print(f"the two releases are equal, all {len(list(target.iterdir()))} files")


if __name__ == "__main__":
    main()
