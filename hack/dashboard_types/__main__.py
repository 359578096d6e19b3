"""Writes the front end's types: ``make dashboard-types``."""

from pathlib import Path

from dashboard_types.typescript import text
from gpu_scheduler.dashboard.views import VIEWS

PATH = Path(__file__).parents[2] / "dashboard" / "src" / "api" / "views.ts"


def main() -> None:
    """Write them."""
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(text(VIEWS), encoding="utf-8")
    print(PATH)


if __name__ == "__main__":
    main()
