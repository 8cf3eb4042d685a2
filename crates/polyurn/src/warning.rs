//! Doubtful but usable: warnings carried as data, each with advice, for a shell to render.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Something a user should know about a result that is still usable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[non_exhaustive]
pub enum Warning {
    /// Columns of the data that the model does not name were summed out.
    ColumnsLeftOut {
        /// The columns' names.
        columns: Vec<String>,
    },
    /// Rows with the same values were added up.
    DuplicateRows {
        /// How many rows were merged into an earlier one.
        n_rows: u64,
    },
    /// Counts had more decimal places than are kept.
    CountsRounded {
        /// In how many rows.
        n_rows: u64,
        /// Places that are kept.
        decimals: u8,
    },
    /// Pseudo-counts of the tables do not come from one base measure.
    InconsistentPrior,
    /// A contraction was not decomposable, so edges were added.
    EdgesAdded {
        /// The added edges, by node names.
        edges: Vec<(String, String)>,
    },
    /// The data cannot occur under this model and prior.
    ImpossibleData,
    /// A declared size is larger than the number of labels that occur.
    UnusedValues {
        /// The node.
        node: String,
        /// Declared size.
        size: u64,
        /// Number of labels in the data.
        n_labels: u64,
    },
    /// Posterior means of tables average over all labellings of these hidden nodes.
    LabelAveraged {
        /// The hidden nodes whose values can be exchanged.
        nodes: Vec<String>,
    },
    /// Tables and hidden values come from one run, whose particles are labelled after the best of them.
    LabelsOfOneRun {
        /// The run.
        run: u64,
        /// The hidden nodes whose values can be exchanged.
        nodes: Vec<String>,
    },
    /// At some point nearly all weight was on very few particles.
    LowEffectiveSampleSize {
        /// The smallest effective sample size.
        ess_min: u64,
        /// Particles of a run.
        particles: u64,
    },
    /// Runs scatter by more than a nat.
    RunsDisagree {
        /// Standard deviation of their ln estimates.
        spread: String,
        /// What to give more of.
        remedy: Remedy,
    },
    /// One run has most of the weight of all.
    DominantRun {
        /// Its share in percent.
        percent: u64,
        /// Number of runs.
        runs: u64,
        /// What to give more of.
        remedy: Remedy,
    },
    /// One run, and its particles have too few first ancestors to tell the error.
    NoErrorEstimate {
        /// Different first ancestors.
        ancestors: u64,
    },
    /// The time limit came before all runs were finished.
    TimeUp {
        /// Runs that were.
        finished: u64,
        /// Runs that were asked for.
        asked: u64,
    },
    /// A climb was stopped before all starts were finished.
    StartsCut {
        /// Starts that were.
        finished: u64,
        /// Starts that were asked for.
        asked: u64,
    },
    /// The time limit left hardly any moves.
    FewMoves {
        /// Gibbs updates after each token.
        moves: u64,
    },
    /// The time limit came before some values of `a` had an answer.
    ValuesLeftOut {
        /// Those values, as they are shown.
        values: Vec<String>,
        /// Values that were asked for.
        asked: u64,
    },
    /// The lower bound is above the upper one.
    BoundsCross {
        /// By so many nats.
        nats: String,
    },
    /// Runs both ways are far apart.
    WideBracket {
        /// Nats between the bounds.
        width: String,
        /// Steps of the path.
        sweeps: u64,
    },
    /// Chains that go ahead of annealing ended in modes that differ by more than the width of the bracket.
    ChainsApart {
        /// Rough nats by which the best would differ with another seed.
        apart: String,
        /// How many there were.
        chains: u64,
    },
    /// Too many relabellings to be summed over: labels that tokens have are taken to be far apart.
    LabelsAssumed {
        /// ln of their number.
        ln_relabellings: String,
    },
    /// So many labels can be mistaken for each other that the sum over relabellings is known between two bounds.
    LabelsOverlap {
        /// Nats between them.
        nats: String,
    },
    /// The estimate is smaller than a lower bound of what it estimates.
    BelowBound {
        /// The bound.
        bound: String,
    },
    /// Models that the time limit left without an answer.
    ModelsLeftOut {
        /// Those models, as they are shown.
        models: Vec<String>,
        /// Models that were asked for.
        asked: u64,
    },
    /// Values of a seen root were taken for those of the fit that have the same numbers: they have no names.
    KnownByNumber {
        /// The root.
        node: String,
        /// Values that the fit has.
        known: u64,
        /// Values that it does not have.
        new: u64,
    },
    /// A model was given under several names.
    SameModel {
        /// The names.
        models: Vec<String>,
    },
    /// The checkpoint has finished runs beyond those that were asked for.
    RunsKept {
        /// How many.
        runs: u64,
    },
    /// The objective was still moving when the sweeps were used up.
    NotConverged {
        /// Sweeps that were done.
        sweeps: u64,
    },
    /// Some record is impossible under the tables to start from, or under the prior.
    ImpossibleStart,
    /// A free size of the prior went as far as it may: the bound rises on and on.
    SizeWithoutMaximum,
    /// Different starts reached objectives that differ by more than a nat.
    StartsDisagree {
        /// Best less worst.
        spread: String,
        /// Starts that reached the best to a tenth of a nat.
        n_best: u64,
        /// All starts.
        starts: u64,
    },
    /// The time limit came before the end of a stream.
    StreamCut {
        /// Tokens that were read.
        tokens: u64,
        /// Tokens that were declared, times passes.
        asked: u64,
    },
    /// A stream was left before its end.
    StreamStopped {
        /// Tokens that were taken.
        tokens: u64,
    },
    /// A stream had another number of tokens than was declared.
    OtherTotal {
        /// Declared tokens.
        declared: u64,
        /// Tokens of one pass.
        tokens: u64,
    },
    /// Records of one value of a local node do not stand together in the stream.
    Scattered {
        /// The local node.
        node: String,
        /// How often a value came back in a later batch.
        times: u64,
        /// Number of values.
        values: u64,
    },
    /// Chains have not forgotten where they began, or their draws are worth too few independent ones.
    ChainsDisagree {
        /// The largest R-hat of the numbers that are followed.
        r_hat: String,
        /// The smallest effective number of draws.
        effective: u64,
    },
    /// Tables and hidden values come from one chain, whose states are named after the best of them.
    LabelsOfOneChain {
        /// The chain.
        chain: u64,
        /// The hidden nodes whose values can be exchanged.
        nodes: Vec<String>,
    },
    /// The time limit came before all sweeps were done.
    SweepsCut {
        /// The fewest sweeps of a chain.
        done: u64,
        /// Sweeps that were asked for.
        asked: u64,
        /// Whether a chain was still warming up.
        is_warm_up: bool,
    },
    /// No simulated urn hit the data.
    NoHits {
        /// Urns that were simulated.
        tries: u64,
    },
    /// Anything a reader thinks odd in a file.
    Odd {
        /// One line for people.
        message: String,
    },
}

