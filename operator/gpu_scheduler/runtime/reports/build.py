"""What takes the reports of running pods, and says where they report."""

from dataclasses import dataclass

from gpu_scheduler.runtime.binding.binder import More
from gpu_scheduler.runtime.common.build import CommonParts
from gpu_scheduler.runtime.reports.checkpoints import Checkpoints
from gpu_scheduler.runtime.reports.report_tokens import ReportTokens
from gpu_scheduler.runtime.reports.report_urls import ReportUrls
from gpu_scheduler.runtime.reports.token_reviews import TokenReviews


@dataclass(frozen=True, slots=True)
class ReportParts:
    """Tokens and checkpoints. Nothing here runs by itself."""

    token_reviews: TokenReviews
    tokens: ReportTokens
    checkpoints: Checkpoints


def build(common: CommonParts) -> ReportParts:
    """Make what takes reports."""
    clock = common.clock
    token_reviews = TokenReviews(common.client, clock=clock.monotonic)
    tokens = ReportTokens(token_reviews, clock=clock.monotonic, now=clock.now)
    return ReportParts(
        token_reviews,
        tokens,
        Checkpoints(common.state, common.client, tokens, clock=clock.monotonic, now=clock.moment),
    )


def urls(common: CommonParts, more: More) -> ReportUrls:
    """The addresses that pods are given; ``more``: what placements set beside them."""
    settings = common.settings
    return ReportUrls(common.state, more, settings.report_url if settings.report_port else "")
