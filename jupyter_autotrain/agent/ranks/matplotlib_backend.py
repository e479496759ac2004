"""A matplotlib backend: Agg, and `plt.show()` keeps the open figures as pictures of the trial, then closes them."""

from __future__ import annotations

from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

from jupyter_autotrain.agent.ranks import api


class FigureManager(FigureManagerBase):
    """A manager that shows figures by keeping them."""

    def show(self) -> None:
        """Keep this figure: `fig.show()`."""
        keep(self.canvas.figure)

    @classmethod
    def pyplot_show(cls, *, block: bool | None = None) -> None:  # noqa: ARG003 - nothing can wait in a trial
        """Keep all open figures and close them: `plt.show()`."""
        for manager in Gcf.get_all_fig_managers():
            keep(manager.canvas.figure)
        Gcf.destroy_all()


class FigureCanvas(FigureCanvasAgg):
    """A canvas in memory."""

    manager_class = FigureManager


def keep(figure: object) -> None:
    """Keep one figure as a picture of this trial; do nothing outside a trial."""
    trial = api.context()
    if trial is not None:
        trial.display(figure)
