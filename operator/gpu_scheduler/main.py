"""The program: ``python -m gpu_scheduler.main``, and the console script of the distribution."""

from gpu_scheduler.cli.root import app

if __name__ == "__main__":
    app(prog_name="gpu-scheduler")
