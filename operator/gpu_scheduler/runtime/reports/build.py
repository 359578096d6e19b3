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
    """Tokens, checkpoints, and the addresses that pods are given. Nothing here runs by itself."""

    token_reviews: TokenReviews
    tokens: ReportTokens
    checkpoints: Checkpoints
    urls: ReportUrls


def build(common: CommonParts, more: More) -> ReportParts:
    """Make what takes reports; ``more``: what placements set beside the addresses."""
    clock, settings = common.clock, common.settings
    token_reviews = TokenReviews(common.client, clock=clock.monotonic)
    tokens = ReportTokens(token_reviews, clock=clock.monotonic, now=clock.now)
    return ReportParts(
        token_reviews,
        tokens,
        Checkpoints(common.state, common.client, tokens, clock=clock.monotonic, now=clock.moment),
        ReportUrls(common.state, more, settings.report_url if settings.report_port else ""),
    )
