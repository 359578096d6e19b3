"""The chart's boards for Grafana: ``make boards`` writes them, a test compares.

A board is a list of panels with the queries of Prometheus in them; everything else of Grafana's
JSON follows from that and is in ``grafana.py``.
"""
