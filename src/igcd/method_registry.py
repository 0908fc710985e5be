"""All methods, once for recipes, commands and tests: the section of options, the class, a summary, the page."""

from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from igcd.method_sections import (
    DensityGaussianSection,
    FrostSection,
    FrozenSnnSection,
    GcdSection,
    GmSection,
    HappySection,
    KMeansSection,
    MethodSection,
    MibSection,
    MscIncdSection,
    OrcaSection,
    RlsSection,
    SimGcdIcarlSection,
    SimGcdSection,
    SnnDensitySection,
    SupervisedSection,
    UnoSection,
    VbCgcdSection,
)


@dataclass(frozen=True)
class MethodEntry:
    """A method by all that others know of it; its options have the defaults of its section."""

    section: type[MethodSection]
    class_path: str  # module and class below igcd.methods
    summary: str
    own_count: Literal["density", "kmeans", "silhouette"] | None = "kmeans"
    """How it estimates the number of novel categories where it needs it beforehand; None: it finds it by itself."""
    sees_all_labels: bool = False  # the upper bound

    @property
    def name(self) -> str:
        """What a recipe calls it."""
        return str(self.section.model_fields["name"].default)

    @property
    def page(self) -> str:
        """Its documentation, from the root of the project."""
        return f"docs/methods/{self.name}.md"

    def load(self) -> Any:  # noqa: ANN401 - the class of a `Method`; each has its own options
        """Its class, imported only when it is needed, so that listing methods does not wait for torch."""
        module, _, name = self.class_path.partition(".")
        return getattr(import_module(f"igcd.methods.{module}"), name)


_ENTRIES = (
    MethodEntry(
        SnnDensitySection,
        "snn_density.SnnDensity",
        "the paper's: soft nearest neighbors, density-selected support, replay",
        own_count=None,
    ),
    MethodEntry(
        SimGcdSection, "simgcd.SimGcd", "a parametric classifier that teaches itself across views, rerun at each stage"
    ),
    MethodEntry(
        SimGcdIcarlSection, "simgcd_icarl.SimGcdIcarl", "SimGCD with a herded memory and the nearest mean of exemplars"
    ),
    MethodEntry(FrostSection, "frost.Frost", "feature replay and distillation, new categories by rank statistics"),
    MethodEntry(GmSection, "gm.GrowAndMerge", "Grow and Merge: a static and a dynamic branch"),
    MethodEntry(GcdSection, "gcd.Gcd", "contrastive fine-tuning, then semi-supervised k-means"),
    MethodEntry(OrcaSection, "orca.Orca", "an uncertainty-adaptive margin and pairs of nearest neighbors"),
    MethodEntry(
        HappySection, "happy.Happy", "grouped entropy and hardness-aware replay of features", own_count="silhouette"
    ),
    MethodEntry(
        DensityGaussianSection,
        "density_gaussian.DensityGaussian",
        "one frozen encoder, a Gaussian per category, novel ones by the discovery core",
        own_count=None,
    ),
    MethodEntry(
        VbCgcdSection, "vb_cgcd.VbCgcd", "one frozen encoder, a Gaussian per category with a covariance of its own"
    ),
    MethodEntry(
        RlsSection,
        "rls.RecursiveLeastSquares",
        "one frozen encoder, a closed-form head by recursive least squares",
        own_count=None,
    ),
    MethodEntry(MibSection, "mib.Mib", "centers on a frozen feature that share most information with the images"),
    MethodEntry(UnoSection, "uno.Uno", "labels and targets of equal size by Sinkhorn, several novel heads"),
    MethodEntry(MscIncdSection, "msc_incd.MscIncd", "a frozen encoder and a cosine head per stage, joined"),
    MethodEntry(
        FrozenSnnSection,
        "snn_density.SnnDensity",
        "a floor: the paper's classifier on the pretrained feature",
        own_count=None,
    ),
    MethodEntry(KMeansSection, "kmeans.KMeans", "a floor: semi-supervised k-means on the pretrained feature"),
    MethodEntry(
        SupervisedSection,
        "supervised.Supervised",
        "the upper bound: all data so far with true labels",
        own_count=None,
        sees_all_labels=True,
    ),
)

METHODS = {entry.name: entry for entry in _ENTRIES}
"""By name, in the order of lists and tables."""

if TYPE_CHECKING:
    AnyMethodSection = MethodSection
else:
    AnyMethodSection = Annotated[reduce(or_, (entry.section for entry in _ENTRIES)), Field(discriminator="name")]
