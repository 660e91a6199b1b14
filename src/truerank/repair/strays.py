"""Find rankings whose keys are in Redis though no copy's list of rankings names them."""

import re
from collections.abc import Iterator, Sequence

from truerank.repair.looking import KeyDamaged, Looker, raised

_KEY = re.compile(rb":(\d+):[zvd]$")
_KEYS_AT_ONCE = 1000


def stray_rankings(looker: Looker, groups: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Group and numbers of such rankings, among all keys of the server."""
    live = [copy for group in groups if (copy := looker.live(group)) is not None]
    stems = {f"{looker.keys(copy).stem}".encode(): copy for copy in live}
    found: dict[bytes, set[int]] = {}
    cursor: bytes | int = 0
    while True:
        (reply,) = looker.link.try_commands([("SCAN", cursor, "COUNT", _KEYS_AT_ONCE)])
        cursor, names = raised(reply)
        for name in names:
            ranking = _KEY.search(name)
            if ranking is not None and name[: ranking.start()] in stems:
                found.setdefault(name[: ranking.start()], set()).add(int(ranking[1]))
        if cursor == b"0":
            break
    for stem, named in found.items():
        copy = stems[stem]
        try:
            counted = {int(name) for name in looker.counts(copy) if name.isdigit()}
        except KeyDamaged:
            continue  # told where the copy itself was compared
        if strays := sorted(named - counted):
            yield copy.group, strays
