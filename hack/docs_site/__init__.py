"""The docs site, ``build/site``: ``make docs``.

Zensical makes HTML of Markdown. Around it stand ``staging``, which gives links out of docs/ a page
to lead to, and ``checks``, for what its strict mode lets through.
"""
