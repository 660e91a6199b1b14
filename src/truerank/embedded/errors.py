"""What can go wrong with embedded engines; each message says what to do."""

from truerank.errors import EngineError


class EngineNotFound(EngineError):
    """No usable PostgreSQL or Valkey/Redis on this machine. Nothing was started."""

    code = "engine_not_found"


class EngineStartFailed(EngineError):
    """An engine ended, or did not get ready in time; the message carries the end of its log."""

    code = "engine_start_failed"


class EngineEnded(EngineError):
    """An engine ended while it was in use; the message carries the end of its log. Start again."""

    code = "engine_ended"


class EngineUnresponsive(EngineError):
    """The process that owns the engines lives, one of them does not answer. Stop that process."""

    code = "engine_unresponsive"


class DataFolderUnusable(EngineError):
    """The data folder can't be made, read, or reached by the engines. Choose another folder."""

    code = "data_folder_unusable"


class DataFolderBusy(EngineError):
    """Another process holds the data folder and neither gets ready nor lets go of it."""

    code = "data_folder_busy"


class EnginesWithoutTcp(EngineError):
    """TCP was asked for, and the engines that run already listen on unix sockets only."""

    code = "engines_without_tcp"
