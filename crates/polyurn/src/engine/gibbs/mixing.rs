//! Whether chains have forgotten where they began, and how much their draws are worth: R-hat and the effective size.
//!
//! Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), "Rank-normalization, folding, and localization: an improved R-hat",
//! Bayesian Analysis 16. Chains are split in two, so that one chain alone can disagree with itself; draws are replaced by
//! normal scores of their ranks, so that heavy tails do no harm; and the distance from the median is looked at too, for
//! chains that agree in place and not in scale.

use crate::math::special;

/// Draws of a half chain below which nothing is said.
const FEWEST: usize = 4;

/// R-hat of a number that was followed in several chains of equally many draws: 1 where all halves of all chains say the same.
/// `None` for too few draws, or for a number that never changes.
pub fn r_hat(chains: &[Vec<f64>]) -> Option<f64> {
    let halves = halves(chains)?;
    let plain = plain_r_hat(&normal_scores(&halves))?;
    let mut all: Vec<f64> = halves.concat();
    all.sort_by(f64::total_cmp);
    let median = (all[all.len() / 2] + all[(all.len() - 1) / 2]) / 2.0;
    let folded: Vec<Vec<f64>> =
        halves.iter().map(|half| half.iter().map(|value| (value - median).abs()).collect()).collect();
    // Two values at equal distances from the median have nothing to fold.
    Some(plain_r_hat(&normal_scores(&folded)).map_or(plain, |folded| plain.max(folded)))
}

/// How many independent draws would tell the middle of the distribution as well ("bulk" effective sample size); `None` as for
/// [`r_hat`].
///
/// Autocorrelations are added up in pairs of neighbouring lags, which are positive and fall for a reversible chain, as long as
/// they are (Geyer 1992).
pub fn effective_size(chains: &[Vec<f64>]) -> Option<f64> {
    let scores = normal_scores(&halves(chains)?);
    let Spread { within, total } = spread(&scores)?;
    let (n_chains, n) = (scores.len() as f64, scores[0].len());
    let means: Vec<f64> = scores.iter().map(|chain| mean(chain)).collect();
    let autocovariance = |lag: usize| -> f64 {
        let of_chain = |(chain, mean): (&Vec<f64>, &f64)| {
            let pairs = chain.iter().zip(&chain[lag..]);
            pairs.map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>() / n as f64
        };
        scores.iter().zip(&means).map(of_chain).sum::<f64>() / n_chains
    };
    let factor = n as f64 / (n as f64 - 1.0);
    let correlation = |lag: usize| if lag == 0 { 1.0 } else { 1.0 - (within - factor * autocovariance(lag)) / total };
    let mut time = -1.0;
    let mut smallest = f64::INFINITY;
    for lag in (0..n - 1).step_by(2) {
        let pair = correlation(lag) + correlation(lag + 1);
        if pair < 0.0 {
            break;
        }
        smallest = smallest.min(pair);
        time += 2.0 * smallest;
    }
    let n_draws = n_chains * n as f64;
    // Draws that repel each other are worth more than independent ones, but not without end.
    Some(n_draws / time.max(1.0 / n_draws.log10()))
}

/// Both halves of every chain; the draw in the middle of an odd number is left out.
fn halves(chains: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let n = chains.iter().map(Vec::len).min()? / 2;
    let is_usable = n >= FEWEST && chains.iter().flatten().all(|value| value.is_finite());
    let of_chain = |chain: &Vec<f64>| [chain[..n].to_vec(), chain[chain.len() - n..].to_vec()];
    is_usable.then(|| chains.iter().flat_map(of_chain).collect())
}

/// Normal quantiles of the ranks among all draws; equals share their mean rank.
fn normal_scores(chains: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n_draws = chains[0].len();
    let all = chains.concat();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&x, &y| all[x].total_cmp(&all[y]));
    let mut scores = vec![0.0; all.len()];
    let mut first = 0;
    for equals in order.chunk_by(|&x, &y| all[x] == all[y]) {
        let rank = first as f64 + (equals.len() as f64 + 1.0) / 2.0;
        let score = normal_quantile((rank - 0.375) / (all.len() as f64 + 0.25));
        equals.iter().for_each(|&ix| scores[ix] = score);
        first += equals.len();
    }
    scores.chunks(n_draws).map(<[f64]>::to_vec).collect()
}

fn plain_r_hat(chains: &[Vec<f64>]) -> Option<f64> {
    let Spread { within, total } = spread(chains)?;
    Some((total / within).sqrt())
}

/// Variance within chains, and an estimate of that of all draws from it and from the chains' means.
struct Spread {
    within: f64,
    total: f64,
}

