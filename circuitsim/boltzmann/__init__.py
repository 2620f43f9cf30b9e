"""Restricted Boltzmann machines trained by contrastive divergence whose bias is computed or bounded as they learn."""

from circuitsim._moved import at_first_use
from circuitsim.boltzmann.contrastive import AdaptiveSteps, ContrastiveDivergence, FixedSteps, StepRule
from circuitsim.boltzmann.exact import (
    VACUOUS,
    EnumerationError,
    PartitionEstimate,
    bias,
    bias_bound,
    data_distance,
    empirical_distribution,
    estimate_log_partition,
    expected_contrastive_divergence,
    likelihood_gradient,
    log_likelihood,
    log_partition,
    max_energy_change,
    mixing_factor,
    model_distribution,
    older_bound,
    total_variation,
    transition_matrix,
)
from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine
from circuitsim.boltzmann.study import pattern_set, train_expected

__all__ = [
    "VACUOUS",
    "AdaptiveSteps",
    "ContrastiveDivergence",
    "ContrastiveDivergenceRBM",
    "EnumerationError",
    "FixedSteps",
    "PartitionEstimate",
    "RestrictedBoltzmannMachine",
    "StepRule",
    "bias",
    "bias_bound",
    "data_distance",
    "empirical_distribution",
    "estimate_log_partition",
    "expected_contrastive_divergence",
    "likelihood_gradient",
    "log_likelihood",
    "log_partition",
    "max_energy_change",
    "mixing_factor",
    "model_distribution",
    "older_bound",
    "pattern_set",
    "total_variation",
    "train_expected",
    "transition_matrix",
]

# scikit-learn is an optional extra.
__getattr__ = at_first_use(__name__, ContrastiveDivergenceRBM="circuitsim.boltzmann.estimator")
