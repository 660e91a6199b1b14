"""Whether an answer that a client has shows what a token stands for; no store is asked."""

from collections.abc import Mapping
from typing import Any

from truerank.errors import EpochChanged, NotComparable
from truerank.model import Freshness, Token
from truerank.read import tokens


def shows(freshness: Freshness | Mapping[str, Any], token: Token | str) -> bool:
    """Whether an answer shows a write, or all that an earlier answer showed.

    Two snapshots are only partly ordered, as transactions end in another order than they begin: of
    two answers, neither may show all that the other does. What was rolled back asks for nothing.

    Args:
        freshness: of an answer that was asked for with `at_least` or `monotonic`, which carries a
            token itself; or the `freshness` object of its JSON.
        token: of a receipt, or of the freshness of an answer.

    Raises:
        EpochChanged: PostgreSQL went backwards between the two: what the token stands for may be
            lost.
        NotComparable: the answer carries no token, or comes from a server that doesn't know the
            token's transactions by their numbers, as after a failover.
        InvalidInput: the text is no token.
    """
    seen = tokens.parse(Token(token))
    if isinstance(freshness, Freshness):
        freshness = {name: getattr(freshness, name) for name in ("epoch", "token", "lives")}
    epoch, own, lives = (freshness.get(name) for name in ("epoch", "token", "lives"))
    if epoch is not None and tokens.is_past(epoch, seen):
        raise EpochChanged("the source went backwards between the token and the answer")
    if own is None or lives is None:
        raise NotComparable("the answer carries no token: ask for it with one, or with monotonic")
    if not tokens.can_tell(lives, seen):
        raise NotComparable("the answer is of a server that does not know the token's transactions")
    shown = tokens.parse(own).snapshot
    if shown is None:
        raise NotComparable("the answer carries a token of no answer")
    return seen.shown_by(shown)