/// Names of a list that are shown.
const LISTED: usize = 8;

/// What makes runs agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// More moves or particles that place one token after another.
    Moves,
    /// Longer paths of annealing, and more chains ahead of it.
    Steps,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Remedy::Moves => "--rejuvenate or --particles",
            Remedy::Steps => "--sweeps or --chains",
        })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::ColumnsLeftOut { columns } => {
                write!(f, "the model does not name {}; left out", quoted(columns))
            }
            Warning::DuplicateRows { n_rows } => {
                write!(f, "{n_rows} rows repeat an earlier row; their counts were added")
            }
            Warning::CountsRounded { n_rows, decimals } => {
                write!(f, "the counts of {n_rows} rows were rounded to {decimals} decimal places")
            }
            Warning::InconsistentPrior => f.write_str(
                "pseudo-counts set table by table do not come from one base measure, so the evidence depends on the \
                 direction of arrows; compare such models with care",
            ),
            Warning::EdgesAdded { edges } => {
                let list: Vec<String> = edges.iter().map(|(a, b)| format!("{a} - {b}")).collect();
                write!(
                    f,
                    "the contraction is not decomposable; added {} (the model can express more than the contraction)",
                    list.join(", ")
                )
            }
            Warning::ImpossibleData => f.write_str(
                "the data cannot occur under this model and prior: a value with zero pseudo-counts was seen",
            ),
            Warning::UnusedValues { node, size, n_labels } => {
                write!(f, "node `{node}` has size {size} but only {n_labels} of its values occur")
            }
            Warning::LabelAveraged { nodes } => write!(
                f,
                "the values of {} can be exchanged, so posterior means of their tables are averages over all labellings",
                quoted(nodes)
            ),
            Warning::LabelsOfOneRun { run, nodes } => write!(
                f,
                "values of {} can be exchanged, so tables and hidden values are those of run {run} alone, its particles \
                 labelled after the best of them",
                quoted(nodes)
            ),
            Warning::LowEffectiveSampleSize { ess_min, particles } => write!(
                f,
                "at some point about {ess_min} of {particles} particles held nearly all the weight; more --rejuvenate or \
                 --particles would make the estimate firmer"
            ),
            Warning::RunsDisagree { spread, remedy } => write!(
                f,
                "runs scatter by {spread} nats (standard deviation); the stated error may be too small, so give more {remedy}"
            ),
            Warning::DominantRun { percent, runs, remedy } => write!(
                f,
                "one of {runs} runs makes up {percent} % of the estimate, so the true value may well be higher; give more {remedy}"
            ),
            Warning::NoErrorEstimate { ancestors } => write!(
                f,
                "one run cannot tell its own error here ({ancestors} of the first particles have descendants); give --runs 4 \
                 or more"
            ),
            Warning::TimeUp { finished, asked } => {
                write!(
                    f,
                    "only {finished} of {asked} runs were finished before the stop; the answer is from what was done until then"
                )
            }
            Warning::StartsCut { finished, asked } => write!(
                f,
                "stopped when {finished} of {asked} starts had finished; the answer is the best of what they and the others had \
                 reached"
            ),
            Warning::FewMoves { moves } => write!(
                f,
                "the time limit left {} moves a token, and the estimate may be too low by more than its error; give more \
                 time or fewer particles",
                if *moves == 0 { "no".to_owned() } else { moves.to_string() }
            ),
            Warning::ValuesLeftOut { values, asked } => write!(
                f,
                "{} of {asked} values of a had no answer in time; left out: {}",
                values.len(),
                some(values)
            ),
            Warning::BoundsCross { nats } => write!(
                f,
                "there is no bracket: the lower bound came out {nats} nats above the upper one, so one of them does not hold; runs back did \
                 not start from the posterior, since chains missed a part of it, or hidden values that were given are not of this model; give more \
                 --chains and --chain-sweeps, or --method smc"
            ),
            Warning::WideBracket { width, sweeps } => write!(
                f,
                "the bounds are {width} nats apart after {sweeps} steps; give more --sweeps or more time for closer ones, and take the \
                 estimate between them for a rough one"
            ),
            Warning::ChainsApart { apart, chains } => write!(
                f,
                "chains end in different modes: the best of {chains} would be some {apart} nats higher or lower with another seed, and the upper \
                 bound is of what this one found; give more --chains or --chain-sweeps"
            ),
            Warning::LabelsAssumed { ln_relabellings } => write!(
                f,
                "hidden values can be renamed in too many ways to list them, so those in use are taken to be far apart; if they are not, \
                 the estimate is too high, by {ln_relabellings} nats at most; --path prior does without"
            ),
            Warning::LabelsOverlap { nats } => write!(
                f,
                "many hidden values can be mistaken for each other, and the sum over their names is known to {nats} nats only, by which \
                 the estimate may be too low; use --path prior or --method smc"
            ),
            Warning::BelowBound { bound } => {
                write!(f, "the estimate is below the lower bound {bound}, so it is too low; give more --particles or --runs")
            }
            Warning::ModelsLeftOut { models, asked } => write!(
                f,
                "{} of {asked} models had no answer in time; left out: {}",
                models.len(),
                some(models)
            ),
            Warning::KnownByNumber { node, known, new } => write!(
                f,
                "{known} values of {node} have numbers that the fit has, and are taken for the same; {new} are new; if others are meant, \
                 give them numbers that the fit does not have"
            ),
            Warning::SameModel { models } => write!(
                f,
                "{} are one model under several names, which share its probability out between them; give it once",
                quoted(models)
            ),
            Warning::NotConverged { sweeps } => {
                write!(f, "still moving after {sweeps} sweeps; raise --max-iter, or --tol to be content with less")
            }
            Warning::ImpossibleStart => f.write_str(
                "some record is impossible under the tables to start from, or under the prior; give every value that it needs a \
                 weight in both",
            ),
            Warning::SizeWithoutMaximum => {
                write!(
                    f,
                    "a size of the prior went as far as it may, and the bound still rises: give that size by hand"
                )
            }
            Warning::RunsKept { runs } => {
                write!(f, "the checkpoint is kept: it has {runs} more finished runs than were asked for")
            }
            Warning::StartsDisagree { spread, n_best, starts } => write!(
                f,
                "starts end up to {spread} nats apart, {n_best} of {starts} at the best; raise --restarts to search longer"
            ),
            Warning::StreamCut { tokens, asked } => {
                write!(f, "only {tokens} of {asked} tokens were read in time; the tables are from those")
            }
            Warning::StreamStopped { tokens } => {
                write!(f, "stopped before the end of the stream; the evidence is that of {tokens} tokens")
            }
            Warning::OtherTotal { declared, tokens } => write!(
                f,
                "--tokens declares {declared} tokens but the stream had {tokens}; counts were scaled to what was declared"
            ),
            Warning::Scattered { node, times, values } => write!(
                f,
                "the {values} values of `{node}` came back {times} times in later batches; group the stream by `{node}`, or \
                 give --local none if its records are in random order"
            ),
            Warning::ChainsDisagree { r_hat, effective } => write!(
                f,
                "chains have not mixed: R-hat is {r_hat} at worst (1.01 or less is asked for), and draws are worth {effective} \
                 independent ones at worst (100 or more); give more --sweeps, or more --chains to see how far apart they end"
            ),
            Warning::LabelsOfOneChain { chain, nodes } => write!(
                f,
                "values of {} can be exchanged, so tables and hidden values are those of chain {chain} alone, its states named \
                 after the best of them",
                quoted(nodes)
            ),
            Warning::SweepsCut { done, asked, is_warm_up: false } => {
                write!(f, "only {done} of {asked} sweeps were done in time; the answer is from what was done until then")
            }
            Warning::SweepsCut { done, asked, is_warm_up: true } => write!(
                f,
                "only {done} of {asked} sweeps were done in time, and a chain was still warming up: its last state stands for \
                 the posterior; give more time"
            ),
            Warning::NoHits { tries } => write!(
                f,
                "none of {tries} simulated urns hit the data, so all that is known is that the evidence is small; use \
                 another method"
            ),
            Warning::Odd { message } => f.write_str(message),
        }
    }
}

/// The first of a list.
fn some(names: &[String]) -> String {
    match names.len() {
        0..=LISTED => names.join(", "),
        n => format!("{} and {} more", names[..LISTED].join(", "), n - LISTED),
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Warnings as one text: formats that do not name their fields cannot tell one kind from another.
pub(crate) mod as_text {
    use super::Warning;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(warnings: &[Warning], serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::to_string(warnings).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Warning>, D::Error> {
        serde_json::from_str(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
