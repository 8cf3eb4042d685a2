//! What a ranking comes to, in sentences.

use super::ranking::ShownRanking;
use super::text::{and, plural, show_short};
use crate::score::ASKED_FOR;
use crate::select::{Ranked, Ranking, Size};
use crate::warning::Warning;

/// More names than this are not listed in a sentence.
const LISTED: usize = 6;

/// A model that has at least this probability is said to be the one.
const CLEAR: f64 = 0.95;

/// How far exact evidences that are the same may differ, relative to them.
const ROUNDING: f64 = 1e-10;

/// Odds below which two models are level.
const LEVEL_ODDS: f64 = 3.0;

/// What is best at one size of the prior.
struct Answer {
    size: f64,
    /// The best model.
    best: String,
    /// Others whose odds against it are below three.
    level: Vec<String>,
    is_settled: bool,
    /// Whether the errors are so large that the point estimates say nothing.
    is_noise: bool,
    /// Whether no more than a bound is known of the best.
    is_bound: bool,
}

/// Nats of error in the log odds of the contenders beyond which their order is left to chance.
const NOISE: f64 = 1.0;

impl Answer {
    /// Whether both say the same. The order of models that are level says nothing.
    fn is_like(&self, other: &Answer) -> bool {
        let names = |answer: &Answer| {
            let mut all: Vec<String> = std::iter::once(&answer.best).chain(&answer.level).cloned().collect();
            all.sort();
            all
        };
        let are_level = |answer: &Answer| !answer.is_bound && !answer.is_noise && !answer.level.is_empty();
        if are_level(self) && are_level(other) { names(self) == names(other) } else { self.text() == other.text() }
    }

    fn text(&self) -> String {
        match (self.is_settled, &self.level[..]) {
            _ if self.is_bound => format!("{} by a lower bound alone", self.best),
            _ if self.is_noise => UNTOLD.to_owned(),
            (false, []) => format!("probably {}", self.best),
            (true, []) => self.best.clone(),
            (_, others) => {
                let all: Vec<String> = std::iter::once(&self.best).chain(others).cloned().collect();
                format!("{} level", and(&all))
            }
        }
    }
}

/// The answer where there is none.
const UNTOLD: &str = "not to be told";

