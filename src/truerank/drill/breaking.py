"""Copies of this package in which one protection is missing: does the drill notice?

A drill that can't fail proves nothing. Each kind of break takes one rule out of a copy of the code,
in a temporary folder, and the drill runs from there: its own database, its workers, its readers.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import truerank


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """One rule to take out: some text of one file, and what stands there instead."""

    about: str
    act: str  # the act that notices
    promise: str  # which it says is broken
    file: str
    rule: str
    instead: str


BREAKS: Mapping[str, Break] = {
    "fence": Break(
        about="an older version overwrites a newer one",
        act="rebuild",
        promise="what is older than what is there changes nothing",
        file="projection/lua/rows.lua",
        rule="    return high > shown_high or (high == shown_high and low > shown_low)\n",
        instead="    return true\n",
    ),
    "cursor": Break(
        about="a call is carried out wherever the cursor is",
        act="late",
        promise="nor does it set the cursor back",
        file="projection/lua/apply.lua",
        rule="if meta[2] ~= ARGV[3] or meta[3] ~= ARGV[4] then\n",
        instead="if false then\n",
    ),
    "idempotency": Break(
        about="an event that comes again counts again",
        act="experiment",
        promise="the same command again has no second effect",
        file="schema/functions/prepare_events.sql",
        rule="ELSE truerank.hashed_uuid(d.event_id) END),\n",
        instead="ELSE gen_random_uuid() END),\n",
    ),
    "epoch": Break(
        about="nobody looks whether the ticks that were read still exist",
        act="source",
        promise="what PostgreSQL no longer knows goes from Redis too",
        file="schema/functions/read_batch.sql",
        rule="= cardinality(p_tick_ids)\n"
        "           AND pg_snapshot_xmax(p_since) <= pg_snapshot_xmax(pg_current_snapshot()),",
        instead="IS NOT NULL,",
    ),
    "counts": Break(
        about="readers don't count what they read from",
        act="hole",
        promise="no reader gets a ranking with a hole: PostgreSQL answers",
        file="projection/lua/page.lua",
        rule="total ~= tonumber(places)",
        instead="false",
    ),
}


def broken_copy(kind: str, folder: Path) -> Path:
    """Copy this package with one rule taken out; gives the folder to import it from.

    Raises:
        ValueError: the rule isn't, or not once, where it was: this module is behind the code.
    """
    wanted = BREAKS[kind]
    package = Path(truerank.__file__).parent
    copy = folder / package.name
    shutil.copytree(package, copy)  # with what was compiled, which goes by the times of the files
    path = copy / wanted.file
    text = path.read_text(encoding="utf-8")
    if text.count(wanted.rule) != 1:
        raise ValueError(f"{wanted.file} has no single {wanted.rule!r}")
    path.write_text(text.replace(wanted.rule, wanted.instead), encoding="utf-8")
    return folder
