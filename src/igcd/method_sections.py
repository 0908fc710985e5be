"""The `method` section of a recipe: the options of every method, with its paper's numbers as defaults.

Frozen and strict, and nothing else: `assembly` hands the options to the constructors by name. `budget` is how many
images of the past the method may keep per category; the runner refuses more.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

NOT_OF_THE_METHOD = frozenset({"name", "learning_rate", "later_learning_rate"})
"""Keys of a section that its method's constructor does not take: `assembly` reads them."""


class Section(BaseModel):
    """Frozen and strict, all numbers finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)


class MethodSection(Section):
    """What every method's section has."""

    name: str

    @property
    def budget(self) -> int:
        """Images kept of the past, per category."""
        return 0

    def options(self) -> dict[str, Any]:
        """What the constructor of the method takes by name."""
        return {name: getattr(self, name) for name in type(self).model_fields if name not in NOT_OF_THE_METHOD}


class TrainedSection(MethodSection):
    """A method with gradients. Its learning rates stand in place of those of the recipe's `training`.

    One that trains at stage 0 alone has no use for the later rate.
    """

    learning_rate: float | None = Field(default=None, gt=0)
    """Of stage 0."""
    later_learning_rate: float | None = Field(default=None, gt=0)
    """Of the stages after it."""


class SnnDensitySection(TrainedSection):
    """The paper's method, with the paper's numbers where it gives them. docs/methods/snn_density.md."""

    name: Literal["snn_density"] = "snn_density"
    features: Literal["tuned", "frozen", "dual"] = "tuned"
    labeled_weight: float = Field(default=0.35, ge=0, le=1)
    epsilon: float = Field(default=2.0, ge=0)
    tau: float = Field(default=0.1, gt=0)
    tau_u: float = Field(default=0.07, gt=0)
    tau_c: float = Field(default=0.1, gt=0)
    K: Annotated[int, Field(ge=1)] | Literal["auto"] = 10
    K_d: int = Field(default=20, ge=1)
    T: float = Field(default=0.6, gt=0, le=1)
    margin: float | Literal["auto"] = 0.03
    discovery: Literal["core", "peaks", "all_peaks"] = "core"
    n_support: int = Field(default=5, ge=1)
    n_replay: int = Field(default=3, ge=1)
    support_selection: Literal["density", "herding", "random"] = "density"
    replay_selection: Literal["density", "herding", "none"] = "density"
    frozen_support: Literal["images", "means"] = "images"
    frozen_weight: float = Field(default=0.5, gt=0, lt=1)

    @property
    def budget(self) -> int:
        """Images in S and R per category."""
        return self.n_support + (self.n_replay if self.replay_selection != "none" else 0)

    @model_validator(mode="after")
    def _means_need_a_space_that_does_not_move(self) -> Self:
        if self.frozen_support == "means" and self.features == "tuned":
            raise ValueError("frozen_support=means keeps means of the pretrained feature; take features=dual or frozen")
        return self


class FrozenSnnSection(SnnDensitySection):
    """A floor: the paper's classifier and selection on the pretrained feature, nothing is trained."""

    name: Literal["frozen_snn"] = "frozen_snn"  # type: ignore[assignment]
    features: Literal["frozen"] = "frozen"


class SimGcdSection(TrainedSection):
    """SimGCD, rerun on each stage's data. docs/methods/simgcd.md."""

    name: Literal["simgcd"] = "simgcd"
    labeled_weight: float = Field(default=0.35, ge=0, le=1)
    epsilon: float = Field(default=1.0, ge=0)
    tau: float = Field(default=0.1, gt=0)
    tau_u: float = Field(default=1.0, gt=0)
    tau_c: float = Field(default=0.07, gt=0)
    target_tau_start: float = Field(default=0.07, gt=0)
    target_tau_end: float = Field(default=0.04, gt=0)
    warmup_share: float = Field(default=0.15, ge=0, le=1)
    novel_start: Literal["split", "all"] = "split"


class SimGcdIcarlSection(SimGcdSection):
    """SimGCD with a memory chosen by herding and the nearest mean of exemplars. docs/methods/simgcd_icarl.md."""

    name: Literal["simgcd_icarl"] = "simgcd_icarl"  # type: ignore[assignment]
    n_replay: int = Field(default=8, ge=1)

    @property
    def budget(self) -> int:
        """Images in the memory per category."""
        return self.n_replay


