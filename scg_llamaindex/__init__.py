"""Schema-constrained memory in LlamaIndex: the adapter is not there yet.

This package has no public names so far. Meanwhile use :mod:`shared_core` directly; it needs no framework.
"""
