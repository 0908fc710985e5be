"""`igcd discover --adapt`: the encoder's tail learns from the person's photos, by the stage loop of the paper's method.

The labels are what the person has said so far, the unlabeled photos those of the stage. From one adaptation to the next
only weights are carried on, in a file beside the catalog. Which categories there are, and what is in S and R, comes
from the catalog every time: what a person merges, renames or undoes counts here as well.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from lightning_fabric import Fabric
from torch import Tensor

from igcd.data.images import digest
from igcd.encoders.encoder import Encoder
from igcd.errors import IgcdError
from igcd.methods.method import Context
from igcd.methods.novel_count import EstimatedCount
from igcd.methods.snn_density import SnnDensity
from igcd.runner import EpochCheckpoint
from igcd.tensor_files import read_tensors, write_tensors
from igcd.training import EpochReport, Optimization
from igcd.types import UNLABELED, Stage
from igcd.workspace.catalog import Catalog
from igcd.workspace.evidence import gather_evidence, n_fresh_labels
from igcd.workspace.features import RESTORE, AdaptedEncoder, FrozenEncoder, PhotoEncoder, open_tail
from igcd.workspace.middle import as_seen
from igcd.workspace.photo_files import PhotoFiles, photo_files

FIRST_STAGE = Optimization(n_epochs=15)
LATER_STAGES = Optimization(n_epochs=10)
"""Fewer epochs than the paper's 100 and 40: an adaptation should take minutes on two cores, and first experiments
reached most of the gain with 15."""


N_STAGES = "workspace.n_stages"
"""Under this name a file of weights says how many adaptations they went through."""


def adapt_tail(
    catalog: Catalog,
    encoder: Encoder,
    *,
    first_stage: Optimization = FIRST_STAGE,
    later_stages: Optimization = LATER_STAGES,
    seed: int = 0,
    after_epoch: Callable[[EpochReport], None] = lambda _report: None,
) -> Path:
    """Trains the tail on the labels so far and the photos of the open stage; the file of what came out.

    Stopped at any epoch, it goes on from there. The file has a name of its own, nothing is overwritten.
    """
    with catalog.snapshot() as db:
        stage = int(db.execute("SELECT MAX(stage) FROM stages").fetchone()[0])
        evidence = gather_evidence(db, stage)
        files = photo_files(db, evidence.photo_ids.tolist())
        former = _last_adapted(catalog, before=stage)
        if not evidence.fresh and not n_fresh_labels(db, stage):
            raise IgcdError("there are no new photos to adapt to; add some, and adapt when they are first discovered")
    has_file = np.array([photo in files for photo in evidence.photo_ids.tolist()], dtype=bool)
    is_labeled = (evidence.labels != UNLABELED) & has_file
    if len(set(evidence.labels[is_labeled].tolist())) < 2:
        raise IgcdError("adapting needs labeled photos of two categories at least; label some, or leave out --adapt")
    former_tensors, former_text = ({}, {}) if former is None else read_tensors(former, remedy=RESTORE)
    category_ids = sorted(set(evidence.labels[is_labeled].tolist()))
    number_of = {category: number for number, category in enumerate(category_ids)}
    index = int(former_text.get(N_STAGES, "0"))
    data = Stage(
        index=index,
        labeled=PhotoFiles(files[photo] for photo in evidence.photo_ids[is_labeled].tolist()),
        labels=np.array([number_of[category] for category in evidence.labels[is_labeled].tolist()], dtype=np.int64),
        unlabeled=PhotoFiles(files[photo] for photo in evidence.photo_ids[~is_labeled & has_file].tolist()),
        category_names=tuple(str(category) for category in category_ids),
    )
    # Epochs of other photos or labels cannot be continued: the file name says what they were trained on.
    data_key = digest(evidence.photo_ids.tobytes() + evidence.labels.tobytes() + str(former).encode())
    checkpoint = EpochCheckpoint(catalog.folder / "model" / f"epoch-{data_key}.safetensors")
    checkpoint.stage = index
    fabric = Fabric(accelerator="cpu" if encoder.backbone.device.type == "cpu" else "gpu", devices=1)
    method = SnnDensity(
        Context(encoder, fabric, seed, checkpoint, after_epoch),
        first_stage=first_stage,
        later_stages=later_stages,
        count_novel=EstimatedCount("density"),
        features="dual",
    )
    tensors, text = method.state_dict()
    method.load_state_dict({**tensors, **_weights(former_tensors)}, text)
    method.learn(data)
    tensors, _ = method.state_dict()
    path = catalog.folder / "model" / f"adapted-{stage}-{data_key}.safetensors"
    write_tensors(path, _weights(tensors), {N_STAGES: str(index + 1)})
    checkpoint.clear()
    return path


def _weights(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Of a method's state the weights of the tail and its projector: all that one adaptation leaves to the next."""
    return {name: tensor for name, tensor in tensors.items() if name.startswith("model.")}


def current_encoder(catalog: Catalog, encoder: Encoder, *, adapted: Path | None = None) -> PhotoEncoder:
    """The encoder as it was last adapted, or as it comes; `adapted` is a file that no stage names yet."""
    path = adapted or _last_adapted(catalog)
    once = FrozenEncoder(encoder) if path is None else AdaptedEncoder(encoder, open_tail(encoder, path))
    return as_seen(encoder, once)


def _last_adapted(catalog: Catalog, *, before: int | None = None) -> Path | None:
    with catalog.snapshot() as db:
        row = db.execute(
            "SELECT adapted FROM stages WHERE adapted IS NOT NULL AND stage < COALESCE(?, stage + 1) "
            "ORDER BY stage DESC LIMIT 1",
            (before,),
        ).fetchone()
    return None if row is None else catalog.folder / row["adapted"]
