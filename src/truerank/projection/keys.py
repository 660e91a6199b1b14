"""The only place where a key is spelt.

All keys of a group share one hash tag, so that a group is one slot of a cluster. One key is of
boards as such.
"""

from dataclasses import dataclass


def boards_key(prefix: str) -> str:
    """Hash: board key to its settings and seasons, for readers whom PostgreSQL doesn't answer.

    Its field without a name is the time of which all others are at least.
    """
    return f"{prefix}:boards"


@dataclass(frozen=True, slots=True)
class GroupKeys:
    """The keys of one group that outlive its generations."""

    prefix: str
    group: int

    @property
    def pointer(self) -> str:
        """String: the generation that readers read."""
        return f"{self.prefix}:{{{self.group}}}:live"

    @property
    def hints(self) -> str:
        """Channel: which boards changed."""
        return f"{self.prefix}:{{{self.group}}}:hints"

    def generation(self, generation: str) -> "GenerationKeys":
        """The keys of one copy of the group."""
        return GenerationKeys(f"{self.prefix}:{{{self.group}}}:{generation}")


@dataclass(frozen=True, slots=True)
class GenerationKeys:
    """The keys of one complete copy of a group."""

    stem: str

    @property
    def meta(self) -> str:
        """Hash: epoch, cursor, pending, snapshot, times."""
        return f"{self.stem}:meta"

    @property
    def counts(self) -> str:
        """Hash: ranking to `places tombstones withheld`, with `prefixes` where it is dense."""
        return f"{self.stem}:counts"

    @property
    def members(self) -> str:
        """Hash: member id to its states by board, each with a version; active members are absent.

        While a scan is under way it also holds members that have become active since.
        """
        return f"{self.stem}:members"

    def places(self, ranking: int) -> str:
        """Sorted set: scores all 0, members sort key and member id: the order itself."""
        return f"{self.stem}:{ranking}:z"

    def shown(self, ranking: int) -> str:
        """Hash: member id to version (8 bytes) and sort key; a version alone is a tombstone."""
        return f"{self.stem}:{ranking}:v"

    def prefixes(self, ranking: int) -> str:
        """Sorted set: scores all 0, members each score and tie-breaks of the ranking, once.

        Only where the board asks to be counted densely.
        """
        return f"{self.stem}:{ranking}:d"
