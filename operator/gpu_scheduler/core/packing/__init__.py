"""Which node and which GPU: the packing policies and the table that keeps their scores.

Scores are integers in milli-GPU, worked out with numpy for many pod shapes or many nodes at once;
no float decides. Read ``table`` first, then one module per term of a score.
"""
