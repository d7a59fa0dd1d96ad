"""Logins and keys inside addresses, masked in whatever text is shown, and the forms in which they may turn up.

A password may hold an "@" of its own, so everything before the last one of a word counts as login; the scheme may be
missing. Too much is masked rather than too little.
"""

from __future__ import annotations

import base64
import re
from urllib.parse import parse_qsl, quote, unquote, urlsplit

MASK = "********"

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}:$")
_WORD = re.compile(r'[^\s"<>]+')
_BEFORE_LOGIN = re.compile(r"[=(\[{,;'`]")
_GIVEN = re.compile(r"([?&;#][\w.\[\]%-]{1,64}=)([^&#\s\"<>]+)")
_SECRET_NAME = re.compile(r"key|token|secret|passw|pwd|auth|sig|cred|login|jwt|session", re.IGNORECASE)
_SECRET_FLAG = re.compile(r"(^|[-_])(key|token|secret|password|credentials?)$", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"(sk|hf|ghp|xox\w)[-_]")


def masked(text: str, mask: str = MASK) -> str:
    """``text`` without the logins and the secret-looking query values of the addresses in it. Takes linear time."""
    whole = text.strip()
    if whole and not whole.startswith(("{", "[{")) and len(whole.split()) == 1:
        # An address by itself: quotes and angle brackets are part of it.
        return text.replace(whole, _word(whole, mask, alone=True), 1)
    return _WORD.sub(lambda found: _word(found[0], mask, alone=False), text)


def _word(word: str, mask: str, *, alone: bool) -> str:
    login, at, rest = word.rpartition("@")
    if at:
        word = f"{_before_login(login, mask, alone=alone)}@{rest}"
    return _GIVEN.sub(lambda found: found[1] + mask if _is_secret(found[1], found[2]) else found[0], word)


def _before_login(text: str, mask: str, *, alone: bool) -> str:
    """What stands before a word's last "@", with the login masked; as it is where that is no login."""
    before, slashes, _ = text.partition("//")
    opening = before.rpartition("=")[2].lstrip("(['{`,;")
    if slashes and (not opening or _SCHEME.match(opening)):
        return f"{before}//{mask}"
    user, colon, _ = text.partition(":")
    if not colon:
        return mask if alone and "/" not in text else text
    start = 0 if alone and "=" not in user else max((found.end() for found in _BEFORE_LOGIN.finditer(user)), default=0)
    return user[:start] + mask


def _is_secret(name: str, value: str) -> bool:
    return bool(_SECRET_NAME.search(name) or _SECRET_VALUE.match(value))


def is_secret_name(name: str) -> bool:
    """Whether a flag or field of this name holds a secret; ``tokenizer`` and ``max-tokens`` do not."""
    return _SECRET_FLAG.search(name) is not None


def login_forms(user: str, password: str) -> tuple[str, ...]:
    """The secret of a login as it may turn up in text: plain, percent-encoded, and as the header carries it.

    Without a password the user's name is the secret, as with tokens.
    """
    secret = password or user
    header = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
    encoded = {quote(secret, safe=""), quote(secret)}
    forms = {secret, header, *encoded, *(re.sub("%..", lambda found: found[0].lower(), form) for form in encoded)}
    return tuple(sorted(filter(None, forms), key=lambda form: (-len(form), form)))


def address_secrets(address: str) -> tuple[str, ...]:
    """All secrets of an address, in every form; () where it has none or cannot be read."""
    given = address.strip()
    before, slashes, rest = given.partition("//")
    if not slashes or (before and not _SCHEME.match(before)):
        rest = given
    found: list[str] = []
    login, at, _ = rest.rpartition("@")
    if at:
        user, _, password = login.partition(":")
        found += [password or user, *login_forms(unquote(user), unquote(password))]
    try:
        pairs = parse_qsl(urlsplit(given).query)
    except ValueError:
        pairs = []
    for name, value in pairs:
        if _is_secret(name, value):
            found += [value, quote(value, safe="")]
    return tuple(dict.fromkeys(filter(None, found)))