impl ShownRanking<'_> {
    /// One or two sentences.
    pub fn verdict(&self) -> String {
        let Ranking { ranked, verdict } = &self.ranking;
        let best = &ranked[0];
        let name = self.full_name(best);
        let equal = self.equal_to_best();
        let is_apart = |place: &&usize| !equal.contains(place);
        let others: Vec<String> =
            verdict.level[1..].iter().filter(is_apart).map(|&place| self.full_name(&ranked[place])).collect();
        if ranked.len() == 1 {
            return format!("{name} is the only model that was scored.");
        }
        if self.has_bounds_alone() {
            let runner_up = &ranked[1];
            return format!(
                "{name} has the highest lower bound, {} nats above that of {}. Bounds are no evidence: they may be further \
                 below it for one model than for another.",
                show_nats(-runner_up.apart),
                self.full_name(runner_up)
            );
        }
        if best.is_bound {
            let remedy = if self.scored(best).is_out_of_reach { LEAVE_OUT } else { "give more time (--time-limit)" };
            return format!(
                "{name} comes first by a lower bound, and no more is known of it: nothing is settled; {remedy}."
            );
        }
        let highest = if self.has_weights {
            format!("{name} is the most probable model, with the weights that were given")
        } else if !equal.is_empty() {
            let names: Vec<String> = std::iter::once(&0).chain(&equal).map(|&at| self.full_name(&ranked[at])).collect();
            let same = format!("{} have the same evidence", listed(&names));
            if names.len() == ranked.len() {
                return format!("{same}: these data do not tell them apart.");
            }
            format!("{same}, the highest")
        } else if verdict.is_settled || self.scored(best).score.is_exact() {
            format!("{name} has the highest evidence")
        } else {
            format!("{name} has the highest estimate")
        };
        if !verdict.is_settled {
            return format!("{highest}, but {}", self.why_unsettled());
        }
        if !others.is_empty() {
            return format!(
                "{highest}, but {} nearly level: these data do not tell them apart ({} below 3).",
                if others.len() == 1 { format!("{} is", others[0]) } else { format!("{} are", and(&others)) },
                if self.has_weights { "odds" } else { "Bayes factors" }
            );
        }
        let by_evidence = |one: &&Ranked, other: &&Ranked| one.apart.total_cmp(&other.apart);
        let rest = ranked.iter().enumerate().skip(1).filter(|(place, _)| self.has_weights || !equal.contains(place));
        let Some(runner_up) = rest.map(|(_, other)| other).filter(|other| !other.is_bound).max_by(by_evidence) else {
            return format!("{highest}: of all others the lower bound is too far below.");
        };
        let lead = -runner_up.apart;
        let (nats, other) = (show_nats(lead.abs()), self.full_name(runner_up));
        // Where runs disagree the distance is a rough one.
        let is_rough = self.scored(best).is_rough() || self.scored(runner_up).is_rough();
        let nats = if is_rough { format!("about {nats}") } else { nats };
        // Of equals, all together.
        let first = std::iter::once(&0).chain(&equal).filter_map(|&place| ranked[place].posterior);
        let (strength, factor) = if first.map(|(p, _)| p).sum::<f64>() >= CLEAR {
            ("", String::new())
        } else {
            (", though not by far", format!(", a Bayes factor of {:.1}", lead.abs().exp()))
        };
        match (lead < 0.0, self.has_weights) {
            (_, true) if self.is_equal(best, runner_up) => {
                format!("{highest}; its evidence is the same as that of {other}.")
            }
            (true, _) => format!("{highest}{strength}; by evidence alone {other} is {nats} nats above it{factor}."),
            (false, true) => format!("{highest}{strength}; its evidence is {nats} nats above that of {other}{factor}."),
            (false, false) => format!("{highest}{strength}: {nats} nats above {other}{factor}."),
        }
    }

    /// Whether two exact evidences are the same but for rounding.
    fn is_equal(&self, one: &Ranked, other: &Ranked) -> bool {
        let rounding = ROUNDING * (1.0 + self.scored(one).score.log_marginal.abs());
        let is_exact = |ranked: &Ranked| !ranked.is_bound && self.scored(ranked).error() <= rounding;
        is_exact(one) && is_exact(other) && (one.apart - other.apart).abs() <= rounding
    }

    /// Places of other models that have the evidence of the best.
    fn equal_to_best(&self) -> Vec<usize> {
        let ranked = &self.ranking.ranked;
        (1..ranked.len()).filter(|&place| self.is_equal(&ranked[0], &ranked[place])).collect()
    }

    /// What keeps the best model from being told from others, and what helps.
    fn why_unsettled(&self) -> String {
        let Ranking { ranked, verdict } = &self.ranking;
        let names = |places: &mut dyn Iterator<Item = usize>| -> Vec<String> {
            places.map(|place| self.full_name(&ranked[place])).collect()
        };
        let is_unknown = |place: &usize| self.scored(&ranked[*place]).score.is_error_unknown();
        // An error that nobody knows is told by itself.
        let is_known = |place: &usize| ranked[*place].log_bayes_factor.is_some_and(|(_, error)| error.is_finite());
        let level: Vec<&Ranked> = verdict.level.iter().map(|&place| &ranked[place]).collect();
        let why = obstacles(
            verdict.n_missing,
            &names(&mut verdict.unscored.iter().copied()),
            &names(&mut (0..ranked.len()).filter(is_unknown)),
            &names(&mut verdict.unsure.iter().copied().filter(is_known)),
        );
        // Where runs end in different places, more of them are of little use.
        let disagrees = |warning: &Warning| {
            matches!(
                warning,
                Warning::RunsDisagree { .. } | Warning::DominantRun { .. } | Warning::LowEffectiveSampleSize { .. }
            )
        };
        let is_annealed = level.iter().any(|ranked| self.scored(ranked).score.method == "anneal");
        let needs_moves = level.iter().any(|ranked| self.scored(ranked).score.warnings.iter().any(disagrees));
        let is_beyond = |place: &usize| self.scored(&ranked[*place]).is_out_of_reach;
        let waits_for_nobody = verdict.n_missing == 0 && verdict.unsure.is_empty() && !verdict.is_error_unknown;
        let remedy = if waits_for_nobody && verdict.unscored.iter().all(is_beyond) {
            LEAVE_OUT.to_owned()
        } else {
            format!("give more time (--time-limit) or {}", more_work(is_annealed, needs_moves))
        };
        format!("{why}; {remedy}.")
    }

    /// Which models were scored by which engine, and why, where nobody asked for one.
    pub(super) fn methods(&self) -> Vec<String> {
        self.reasons(false)
    }

    /// Which models were left with a lower bound, and why.
    pub(super) fn left_with_bound(&self) -> Vec<String> {
        self.reasons(true)
    }

    /// Models by reason.
    fn reasons(&self, are_bounds: bool) -> Vec<String> {
        let mut in_order: Vec<&Ranked> = self.ranking.ranked.iter().collect();
        in_order.sort_by_key(|ranked| ranked.candidate);
        let mut by_reason: Vec<(&str, Vec<&str>, Vec<&Ranked>)> = Vec::new();
        for ranked in in_order {
            let score = &self.scored(ranked).score;
            if score.why == ASKED_FOR || ranked.is_bound != are_bounds {
                continue;
            }
            let words = beginning(&score.why);
            match by_reason.iter_mut().find(|(method, other, _)| *method == score.method && *other == words) {
                Some((.., models)) => models.push(ranked),
                None => by_reason.push((&score.method, words, vec![ranked])),
            }
        }
        by_reason.into_iter().map(|(method, _, models)| self.method_line(method, &models)).collect()
    }

    fn method_line(&self, method: &str, models: &[&Ranked]) -> String {
        let models_are_bounds = models[0].is_bound;
        let why = |ranked: &Ranked| &*self.scored(ranked).score.why;
        let first = why(models[0]);
        let names: Vec<String> = models.iter().map(|ranked| self.full_name(ranked)).collect();
        let reason = reason_of(&names, first, models.iter().all(|&ranked| why(ranked) == first));
        // `class = 2, 3 and 4` where that is all that they differ in.
        let sizes: Vec<&(String, u32)> = models.iter().flat_map(|ranked| &self.candidate(ranked).sizes).collect();
        let is_one_node = !self.has_several_entries() && !self.shows_a() && sizes.len() == models.len();
        let models = match &sizes[..] {
            _ if names.len() > LISTED => listed(&names),
            [(node, _), _, ..] if is_one_node => {
                let sizes: Vec<String> = sizes.iter().map(|(_, size)| size.to_string()).collect();
                format!("{node} = {}", and(&sizes))
            }
            _ => and(&names),
        };
        let what = if models_are_bounds { "Left with a lower bound".to_owned() } else { format!("By {method}") };
        format!("{what}: {models}; {reason}.")
    }

    /// How the best model moves with `a`, in one sentence.
    pub(super) fn movement(&self) -> Option<String> {
        // With one model there is nothing to move.
        if self.n_candidates == 1 && !self.has_several_a || self.sensitivity.len() < 2 {
            return None;
        }
        let answers: Vec<Answer> =
            self.sensitivity.iter().map(|(size, _, ranking)| self.answer(*size, ranking)).collect();
        let at = |sizes: &[f64]| {
            let sizes = match sizes {
                [first, .., last] => format!("{} to {}", show_short(*first), show_short(*last)),
                sizes => sizes.first().map_or(String::new(), |&one| show_short(one)),
            };
            if self.is_relative() { format!("{sizes} times a") } else { format!("a = {sizes}") }
        };
        let sizes: Vec<f64> = answers.iter().map(|answer| answer.size).collect();
        let told: Vec<&Answer> = answers.iter().filter(|answer| !answer.is_noise || answer.is_bound).collect();
        if told.len() < answers.len() && told.windows(2).all(|pair| pair[0].is_like(pair[1])) {
            let noisy: Vec<f64> = answers.iter().filter(|answer| answer.text() == UNTOLD).map(|one| one.size).collect();
            let noisy = and(&noisy.iter().map(|&size| at(&[size])).collect::<Vec<_>>());
            let untold = format!("the errors are too large to tell at {noisy}");
            return Some(match told.first() {
                Some(answer) => {
                    let where_told = and(&told.iter().map(|answer| at(&[answer.size])).collect::<Vec<_>>());
                    format!("Whether the answer moves with a is open: {} at {where_told}; {untold}.", answer.text())
                }
                None => format!("Whether the answer moves with a is open: {untold}."),
            });
        }
        let is_same = answers.iter().all(|answer| answer.best == answers[0].best && answer.level.is_empty());
        let n_unsure = answers.iter().filter(|answer| !answer.is_settled).count();
        if is_same && n_unsure < answers.len() {
            let unsure: Vec<String> =
                answers.iter().filter(|answer| !answer.is_settled).map(|answer| show_short(answer.size)).collect();
            let caveat = if unsure.is_empty() {
                String::new()
            } else {
                let times = if self.is_relative() {
                    format!("{} times a", and(&unsure))
                } else {
                    format!("a = {}", and(&unsure))
                };
                format!(", though at {times} the errors are too large to be sure")
            };
            return Some(format!("The answer is the same from {}: {}{caveat}.", at(&sizes), answers[0].best));
        }
        // Neighbours with the same answer are taken together.
        let runs: Vec<(String, Vec<f64>)> = answers
            .chunk_by(Answer::is_like)
            .map(|run| (run[0].text(), run.iter().map(|answer| answer.size).collect()))
            .collect();
        Some(match &runs[..] {
            [(answer, sizes)] => format!("The answer is the same from {}: {answer}.", at(sizes)),
            several => {
                let parts: Vec<String> =
                    several.iter().map(|(answer, sizes)| format!("{answer} at {}", at(sizes))).collect();
                format!("The answer moves with a: {}.", parts.join("; "))
            }
        })
    }

    fn answer(&self, size: Size, ranking: &Ranking) -> Answer {
        let Ranking { ranked, verdict } = ranking;
        let best = &ranked[0];
        let name = |ranked: &Ranked| self.name(self.candidate(ranked));
        // The point estimates decide here: other sizes get quick runs, whose errors would hide that the data do not tell.
        let is_level = |other: &&Ranked| {
            let odds = other.apart + (other.prior / best.prior).ln();
            other.posterior.is_some() && odds >= -LEVEL_ODDS.ln()
        };
        let level = verdict.level[1..].iter().map(|&place| &ranked[place]).filter(is_level).map(name).collect();
        let error = |place: &usize| ranked[*place].log_bayes_factor.map_or(f64::INFINITY, |(_, error)| error);
        let is_noise = !verdict.is_settled && verdict.unsure.iter().map(error).fold(0.0, f64::max) > NOISE;
        Answer {
            size: size.number(),
            best: name(best),
            is_settled: verdict.is_settled,
            is_noise,
            is_bound: best.is_bound,
            level,
        }
    }
}

