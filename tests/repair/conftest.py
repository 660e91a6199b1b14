"""Pipelines of one group, driven step by step, to be damaged and mended."""

from tests.projection.conftest import settings, single

__all__ = ["settings", "single"]
