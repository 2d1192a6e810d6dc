"""Who may ask: the browser that came by the link which the server printed.

A program of another user, or a page of another site that is open in the same browser, can reach a
port of this machine too. So the link has a token that works once; it is exchanged for a cookie that
no other site can send or read.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from threading import Lock

TOKEN_FIELD = "token"
_BYTES = 24


class Access:
    """The session of one server, and the link that opens it.

    Examples
    --------
    >>> access = Access(lambda token: None)
    >>> session = access.exchange(access.token)
    >>> access.knows(session), access.knows("guessed"), access.knows(None)
    (True, False, False)
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._session = secrets.token_urlsafe(_BYTES)
        self._used: str | None = None
        self._lock = Lock()
        self.token = secrets.token_urlsafe(_BYTES)
        self.key = secrets.token_urlsafe(_BYTES)

    def exchange(self, token: str) -> str | None:
        """Return the session for a token; None for one that is wrong or was used."""
        with self._lock:
            if secrets.compare_digest(token.encode(), self.token.encode()):
                self._used, self.token = self.token, secrets.token_urlsafe(_BYTES)
                return self._session
            was_right = self._used is not None and secrets.compare_digest(
                token.encode(), self._used.encode()
            )
            if was_right:
                self._used = None  # one new link for each that was used
                self._tell(self.token)
        return None

    def knows(self, session: str | None) -> bool:
        """Return whether a cookie is that of the session."""
        return session is not None and secrets.compare_digest(
            session.encode(), self._session.encode()
        )

    def knows_key(self, authorization: str | None) -> bool:
        """Return whether the header ``Authorization`` has the key."""
        expected_header = f"Bearer {self.key}".encode()
        return secrets.compare_digest((authorization or "").encode(), expected_header)