class SupervisedSection(TrainedSection):
    """The upper bound: all data of all stages so far with true labels. docs/methods/supervised.md."""

    name: Literal["supervised"] = "supervised"
    labeled_weight: float = Field(default=0.35, ge=0, le=1)
    tau: float = Field(default=0.1, gt=0)
    tau_u: float = Field(default=1.0, gt=0)
    tau_c: float = Field(default=0.07, gt=0)


class FrostSection(TrainedSection):
    """FRoST, its second phase repeated per stage; statistics instead of images. docs/methods/frost.md."""

    name: Literal["frost"] = "frost"
    labeled_weight: float = Field(default=0.35, ge=0, le=1)
    tau: float = Field(default=0.1, gt=0)
    tau_u: float = Field(default=1.0, gt=0)
    tau_c: float = Field(default=0.07, gt=0)
    ranked: Literal["known", "feature"] = "known"
    n_ranked: int = Field(default=2, ge=1)
    n_drawn: int = Field(default=2, ge=1, le=10_000)
    consistency_weight: float = Field(default=25.0, ge=0)
    pseudo_label_weight: float = Field(default=0.01, ge=0)
    distillation_weight: float = Field(default=10.0, ge=0)
    later_learning_rate: float | None = Field(default=0.01, gt=0)
    """At 0.1 ten times ‖f_old − f‖ destroys the feature: docs/methods/frost.md has the figures."""
    novel_start: Literal["split", "all"] = "split"


class GmSection(TrainedSection):
    """Grow and Merge; its constants are ours, its authors published no code. docs/methods/gm.md."""

    name: Literal["gm"] = "gm"
    labeled_weight: float = Field(default=0.35, ge=0, le=1)
    tau: float = Field(default=0.1, gt=0)
    tau_u: float = Field(default=1.0, gt=0)
    tau_c: float = Field(default=0.07, gt=0)
    n_replay: int = Field(default=8, ge=1)
    ranked: Literal["known", "feature"] = "known"
    n_ranked: int = Field(default=2, ge=1)
    distillation_weight: float = Field(default=1.0, ge=0)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    features: Literal["tuned", "frozen", "dual"] = "tuned"
    frozen_weight: float = Field(default=0.5, gt=0, lt=1)
    n_components: int = Field(default=128, ge=1)

    @property
    def budget(self) -> int:
        """Exemplars per category."""
        return self.n_replay


class GcdSection(TrainedSection):
    """GCD: contrastive fine-tuning, then semi-supervised k-means. docs/methods/gcd.md."""

    name: Literal["gcd"] = "gcd"
    features: Literal["tuned", "frozen", "dual"] = "tuned"
    labeled_weight: float = Field(default=0.35, ge=0, le=1)
    tau_u: float = Field(default=1.0, gt=0)
    tau_c: float = Field(default=0.07, gt=0)
    n_starts: int = Field(default=10, ge=1, le=10_000)
    n_replay: int = Field(default=8, ge=1)
    frozen_weight: float = Field(default=0.5, gt=0, lt=1)
    n_components: int = Field(default=128, ge=1)

    @property
    def budget(self) -> int:
        """Images kept per category, clamped in later k-means."""
        return self.n_replay


class OrcaSection(TrainedSection):
    """ORCA: an adaptive negative margin and pairs of nearest neighbors. docs/methods/orca.md."""

    name: Literal["orca"] = "orca"
    scale: float = Field(default=10.0, gt=0)
    max_margin: float = Field(default=0.5, ge=0, le=1)
    entropy_weight: float = Field(default=1.0, ge=0)
    weight_decay: float = Field(default=5e-4, ge=0)
    novel_start: Literal["split", "all"] = "split"
    n_replay: int = Field(default=8, ge=1)

    @property
    def budget(self) -> int:
        """Images in the memory per category."""
        return self.n_replay


