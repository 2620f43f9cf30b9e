"""The parts of scikit-learn that estimators use: an optional dependency, imported only here.

Raises
------
ImportError
    scikit-learn is missing; the message gives the installation command.
"""

try:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        RegressorMixin,
        TransformerMixin,
    )
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.preprocessing import LabelEncoder
    from sklearn.utils import check_random_state
    from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ModuleNotFoundError as error:
    raise ImportError("estimators need scikit-learn: pip install 'circuitsim-exact[learn]'") from error

__all__ = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "ConvergenceWarning",
    "HasMethods",
    "Interval",
    "LabelEncoder",
    "RegressorMixin",
    "StrOptions",
    "TransformerMixin",
    "_check_sample_weight",
    "check_classification_targets",
    "check_is_fitted",
    "check_random_state",
    "validate_data",
]
