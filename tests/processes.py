"""Which processes run: read from the system, where any may end between two looks at it."""

import psutil


def runs(pid: int) -> bool:
    """Whether a process exists and has not ended; one whose parent hasn't waited for it has."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def descendants(pid: int) -> set[int]:
    """All processes below one that still exist."""
    try:
        return {child.pid for child in psutil.Process(pid).children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


def owner(pid: int) -> int:
    """The user id of a process."""
    return psutil.Process(pid).uids().effective
