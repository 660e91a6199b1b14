"""Whether an answer is as fresh as its reader needs it."""

import re

from msgspec.structs import replace

from truerank.errors import EpochChanged, InvalidInput, NotCommittedYet
from truerank.model import Consistency, Freshness, Need, Page, PageRequest, Token
from truerank.read import tokens
from truerank.read.tokens import Seen
from truerank.read.waiting import check_committed, check_epoch
from truerank.steps import Steps

_DURATION = re.compile(r"([0-9]{1,8})(ms|s|m|h)")
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_MS_MAX = 365 * 86_400_000
_WAIT_MS_MAX = 60_000
_FIRST = "new"  # what a client without a token passes as its last one


class Judge:
    """Judges the answers to one question.

    Args:
        consistency: what the reader needs.
        fallback_after_ms: the age from which no answer is served to who doesn't name one.

    Raises:
        InvalidInput: the text is no token, or a duration is out of range.
    """

    def __init__(self, consistency: Consistency, *, fallback_after_ms: int | None = None) -> None:
        _check_ms("wait", consistency.wait_ms, _WAIT_MS_MAX)
        if consistency.max_age_ms is not None:
            _check_ms("max_age", consistency.max_age_ms, _MS_MAX)
        self._need = consistency.need
        self._seen = None if consistency.token is None else tokens.parse(consistency.token)
        # Who names an age gets what that allows; the service's own is for all others.
        self._age_ms_max = (
            consistency.max_age_ms if self._need is Need.MAX_AGE else fallback_after_ms
        )
        self.compares = consistency.monotonic
        # Half a batch is no state of the source: no token names it, and who has seen it could be
        # shown less next. A writer asks for its write alone.
        self._whole = self.compares and (self._seen is None or self._seen.snapshot is not None)
        self.wait_s = consistency.wait_ms / 1000
        self.answers_pending = consistency.or_pending

    def allows(self, freshness: Freshness, *, held_ms: int = 0) -> bool:
        """Whether an answer of the projection is fresh enough.

        Args:
            freshness: as it was read.
            held_ms: how long ago that was.
        """
        if self.lacks(freshness):
            return False
        if self._age_ms_max is None:
            return True
        age_ms = freshness.staleness_ms
        return age_ms is not None and age_ms + held_ms <= self._age_ms_max

    def lacks(self, freshness: Freshness) -> bool:
        """Whether an answer, of whatever age, misses what its reader has seen.

        Then the next one is worth waiting for; an answer that is only old isn't.
        """
        if self._whole and freshness.partial:
            return True
        return self._seen is not None and not shows(freshness, self._seen)

    def of_database(self, page: Page) -> Page:
        """PostgreSQL's own answer, judged by the snapshot of its own statement.

        Raises:
            NotCommittedYet: it doesn't show what the token stands for.
            EpochChanged: it can't tell, for it went backwards since the token was given.
        """
        if self._seen is not None and not shows(page.freshness, self._seen):
            if tokens.is_past(page.freshness.epoch, self._seen):
                raise EpochChanged("the source went backwards since this token was given")
            raise NotCommittedYet("the write behind the token isn't committed on this server")
        return page

    def knows(self, freshness: Freshness) -> bool:
        """Whether an answer comes from where the token's transactions are known by number."""
        if self._seen is None:
            return True
        return freshness.lives is not None and tokens.can_tell(freshness.lives, self._seen)

    def check_epoch(self, freshness: Freshness) -> Steps[None]:
        """Whether what isn't shown by an answer of the projection ever will be.

        Of two epochs, the answer's may be the older one as well: only the source knows.

        Raises:
            EpochChanged: PostgreSQL went backwards since the token was given.
        """
        if self._seen is not None and tokens.is_past(freshness.epoch, self._seen):
            yield from check_epoch(self._seen)

    def check_committed(self) -> Steps[None]:
        """Whether there is something to wait for: see `waiting.check_committed`."""
        if self._seen is not None:
            yield from check_committed(self._seen)

    def check_asked(self, request: PageRequest) -> None:
        """Whether there is somebody whose place could be pending.

        Raises:
            InvalidInput: nobody is asked for, and what was asked would be old without a sign of it.
        """
        if self.answers_pending and not request.members and request.around is None:
            raise InvalidInput(
                "pending is the place of a member, and none is asked for", field="else"
            )

    @staticmethod
    def pending(page: Page) -> Page:
        """The answer without the old places of those who wait for a newer one."""
        places = tuple(
            replace(
                place, rank=None, score=None, pending=True,
                rank_among=None, percentile=None, rank_before=None,
            )
            for place in page.places
        )  # fmt: skip
        waiting = {place.member for place in places}
        entries = tuple(entry for entry in page.entries if entry.member not in waiting)
        return replace(page, entries=entries, places=places, around=())