/// `None` where nothing varies.
fn spread(chains: &[Vec<f64>]) -> Option<Spread> {
    let n = chains[0].len() as f64;
    let within = chains.iter().map(|chain| variance(chain)).sum::<f64>() / chains.len() as f64;
    let between = variance(&chains.iter().map(|chain| mean(chain)).collect::<Vec<_>>());
    (within > 0.0).then_some(Spread { within, total: within * (n - 1.0) / n + between })
}

fn mean(list: &[f64]) -> f64 {
    list.iter().sum::<f64>() / list.len() as f64
}

fn variance(list: &[f64]) -> f64 {
    let mean = mean(list);
    list.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (list.len() as f64 - 1.0)
}

/// The number that a standard normal variable falls short of with probability `p`, for p in (0, 1): Newton's method on ln of
/// the tail, which falls and is concave, so that from the second step on the root is approached from one side.
fn normal_quantile(p: f64) -> f64 {
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    if p == 0.5 {
        return 0.0;
    }
    let tail = |z: f64| 0.5 * libm::erfc(z / std::f64::consts::SQRT_2);
    let mut z = (-2.0 * special::ln(2.0 * p)).max(0.0).sqrt();
    for _ in 0..60 {
        let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let here = tail(z);
        let step = here / density * (here / p).ln();
        z += step;
        if step.abs() <= 1e-14 * z.abs().max(1.0) {
            break;
        }
    }
    -z
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::draw;
    use crate::{Purpose, Seed};

    /// Chains of x' = share x + noise, each around its own level.
    fn chains(n_chains: usize, n: usize, share: f64, level: impl Fn(usize) -> f64, seed: u64) -> Vec<Vec<f64>> {
        let chain = |ix: usize| {
            let mut rng = Seed(seed).stream(Purpose::Gibbs, ix as u64, 0, 0);
            let mut x = draw::normal(&mut rng) / (1.0 - share * share).sqrt();
            let mut next = || {
                x = share * x + draw::normal(&mut rng);
                x + level(ix)
            };
            (0..n).map(|_| next()).collect()
        };
        (0..n_chains).map(chain).collect()
    }

    #[test]
    fn quantiles_are_those_of_tables() {
        // From tables of the normal distribution.
        for (p, want) in [(0.5, 0.0), (0.975, 1.959_963_984_540_054), (1e-6, -4.753_424_308_822_899)] {
            assert!((normal_quantile(p) - want).abs() < 1e-12, "{p}: {}", normal_quantile(p));
        }
        assert!((normal_quantile(0.499_999_9) + 2.506_628e-7).abs() < 1e-12);
        assert!((normal_quantile(1e-12) + 7.034_483_8).abs() < 1e-6);
    }

    #[test]
    fn independent_draws_agree_and_are_worth_their_number() {
        let chains = chains(4, 1000, 0.0, |_| 0.0, 1);
        // R-hat - 1 of eight halves of 500 draws is about 1/500 times a chi-square variable with 7 degrees over 14.
        assert!((r_hat(&chains).unwrap() - 1.0).abs() < 0.004);
        // The sum of estimated correlations has a spread of about sqrt(2 * lags / draws): a few percent.
        assert!((effective_size(&chains).unwrap() / 4000.0 - 1.0).abs() < 0.15);
    }

    #[test]
    fn an_autoregressive_chain_is_worth_what_theory_says() {
        // n (1 - share) / (1 + share) for an autoregressive process; means of ranks have nearly the same.
        let chains = chains(4, 5000, 0.8, |_| 0.0, 2);
        let want = 20_000.0 / 9.0;
        assert!((effective_size(&chains).unwrap() / want - 1.0).abs() < 0.15);
    }

    #[test]
    fn chains_in_different_places_or_of_different_scale_are_seen() {
        assert!(r_hat(&chains(4, 500, 0.0, |ix| ix as f64, 3)).unwrap() > 1.2);
        let mut wide = chains(4, 500, 0.0, |_| 0.0, 4);
        wide[0].iter_mut().for_each(|x| *x *= 5.0);
        assert!(r_hat(&wide).unwrap() > 1.1);
        // One chain that drifts disagrees with itself.
        let drift: Vec<f64> = (0..200).map(f64::from).collect();
        assert!(r_hat(std::slice::from_ref(&drift)).unwrap() > 1.5);
        assert!(effective_size(&[drift]).unwrap() < 10.0);
    }

    #[test]
    fn what_never_changes_or_is_too_short_has_neither() {
        assert_eq!(r_hat(&[vec![2.0; 50], vec![2.0; 50]]), None);
        assert_eq!(effective_size(&[vec![2.0; 50]]), None);
        assert_eq!(r_hat(&[vec![1.0, 2.0, 3.0]]), None);
        assert_eq!(r_hat(&[]), None);
    }
}
