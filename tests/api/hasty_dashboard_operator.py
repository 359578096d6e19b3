"""The operator with a dashboard that asks for tokens and rights every few seconds, not a minute."""

from gpu_scheduler.web.dashboard import identities, rights

identities.MOST_SECONDS, identities.JITTER_SECONDS, identities.REFUSED_SECONDS = 3.0, 1.0, 1.0
rights.MOST_SECONDS, rights.RENEW_SECONDS = 4.0, (1.0, 2.0)


if __name__ == "__main__":
    from gpu_scheduler.main import main

    main()
