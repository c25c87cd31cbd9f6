"""`kl_divergence` and the table of what it knows, which `register_kl` extends."""

from __future__ import annotations

from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distribution.bernoulli import Bernoulli, kl_bernoulli
from framework.paddle.distribution.beta import Beta, kl_beta
from framework.paddle.distribution.categorical import Categorical, kl_categorical
from framework.paddle.distribution.cauchy import Cauchy, kl_cauchy
from framework.paddle.distribution.dirichlet import Dirichlet, kl_dirichlet
from framework.paddle.distribution.distribution import KL_RULES, no_kl_rule
from framework.paddle.distribution.distribution import kl_divergence as kl_divergence
from framework.paddle.distribution.distribution import register_kl as register_kl
from framework.paddle.distribution.exponential_family import ExponentialFamily, normalizer_and_slopes
from framework.paddle.distribution.geometric import Geometric, kl_geometric
from framework.paddle.distribution.laplace import Laplace, kl_laplace
from framework.paddle.distribution.lognormal import LogNormal
from framework.paddle.distribution.normal import Normal, kl_normal
from framework.paddle.distribution.uniform import Uniform, kl_uniform


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """Within a family: the Bregman divergence of its log-normalizer."""
    if type(p) is not type(q):
        raise no_kl_rule(p, q)
    normalizer, slopes, natural = normalizer_and_slopes(p)
    others = q._natural_parameters
    total = q._log_normalizer(*others) - normalizer
    for mine, other, slope in zip(natural, others, slopes, strict=True):
        part = (other - mine) * slope
        total = total - part.reshape([*total.shape, -1]).sum(-1)
    return total


KL_RULES |= {
    (Bernoulli, Bernoulli): lambda p, q: kl_bernoulli(p.probs, q.probs),
    (Beta, Beta): lambda p, q: kl_beta(p.alpha, p.beta, q.alpha, q.beta),
    (Categorical, Categorical): lambda p, q: kl_categorical(p.logits, q.logits),
    (Cauchy, Cauchy): lambda p, q: kl_cauchy(p.loc, p.scale, q.loc, q.scale),
    (Dirichlet, Dirichlet): lambda p, q: kl_dirichlet(p.concentration, q.concentration),
    (Geometric, Geometric): lambda p, q: kl_geometric(p.probs, q.probs),
    (Laplace, Laplace): lambda p, q: kl_laplace(p.loc, p.scale, q.loc, q.scale),
    (LogNormal, LogNormal): lambda p, q: kl_normal(p.loc, p.scale, q.loc, q.scale),
    (Normal, Normal): lambda p, q: kl_normal(p.loc, p.scale, q.loc, q.scale),
    (Uniform, Uniform): lambda p, q: kl_uniform(p.low, p.high, q.low, q.high),
}
