"""The one error of the site's build."""


class SiteError(Exception):
    """The site cannot be built as it is; each line of the message is one defect."""