def shows(freshness: Freshness, seen: Seen) -> bool:
    """Whether an answer shows what a token stands for; it must have been read with its own."""
    token, lives = freshness.token, freshness.lives
    if token is None or lives is None:
        return False  # a standby, or a source of which nothing is known
    shown = tokens.parse(token)
    assert shown.snapshot is not None, "an answer's token names a snapshot"
    return tokens.can_tell(lives, seen) and seen.shown_by(shown.snapshot)


def _check_ms(name: str, milliseconds: int, most: int) -> None:
    if type(milliseconds) is not int or not 0 <= milliseconds <= most:
        raise InvalidInput(f"{name} is 0 to {most} milliseconds", field=name)


def consistency_of(
    *,
    consistency: str | None = None,
    at_least: str | None = None,
    max_age: str | None = None,
    monotonic: str | None = None,
    wait: str | None = None,
    pending: bool = False,
) -> Consistency:
    """What a reader needs, from words as they stand in an address or on a command line.

    Args:
        consistency: `any`, `authoritative` or `settled`.
        at_least: a token.
        max_age: a duration: `500ms`, `5s`, `2m`, `1h`.
        monotonic: the token of the last answer, or `new`.
        wait: how long for the projection to show what a token stands for: a duration.
        pending: don't wait for it, and mark the places of the members asked for.

    Raises:
        InvalidInput: more than one is given, or one makes no sense; `field` names it.
    """
    given = {
        name: text
        for name, text in (
            ("consistency", consistency),
            ("at_least", at_least),
            ("max_age", max_age),
            ("monotonic", monotonic),
        )
        if text is not None
    }
    if len(given) > 1:
        raise InvalidInput(f"give one of {' and '.join(given)}", field=list(given)[-1])
    wait_ms = Consistency().wait_ms if wait is None else duration_ms(wait, "wait")
    if at_least is None and pending:
        raise InvalidInput("nothing is pending without at_least", field="else")
    if at_least is None and monotonic is None and wait is not None:
        raise InvalidInput("nothing is waited for without a token", field="wait")
    if at_least is not None:
        tokens.parse(Token(at_least), "at_least")
        return Consistency.at_least(Token(at_least), wait_ms=wait_ms, or_pending=pending)
    if monotonic is not None:
        last = None if monotonic == _FIRST else Token(monotonic)
        if last is not None:
            tokens.parse(last, "monotonic")
        return Consistency.monotonic_after(last, wait_ms=wait_ms)
    if max_age is not None:
        return Consistency.max_age(duration_ms(max_age, "max_age"))
    plain = {str(need): need for need in (Need.ANY, Need.AUTHORITATIVE, Need.SETTLED)}
    if consistency is not None and consistency not in plain:
        raise InvalidInput(f"consistency is one of {', '.join(plain)}", field="consistency")
    return Consistency(need=plain[consistency or "any"])


def duration_ms(text: str, field: str) -> int:
    """Read `500ms`, `5s`, `2m` or `1h`.

    Raises:
        InvalidInput: another spelling.
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        raise InvalidInput(f"{field} is a duration such as 500ms, 5s, 2m or 1h", field=field)
    return int(found[1]) * _UNITS_MS[found[2]]
