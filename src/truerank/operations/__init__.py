"""Everything a client can do, each written once as steps for blocking and asyncio clients."""

from truerank.operations.awarding import Awarding
from truerank.operations.closing import Closing
from truerank.operations.correcting import Correcting
from truerank.operations.delivering import Delivering
from truerank.operations.erasing import Erasing
from truerank.operations.filling import Filling
from truerank.operations.freezing import Freezing
from truerank.operations.governing import Governing
from truerank.operations.leagues import Leagues
from truerank.operations.members import Members
from truerank.operations.naming import Naming
from truerank.operations.reading import Reading
from truerank.operations.writing import Writing


class Operations(
    Governing,
    Writing,
    Correcting,
    Closing,
    Awarding,
    Delivering,
    Members,
    Erasing,
    Filling,
    Freezing,
    Leagues,
    Naming,
    Reading,
):
    """What `truerank.client.Truerank` and `truerank.aio.Truerank` offer under the same names."""


__all__ = ["Operations"]
