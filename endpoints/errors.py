"""Every error this project raises, split by whose fault it is.

- VoxmeterError
    - UserError: the user's or the machine's mistake; exit status 2, one line
        - MissingExtraError: a library or model that an extra installs
    - ClipError: a clip that cannot be spoken; the trial's status is `bad_clip`
    - EndpointError: the other side's fault; becomes a trial's status, never an exit status
        - ConnectError: no session could be opened
        - ConnectionLostError: the connection ended before the reply did
        - ProtocolError: a message that the protocol does not allow
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from voxmeter.endpoints.codec import Message


class VoxmeterError(Exception):
    """Base of every error below; never raised itself."""


class UserError(VoxmeterError):
    """The user's or the machine's mistake.

    Attributes:
        place: Where: a file with line or key, an option, a device.
        found: What was there.
        cure: What to do about it.
    """

    def __init__(self, place: str, found: str, cure: str) -> None:
        self.place = place
        self.found = found
        self.cure = cure
        super().__init__(f"{place}: {found}; {cure}")

    def __reduce__(self) -> tuple[type[UserError], tuple[str, str, str]]:
        return (UserError, (self.place, self.found, self.cure))


class MissingExtraError(UserError):
    """A feature was asked for whose libraries or model files are not installed.

    Attributes:
        missing: The library or model.
        extra: The extra that installs it.
    """

    def __init__(self, feature: str, missing: str, extra: str) -> None:
        self.missing = missing
        self.extra = extra
        super().__init__(feature, f"needs {missing}", f"pip install 'voxmeter[{extra}]'")

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str, str]]:
        return (MissingExtraError, (self.place, self.missing, self.extra))


class ClipError(VoxmeterError):
    """A clip that cannot be spoken: empty, unreadable, not finite.

    Attributes:
        path: The file, or a description of where the audio came from.
        problem: What is wrong with it.
    """

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}")

    def __reduce__(self) -> tuple[type[ClipError], tuple[str, str]]:
        return (ClipError, (self.path, self.problem))


class EndpointError(VoxmeterError):
    """The endpoint's fault; ends a trial with a status."""


ConnectFailure = Literal["refused", "dns", "tls", "timeout", "rejected", "closed"]


class ConnectError(EndpointError):
    """No session could be opened.

    Attributes:
        failure: `rejected` means that the peer answered and said no (HTTP status, policy close);
            every other value means that there was no usable connection.
        status: HTTP status or websocket close code, where there was one.
        retryable: Whether asking again later can help, of a peer that said no.
        retry_after_s: How long the peer asks us to wait; None where it names no time.
    """

    def __init__(
        self,
        failure: ConnectFailure,
        message: str,
        status: int | None = None,
        *,
        retryable: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        self.failure: ConnectFailure = failure
        self.status = status
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return (ConnectError, (self.failure, str(self), self.status), vars(self))


class ConnectionLostError(EndpointError):
    """The connection ended while something was still to be sent or received."""

    def __init__(self, code: int | None, reason: str) -> None:
        self.code = code
        self.reason = reason
        told = "" if code is None else f" (code {code})"
        super().__init__(f"connection lost{told}: {reason or 'no reason given'}")

    def __reduce__(self) -> tuple[type[ConnectionLostError], tuple[int | None, str]]:
        return (ConnectionLostError, (self.code, self.reason))


class ProtocolError(EndpointError):
    """An endpoint sent a message its protocol does not allow."""

    def __init__(self, protocol: str, problem: str, message: Message) -> None:
        from voxmeter.endpoints.codec import describe

        self.protocol = protocol
        self.problem = problem
        self.message = message
        super().__init__(f"{protocol}: {problem} ({describe(message)})")

    def __reduce__(self) -> tuple[type[ProtocolError], tuple[str, str, Message]]:
        return (ProtocolError, (self.protocol, self.problem, self.message))