/// What can be done about models that no engine can hold.
const LEAVE_OUT: &str = "more time does not change that: give more memory (--max-memory) or leave such models out";

/// What to give more of beside time.
fn more_work(is_annealed: bool, needs_moves: bool) -> &'static str {
    match (is_annealed, needs_moves) {
        (true, _) => "steps (--sweeps) and chains (--chains)",
        (false, true) => "moves (--rejuvenate)",
        (false, false) => "runs (--runs)",
    }
}

/// Names in a sentence, or their number.
fn listed(names: &[String]) -> String {
    if names.len() > LISTED { format!("{} models", names.len()) } else { and(names) }
}

/// The reason of the first of several models, for all of them. Reasons differ in their figures alone, so the first says enough;
/// where it is not that of all, it says whose it is.
fn reason_of(names: &[String], first: &str, is_that_of_all: bool) -> String {
    match (names.len(), first.strip_prefix("its "), is_that_of_all) {
        (1, ..) | (_, None, true) => first.to_owned(),
        (_, Some(rest), true) => format!("of each the {rest}"),
        (_, Some(rest), false) => format!("of {} the {rest}", names[0]),
        (_, None, false) => format!("{first} (for {})", names[0]),
    }
}

/// All that keeps the best model from being told from others: models without an answer, with a bound alone, without an error,
/// and with errors that are too large.
fn obstacles(n_missing: usize, unscored: &[String], unknown: &[String], unsure: &[String]) -> String {
    let mut all = Vec::new();
    if n_missing > 0 {
        all.push(format!("{} had no answer in time", plural(n_missing as u64, "model")));
    }
    if !unscored.is_empty() {
        let whose = if unscored.len() == 1 { "its evidence" } else { "the evidence of any of them" };
        all.push(format!("of {} no more than a lower bound is known, and {whose} may be the best", listed(unscored)));
    }
    if !unknown.is_empty() {
        let errors = if unknown.len() == 1 { "the error" } else { "the errors" };
        all.push(format!("nothing is known of {errors} of {}", listed(unknown)));
    }
    if !unsure.is_empty() {
        all.push(format!("the errors are too large to tell it from {}", listed(unsure)));
    }
    all.join("; ")
}

