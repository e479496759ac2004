"""The `__main__` of processes that a cell starts by multiprocessing's spawn or forkserver.

Such a process loads the file of its parent's `__main__` under the name `__mp_main__`, to find functions and classes
in it. A cell is not written for that: it would train again. So a cell's `__file__` is this file, which gives the new
process the cell's definitions and parameters, and runs nothing else.
"""

if __name__ == "__mp_main__":
    import os as _os
    import sys as _sys

    _root = _os.path.dirname(_os.path.dirname(_os.path.dirname(_os.path.dirname(_os.path.abspath(__file__)))))
    _sys.path.insert(0, _root)
    from jupyter_autotrain.agent.ranks import child_definitions as _definitions

    _sys.path.remove(_root)
    _definitions.define(globals())
