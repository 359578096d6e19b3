"""Sweeps: jobs that search a space of parameters, one trial a pod.

``core``: space, trials, results and verdicts, as pure functions; ``search``: the estimator that
learns from results, and the thread in which it is asked; ``runtime``: what the operator does for
sweeps while it leads; ``commands``: ``kubectl gpu sweep``. The fields of ``spec.sweep`` and their
rules are in ``api``, from which the CRD is made. How a trial's parameters reach its program:
``jobs.hparams``.
"""
