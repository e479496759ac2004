"""Transfer of folders to places, whatever they hold: which of their files are missing, send, verify, hold.

`folders` says what a folder holds, also as one tar file for stores that run nothing; `sending` has a place receive it
over one of `channels`.
"""