/// The first words of a reason, without figures: reasons that begin alike differ in figures alone.
fn beginning(why: &str) -> Vec<&str> {
    why.split(' ').filter(|word| !word.contains(|c: char| c.is_ascii_digit())).take(4).collect()
}

/// Two decimals, and none that say nothing.
fn show_nats(nats: f64) -> String {
    show_short((nats * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::{Answer, more_work, obstacles, reason_of};

    #[test]
    fn a_reason_speaks_of_as_many_models_as_it_is_given_for() {
        let names = ["r = 1".to_owned(), "r = 2".to_owned()];
        let bound = "its bound is 80 nats below the best evidence";
        assert_eq!(reason_of(&names[..1], bound, true), bound);
        assert_eq!(reason_of(&names, bound, false), "of r = 1 the bound is 80 nats below the best evidence");
        assert_eq!(reason_of(&names, bound, true), "of each the bound is 80 nats below the best evidence");
        assert_eq!(reason_of(&names, "about 7 states", false), "about 7 states (for r = 1)");
        assert_eq!(reason_of(&names, "a closed form", true), "a closed form");
    }

    #[test]
    fn models_that_are_level_are_the_same_answer_in_any_order() {
        let answer = |best: &str, level: &[&str]| Answer {
            size: 1.0,
            best: best.into(),
            level: level.iter().map(|&name| name.to_owned()).collect(),
            is_settled: true,
            is_noise: false,
            is_bound: false,
        };
        assert!(answer("A", &["B"]).is_like(&answer("B", &["A"])));
        assert!(answer("A", &["B", "C"]).is_like(&answer("C", &["A", "B"])));
        assert!(!answer("A", &["B"]).is_like(&answer("A", &["B", "C"])));
        assert!(!answer("A", &["B"]).is_like(&answer("A", &[])));
        assert!(!answer("A", &[]).is_like(&answer("B", &[])));
        // What is only known by a bound is no level answer.
        let bound = Answer { is_bound: true, ..answer("B", &["A"]) };
        assert!(!answer("A", &["B"]).is_like(&bound) && bound.is_like(&bound_of("B")));
    }

    fn bound_of(best: &str) -> Answer {
        Answer { size: 2.0, best: best.into(), level: Vec::new(), is_settled: false, is_noise: false, is_bound: true }
    }

    #[test]
    fn each_engine_has_a_remedy_of_its_own() {
        assert_eq!(more_work(false, false), "runs (--runs)");
        assert_eq!(more_work(false, true), "moves (--rejuvenate)");
        for disagrees in [false, true] {
            assert!(more_work(true, disagrees).contains("--sweeps"));
        }
    }

    #[test]
    fn every_obstacle_is_named_and_words_agree_with_numbers() {
        let names = |n: usize| -> Vec<String> { (1..=n).map(|r| format!("r = {r}")).collect() };
        assert_eq!(obstacles(1, &[], &[], &[]), "1 model had no answer in time");
        assert_eq!(
            obstacles(0, &names(1), &[], &[]),
            "of r = 1 no more than a lower bound is known, and its evidence may be the best"
        );
        assert_eq!(
            obstacles(2, &names(17), &names(2), &names(1)),
            "2 models had no answer in time; of 17 models no more than a lower bound is known, and the evidence of any of them may \
             be the best; nothing is known of the errors of r = 1 and r = 2; the errors are too large to tell it from r = 1"
        );
    }
}