class HappySection(TrainedSection):
    """Happy: grouped entropy and hardness-aware replay of features. docs/methods/happy.md."""

    name: Literal["happy"] = "happy"
    labeled_weight: float = Field(default=0.35, ge=0, le=1)
    tau: float = Field(default=0.1, gt=0)
    target_tau: float = Field(default=0.05, gt=0)
    tau_u: float = Field(default=1.0, gt=0)
    tau_c: float = Field(default=0.07, gt=0)
    entropy_weight: float = Field(default=1.0, ge=0)
    replay_weight: float = Field(default=1.0, ge=0)
    distillation_weight: float = Field(default=1.0, ge=0)
    hardness_tau: float = Field(default=0.1, gt=0)
    later_learning_rate: float | None = Field(default=0.01, gt=0)
    novel_start: Literal["split", "all"] = "split"


class DensityGaussianSection(TrainedSection):
    """A Gaussian per category with a shared, shrunk covariance, novel ones by the discovery core; statistics only."""

    name: Literal["density_gaussian"] = "density_gaussian"
    features: Literal["frozen", "tuned", "dual"] = "frozen"
    """tuned, dual: the tail is fine-tuned once at stage 0, then nothing is trained any more."""
    n_components: int = Field(default=256, ge=1)
    frozen_weight: float = Field(default=0.5, gt=0, lt=1)
    shrinkage: Annotated[float, Field(ge=0, le=1)] | Literal["auto"] = "auto"
    granularity: float = Field(default=0.0, ge=-5, le=5)
    labeled_weight: float = Field(default=0.35, ge=0, le=1)
    tau: float = Field(default=0.1, gt=0)
    tau_u: float = Field(default=1.0, gt=0)
    tau_c: float = Field(default=0.07, gt=0)


class KMeansSection(MethodSection):
    """A floor: semi-supervised k-means on the pretrained feature, only the centers are kept."""

    name: Literal["kmeans"] = "kmeans"
    n_starts: int = Field(default=10, ge=1, le=10_000)


class RlsSection(DensityGaussianSection):
    """Recursive least squares on a feature that stands still, novel categories by the discovery core."""

    name: Literal["rls"] = "rls"  # type: ignore[assignment]
    n_expanded: int = Field(default=1024, ge=1, le=100_000)
    score_tau: float = Field(default=0.1, gt=0)


class VbCgcdSection(TrainedSection):
    """VB-CGCD: a Gaussian per category with a covariance of its own. docs/methods/vb_cgcd.md."""

    name: Literal["vb_cgcd"] = "vb_cgcd"
    features: Literal["frozen", "tuned", "dual"] = "tuned"
    n_components: int = Field(default=384, ge=1)
    step: float = Field(default=5e-4, gt=0, lt=1)
    n_steps: int = Field(default=1000, ge=1, le=1_000_000)
    early_stop: bool = True
    frozen_weight: float = Field(default=0.5, gt=0, lt=1)
    labeled_weight: float = Field(default=0.35, ge=0, le=1)
    tau: float = Field(default=0.1, gt=0)
    tau_u: float = Field(default=1.0, gt=0)
    tau_c: float = Field(default=0.07, gt=0)


class UnoSection(TrainedSection):
    """UNO: targets of equal size by Sinkhorn, several novel heads. docs/methods/uno.md."""

    name: Literal["uno"] = "uno"
    tau: float = Field(default=0.1, gt=0)
    epsilon: float = Field(default=0.05, gt=0)
    n_rounds: int = Field(default=3, ge=1, le=10_000)
    n_heads: int = Field(default=4, ge=1, le=100)
    overclustering: int = Field(default=3, ge=1, le=100)


class MscIncdSection(TrainedSection):
    """MSc-iNCD: a frozen encoder and a head per stage, joined. docs/methods/msc_incd.md."""

    name: Literal["msc_incd"] = "msc_incd"
    tau: float = Field(default=0.1, gt=0)
    epsilon: float = Field(default=0.05, gt=0)
    n_rounds: int = Field(default=3, ge=1, le=10_000)
    replay_weight: float = Field(default=1.0, ge=0)


class MibSection(GcdSection):
    """MIB, or PIM: centers that share most information with the images. docs/methods/mib.md."""

    name: Literal["mib"] = "mib"  # type: ignore[assignment]
    features: Literal["tuned", "frozen", "dual"] = "frozen"
    n_steps: int = Field(default=300, ge=1, le=1_000_000)
    scale: float = Field(default=25.0, gt=0)
