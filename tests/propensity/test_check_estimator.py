"""Every model has scikit-learn's manners, the treatment being its y."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from titrant.propensity import (
    PROPENSITIES,
    DensityAverage,
    GaussianMixture,
    HeteroscedasticGaussian,
    KernelConditional,
    LinearGaussian,
    MultivariateGaussian,
)

NO_DENSITY = "the check draws doses that contexts determine, which is refused"
EXACT_DOSES = {
    "check_sample_weights_shape": NO_DENSITY,
    "check_sample_weights_not_overwritten": NO_DENSITY,
    "check_sample_weight_equivalence_on_dense_data": NO_DENSITY,
}
"""What these would show is shown on other doses in `tests/laws/test_weighted_models.py`."""


def expected(model):
    return {} if isinstance(model, KernelConditional) else EXACT_DOSES


def quick(model):
    """The model; the average with members that take no time, and are checked by themselves."""
    if model is not DensityAverage:
        return model()
    return DensityAverage({"line": LinearGaussian(), "spread": HeteroscedasticGaussian()})


@parametrize_with_checks([quick(model) for model in PROPENSITIES], expected_failed_checks=expected)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


UNFITTED = {
    "density": lambda model, X, t: model.density(X, t),
    "log_density": lambda model, X, t: model.log_density(X, t),
    "log_probability": lambda model, X, t: model.log_probability(X, t, t + 1.0),
    "cdf": lambda model, X, t: model.cdf(X, t),
    "sample": lambda model, X, t: model.sample(X, 0),  # noqa: ARG005
    "laws": lambda model, X, t: model.laws(X),  # noqa: ARG005
    "score": lambda model, X, t: model.score(X, t),
}


NOTHING_TO_ASK = {
    (MultivariateGaussian, "laws"),  # of scalar treatments alone
    (MultivariateGaussian, "log_probability"),
    (MultivariateGaussian, "cdf"),  # refused as such
}


@pytest.mark.parametrize("asked", UNFITTED)
@pytest.mark.parametrize("model", PROPENSITIES)
def test_a_model_that_is_not_fitted_says_so(model, asked, log):
    if (model, asked) not in NOTHING_TO_ASK:
        with pytest.raises(NotFittedError, match=model.__name__):
            UNFITTED[asked](model(), *log)


@pytest.mark.parametrize("model", PROPENSITIES)
def test_score_is_the_mean_log_density(model, log):
    fitted = model().fit(*log)
    assert fitted.score(*log) == pytest.approx(np.mean(np.log(fitted.density(*log))), rel=1e-12)


def test_models_can_be_tuned_by_their_score(log):
    search = GridSearchCV(GaussianMixture(), {"components": [1, 2]}, cv=2).fit(*log)
    assert search.best_params_["components"] in {1, 2}
