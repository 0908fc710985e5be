"""Losses and scores for TensorBoard, beside the records of a run."""

from functools import cached_property
from pathlib import Path
from typing import Any

from igcd.errors import IgcdError
from igcd.training import EpochReport


class TensorBoardWriter:
    """Writes curves below a folder, made when there is something to write; needs the extra `tensorboard`."""

    def __init__(self, folder: Path) -> None:
        try:
            import torch.utils.tensorboard  # noqa: F401
        except ImportError:
            raise IgcdError(
                "TensorBoard is not installed; in the checkout, pip install '.[tensorboard]', or leave it out"
            ) from None
        self._folder = folder
        self._n_epochs = 0

    @cached_property
    def _writer(self) -> Any:  # noqa: ANN401 - TensorBoard has no types
        from torch.utils.tensorboard import SummaryWriter

        return SummaryWriter(str(self._folder))

    def on_epoch(self, report: EpochReport) -> None:
        """The loss, epoch after epoch through all stages."""
        self._writer.add_scalar("loss", report.loss, self._n_epochs)
        self._n_epochs += 1

    def on_stage_end(self, record: dict[str, Any]) -> None:
        """The scores of a stage."""
        for group, value in record["scores"].items():
            if value is not None:
                self._writer.add_scalar(f"accuracy/{group}", value, record["stage"])
        self._writer.flush()
