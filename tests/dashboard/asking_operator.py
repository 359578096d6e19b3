"""The operator with a dashboard that asks anew whose a token is every few seconds, not a minute."""

from gpu_scheduler.web.dashboard import identities

identities.MOST_SECONDS, identities.JITTER_SECONDS, identities.REFUSED_SECONDS = 6.0, 1.0, 1.0


if __name__ == "__main__":
    from gpu_scheduler.main import main

    main()
