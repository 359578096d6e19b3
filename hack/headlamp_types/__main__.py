"""Writes the types of the plugin for Headlamp: ``make headlamp-types``."""

from pathlib import Path

from headlamp_types.kinds import text

PATH = Path(__file__).parents[2] / "headlamp" / "src" / "kinds" / "types.ts"


def main() -> None:
    """Write them."""
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(text(), encoding="utf-8")
    print(PATH)


if __name__ == "__main__":
    main()
