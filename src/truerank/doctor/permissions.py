"""What the user may do in Valkey or Redis, asked of the server without doing any of it."""

import json
from collections.abc import Iterator

from redis.exceptions import ResponseError

from truerank.doctor.findings import Deployment, Finding, error, ok
from truerank.projection.keys import GroupKeys

# The server's own judgement of each command, as the user whose connection this is. A command that
# is not known to it is not allowed either.
_ASK = """
local denied = {}
for i = 1, #ARGV, 2 do
    local words = cjson.decode(ARGV[i + 1])
    if not redis.acl_check_cmd(unpack(words)) then
        denied[#denied + 1] = ARGV[i]
    end
end
return denied
"""
_KEY, _CHANNEL = "KEY", "CHANNEL"
# Every command that workers and readers send, or scripts call, with as many words as it takes.
COMMANDS: dict[str, tuple[str, ...]] = {
    "DEL": (_KEY,),
    "EVAL": ("return 1", "1", _KEY),
    "EVALSHA": ("0" * 40, "1", _KEY),
    "EXISTS": (_KEY,),
    "GET": (_KEY,),
    "HDEL": (_KEY, "f"),
    "HGET": (_KEY, "f"),
    "HINCRBY": (_KEY, "f", "1"),
    "HKEYS": (_KEY,),
    "HLEN": (_KEY,),
    "HMGET": (_KEY, "f"),
    "HRANDFIELD": (_KEY, "1", "WITHVALUES"),
    "HSCAN": (_KEY, "0"),
    "HSET": (_KEY, "f", "v"),
    "HVALS": (_KEY,),
    "INFO": (),
    "MEMORY": ("USAGE", _KEY),
    "PING": (),
    "PUBLISH": (_CHANNEL, ""),
    "SCAN": ("0",),
    "SET": (_KEY, ""),
    "SUBSCRIBE": (_CHANNEL,),
    "TIME": (),
    "UNLINK": (_KEY,),
    "ZADD": (_KEY, "0", "m"),
    "ZCARD": (_KEY,),
    "ZCOUNT": (_KEY, "0", "0"),
    "ZLEXCOUNT": (_KEY, "-", "+"),
    "ZMSCORE": (_KEY, "m"),
    "ZRANGE": (_KEY, "0", "0"),
    "ZRANK": (_KEY, "m"),
    "ZREM": (_KEY, "m"),
    "ZSCORE": (_KEY, "m"),
}


def redis_permissions(here: Deployment) -> Iterator[Finding]:
    """The user may call every command that workers and readers call, on keys of the prefix."""
    group = GroupKeys(here.settings.prefix, 0)
    words = {_KEY: group.generation("doctor").meta, _CHANNEL: group.hints}
    asked = []
    for command, arguments in COMMANDS.items():
        named = [command, *(words.get(argument, argument) for argument in arguments)]
        asked += [command, json.dumps(named)]
    try:
        denied = [name.decode() for name in here.redis.eval(_ASK, 0, *asked)]
    except ResponseError as exc:
        yield error(
            redis_permissions,
            f"scripts can't be run: {exc}",
            "let the user in TRUERANK_REDIS_URL call EVAL and EVALSHA",
        )
        return
    if denied:
        yield error(
            redis_permissions,
            f"not allowed on keys and channels of {here.settings.prefix!r}: {', '.join(denied)}",
            "let the user in TRUERANK_REDIS_URL call them: ACL SETUSER",
        )
    else:
        yield ok(redis_permissions, f"all of {len(COMMANDS)} commands may be called")
