"""What is no HTTP that a route could see is refused in the shape of every error as well."""

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from truerank.serve.errors import HttpRefusal
from truerank.serve.replies import error_reply

ADDRESS_BYTES_MAX = 65_535  # as far as the parser counts
_READ_BYTES_MAX = 1 << 20  # who is cut off while it sends doesn't read why


class Protocol(HttpToolsProtocol):
    """Of one connection."""

    url = b""

    def on_url(self, url: bytes) -> None:
        """Take a piece of the address."""
        super().on_url(url)
        if len(self.url) > _READ_BYTES_MAX:
            raise ValueError("the address is too long")

    def send_400_response(self, msg: str) -> None:
        """Refuse what can't be parsed, and end the connection."""
        if len(self.url) > ADDRESS_BYTES_MAX:
            refusal = HttpRefusal(
                414,
                "address_too_long",
                f"an address has at most {ADDRESS_BYTES_MAX} bytes, not {len(self.url)}:"
                " places, counts and histogram take the same in the body of a POST",
            )
        else:
            refusal = HttpRefusal(400, "request_malformed", msg)
        answer = error_reply(refusal)
        headers = [*answer.raw_headers, (b"connection", b"close")]
        head = b"".join(b"%b: %b\r\n" % each for each in headers)
        self.transport.write(
            b"%b%b\r\n%b" % (STATUS_LINE[answer.status_code], head, bytes(answer.body))
        )
        self.transport.close()
