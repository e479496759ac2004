"""The version of this package, and which of two versions is newer. Every trial imports it."""

VERSION = "0.1.0"


def is_newer(version: str, than: str) -> bool:
    """True when a version of this package is newer than another; what is no version is older than any."""
    if version == than:
        return False
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415 - versions differ rarely

    try:
        found = Version(version)
        return found > Version(than) if than else True
    except InvalidVersion:
        return False
