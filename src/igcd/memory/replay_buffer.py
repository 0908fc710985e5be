"""The replay buffer R: the images kept of the past."""

from torch import Tensor

from igcd.memory.entries import Entries


class ReplayBuffer(Entries):
    """The few images of each category that later stages may still see.

    Images of past stages are gone, so an entry holds what training reads: pixels (uint8), or the frozen trunk's output
    for several views (half precision). Which of the two is the method's business.
    """

    @property
    def images(self) -> Tensor:
        """What is stored of each image, (n, ...), in the order of `image_ids`."""
        return self.content
