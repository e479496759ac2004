"""Long-running processes, *pilots*, that are given trials and run them one after another.

```
waiting/NAME        a trial that may be taken: its *entry*, JSON; there while trials are taken
FOLDER/taken-NAME   the entry of the trial that the pilot of this folder runs
       ran          the names of the trials that have ended there, one a line; who gives a trial holds its lock
```

A pilot takes a trial by renaming its entry, which succeeds for one pilot alone, so several may share `waiting`. The
trial runs in a process of its own; when it has ended by itself, `taken-NAME` goes. A pilot that is ended leaves that
file, and whoever looks after it settles what becomes of the trial. What a place adds is how its trials are run.
"""
