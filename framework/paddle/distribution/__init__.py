"""Distributions: draws, densities, entropies and divergences; `Transform`s that carry one to another."""

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.distribution.bernoulli import Bernoulli as Bernoulli
from framework.paddle.distribution.beta import Beta as Beta
from framework.paddle.distribution.categorical import Categorical as Categorical
from framework.paddle.distribution.cauchy import Cauchy as Cauchy
from framework.paddle.distribution.dirichlet import Dirichlet as Dirichlet
from framework.paddle.distribution.distribution import Distribution as Distribution
from framework.paddle.distribution.exponential_family import ExponentialFamily as ExponentialFamily
from framework.paddle.distribution.geometric import Geometric as Geometric
from framework.paddle.distribution.gumbel import Gumbel as Gumbel
from framework.paddle.distribution.independent import Independent as Independent
from framework.paddle.distribution.kl import kl_divergence as kl_divergence
from framework.paddle.distribution.kl import register_kl as register_kl
from framework.paddle.distribution.laplace import Laplace as Laplace
from framework.paddle.distribution.lognormal import LogNormal as LogNormal
from framework.paddle.distribution.multinomial import Multinomial as Multinomial
from framework.paddle.distribution.normal import Normal as Normal
from framework.paddle.distribution.transform import AbsTransform as AbsTransform
from framework.paddle.distribution.transform import AffineTransform as AffineTransform
from framework.paddle.distribution.transform import ChainTransform as ChainTransform
from framework.paddle.distribution.transform import ExpTransform as ExpTransform
from framework.paddle.distribution.transform import IndependentTransform as IndependentTransform
from framework.paddle.distribution.transform import PowerTransform as PowerTransform
from framework.paddle.distribution.transform import ReshapeTransform as ReshapeTransform
from framework.paddle.distribution.transform import SigmoidTransform as SigmoidTransform
from framework.paddle.distribution.transform import SoftmaxTransform as SoftmaxTransform
from framework.paddle.distribution.transform import StackTransform as StackTransform
from framework.paddle.distribution.transform import StickBreakingTransform as StickBreakingTransform
from framework.paddle.distribution.transform import TanhTransform as TanhTransform
from framework.paddle.distribution.transform import Transform as Transform
from framework.paddle.distribution.transformed_distribution import (
    TransformedDistribution as TransformedDistribution,
)
from framework.paddle.distribution.uniform import Uniform as Uniform

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
