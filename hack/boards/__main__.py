"""Writes the boards into the chart: ``make boards``."""

from pathlib import Path

from boards import grafana
from boards.boards import BOARDS

FOLDER = Path(__file__).parents[2] / "charts" / "gpu-scheduler" / "files" / "boards"


def main() -> None:
    """Write all of them."""
    FOLDER.mkdir(exist_ok=True)
    for board in BOARDS:
        path = FOLDER / f"{board.name}.json"
        path.write_text(grafana.text(board), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
