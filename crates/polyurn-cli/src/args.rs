//! The argument list, and how its errors become one line.

use crate::text::{
    parse_a_values, parse_draw, parse_duration, parse_heat, parse_kappa, parse_memory, parse_name, parse_particles,
    parse_pseudo_count, parse_sensitivity, parse_tau, parse_tolerance, parse_totals, parse_when,
};
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use polyurn::engine::exact::TotalsRange;
use polyurn::engine::smc::When;
use polyurn::io::{BinSpec, Format, ReadOptions};
use polyurn::predict::Draw;
use std::path::PathBuf;
use std::time::Duration;

/// Evidence for hidden-variable models of counts: topic models, tensor factorisations, latent classes, any discrete DAG.
#[derive(Debug, Parser)]
#[command(name = "polyurn", version, max_term_width = 110, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The evidence of one model: ln p(data | model), parameters integrated out.
    Score(ScoreArgs),
    /// The posterior of a model's tables.
    #[command(mut_arg("output", |arg| arg.help("Also write the fit to this file, for predict, info and export")))]
    Fit(FitArgs),
    /// Which size: the evidence of every size in the ranges of a model, ranked.
    Select(SelectArgs),
    /// Which structure: the evidence of several models of the same columns, ranked.
    Compare(CompareArgs),
    /// A fit applied to new records: probabilities, hidden values, missing values, expected counts.
    Predict(PredictArgs),
    /// A fit in the forms that other tools read: CSV, NumPy, BIF, pyLDAvis, JSON.
    Export(ExportArgs),
    /// ln pi(S) and d_EP of every allocation tensor that fits the data, each once.
    Enumerate(EnumerateArgs),
    /// Draw data from a model, or tokens from a table of counts.
    Simulate(SimulateArgs),
    /// Write a file of counts in another format.
    #[command(
        mut_arg("format", |arg| arg.long("from").visible_alias("format")),
        mut_arg("output", |arg| arg.help("Write to this file instead of standard output"))
    )]
    Convert(ConvertArgs),
    /// Read a file and say what is in it and what is odd.
    Check(CheckArgs),
    /// Describe a model (nodes, tables, cliques, treewidth, cost) or a fit file.
    Info(InfoArgs),
    /// Compare models of small built-in tables (with seed 1 unless given).
    Demo(DemoArgs),
    /// Show the result of select, compare or fit as a page with plots.
    Report(ReportArgs),
}

/// Flags of every command.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Print one JSON object (`predict`: one for each row, a line each).
    #[arg(long)]
    pub json: bool,
    /// No progress, notes or warnings on standard error.
    #[arg(long, short)]
    pub quiet: bool,
    /// Write the result to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Seed of all random draws; drawn and reported if not given.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Threads, over runs, particles and values of `--a`; the results do not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

/// The model.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// Model text (`doc -> topic[20] -> word`), preset (`lda(20)`), contraction (`einsum: ir,jr->ij; r[3]`), or a file
    /// ending in .json or .toml.
    #[arg(long, value_name = "TEXT|FILE", allow_hyphen_values = true)]
    pub model: String,
}

/// The data and how to read them.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// Data file: CSV, TSV, a tensor, a matrix or a bag of words, also compressed by gzip or zstd; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub data: PathBuf,
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// What a data file is.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// Format of the data file, if neither its name nor its first lines tell: csv, tsv, tns, tensor-toolbox, mtx, uci, lda-c,
    /// svmlight, npy, npz or mallet.
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// The words of a uci or lda-c file, one on each line [default: a file of a usual name beside it, such as
    /// vocab.NAME.txt].
    #[arg(long, value_name = "FILE")]
    pub vocab: Option<PathBuf>,
    /// Read the labels of a svmlight or mallet file, too, as a column `label`.
    #[arg(long)]
    pub labels: bool,
    /// What a compressed file may unpack to [default: 64G].
    #[arg(long, value_name = "SIZE", value_parser = parse_memory, allow_hyphen_values = true)]
    pub max_unpacked: Option<u64>,
    /// Cut the numbers of these columns of a table into N categories, by kmeans, quantile or width [default method: kmeans].
    #[arg(long, value_name = "COLUMNS=N[:METHOD]")]
    pub bin: Vec<BinSpec>,
}

impl FileArgs {
    /// How to read the file, with whole counts or fractions too, but for cuts, which have to be found.
    pub fn uncut(&self, fractions: bool) -> ReadOptions {
        let (vocab, labels, max_unpacked) = (self.vocab.clone(), self.labels, self.max_unpacked);
        ReadOptions { format: self.format, fractions, vocab, labels, max_unpacked, cuts: Vec::new() }
    }

    /// A flag that was given, if one was.
    pub fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--format", self.format.is_some()),
            ("--vocab", self.vocab.is_some()),
            ("--labels", self.labels),
            ("--max-unpacked", self.max_unpacked.is_some()),
            ("--bin", !self.bin.is_empty()),
        ];
        flags.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }
}

/// How to read a data file.
#[derive(Debug, Args)]
pub struct ReadingArgs {
    #[command(flatten)]
    pub file: FileArgs,
    /// Names for the data's columns in order, or the named columns to use, in an order of their own.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub columns: Option<Vec<String>>,
}

/// The prior.
#[derive(Debug, Args)]
pub struct PriorArgs {
    /// Equivalent sample size of the tables and Gamma shape [default: 1]; `score` also takes a list `0.1,1,10` or
    /// log-spaced values `1e-5..1e5:21`, for a curve, and `select` and `compare` rank models at all of them together.
    #[arg(long, value_name = "A", value_parser = parse_a_values, allow_hyphen_values = true)]
    pub a: Option<AValues>,
    /// Gamma shape alone [default: a].
    #[arg(long, value_name = "A", allow_hyphen_values = true)]
    pub shape: Option<f64>,
    /// Gamma rate [default: shape / tokens].
    #[arg(long, value_name = "B", allow_hyphen_values = true)]
    pub b: Option<f64>,
    /// How pseudo-counts of tied nodes combine.
    #[arg(long, value_name = "sum|once")]
    pub tied_prior: Option<TiedArg>,
    /// The same pseudo-count in every cell of this node's table; nodes not named keep the prior. With `score` a
    /// list or range, as for --a, gives a curve; several give every value with every other.
    #[arg(long, value_name = "NODE=V", value_parser = parse_pseudo_count, allow_hyphen_values = true)]
    pub pseudo_count: Vec<(String, AValues)>,
    /// Prior file (.json or .toml), with the fields of a model file's `prior`; `none` for maximum likelihood (fit --method
    /// em).
    #[arg(long, value_name = "FILE|none")]
    pub prior: Option<String>,
}

/// Values of `--a`, or of a pseudo-count.
#[derive(Debug, Clone, PartialEq)]
pub struct AValues(pub Vec<f64>);

/// `--tied-prior`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum TiedArg {
    /// Members' pseudo-counts add up.
    Sum,
    /// One member's pseudo-counts.
    Once,
}

/// Limits of a run.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// Memory for states or particles; a run that would need more is refused beforehand.
    #[arg(long, value_name = "4G", default_value = "4G", value_parser = parse_memory, allow_hyphen_values = true)]
    pub max_memory: u64,
    /// Stop after this time (`60s`, `5m`, `1.5h`); particles choose their sizes to fit, and answer with the runs that are
    /// finished.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    pub time_limit: Option<Duration>,
}

/// Saving an unfinished run.
#[derive(Debug, Args)]
pub struct CheckpointArgs {
    /// Save the run here now and then, and take it up again if the file exists.
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    /// Time between two checkpoints.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration, requires = "checkpoint")]
    pub checkpoint_every: Duration,
}

/// `score --method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScoreMethod {
    /// The cheapest engine that fits the limits.
    Auto,
    /// The exact number.
    Exact,
    /// Sequential Monte Carlo with moves: an unbiased estimate with an error.
    Smc,
    /// Sequential importance sampling, never resampled: the paper's first algorithm.
    Sis,
    /// Free urns, hits counted: the baseline that the paper rejects.
    Naive,
    /// Annealing over all tokens at once, from a reference that Gibbs chains find: for tens of thousands of tokens.
    Anneal,
    /// Variational Bayes: a lower bound of the evidence, in little time.
    Vb,
}

/// Settings of the particle engines. What is not given is chosen from the problem and the time limit.
#[derive(Debug, Default, Args)]
pub struct ParticleArgs {
    /// Particles of each run (for naive: urns in all).
    #[arg(long, value_name = "M", value_parser = parse_particles, allow_hyphen_values = true, help_heading = "Particles")]
    pub particles: Option<u64>,
    /// Independent runs; their scatter gives the error [default: 4].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = "Particles")]
    pub runs: Option<u64>,
    /// Gibbs updates of earlier tokens after each new token [default: 20, fewer for very many tokens].
    #[arg(long, value_name = "R", help_heading = "Particles")]
    pub rejuvenate: Option<u32>,
    /// Start with pseudo-counts this many times the prior's and cool down to it; 1 for none [default: small pilots choose].
    #[arg(long, value_name = "F", value_parser = parse_heat, allow_hyphen_values = true, help_heading = "Particles")]
    pub heat: Option<f64>,
    /// Steps of the cooling, a Gibbs sweep after each but the last [default: as --rejuvenate].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Particles")]
    pub cooling: Option<u32>,
    /// Moves of whole groups of tokens, split and merge, per cooling step and whenever the tokens have doubled; for models
    /// with one hidden node [default: 0].
    #[arg(long, value_name = "N", help_heading = "Particles")]
    pub split_merge: Option<u32>,
    /// Order of the tokens: `auto`, `random`, `given`, or `by:NODE` (grouped by its values; records that do not show it form
    /// one group).
    #[arg(long, value_name = "ORDER", help_heading = "Particles")]
    pub order: Option<String>,
    /// How to resample [default: systematic].
    #[arg(long, value_name = "SCHEME", help_heading = "Particles")]
    pub resample: Option<SchemeArg>,
    /// When to resample: below this share of effective particles, `always` or `never` [default: 0.5].
    #[arg(long, value_name = "F|always|never", value_parser = parse_when, allow_hyphen_values = true, help_heading = "Particles")]
    pub ess: Option<When>,
    /// Vector instructions: `auto` takes the best of this machine; the result is the same.
    #[arg(long, value_name = "scalar|auto", help_heading = "Particles")]
    pub kernel: Option<KernelArg>,
}

/// Settings of annealing. What is not given is chosen from the problem and the time limit.
#[derive(Debug, Default, Args)]
pub struct AnnealArgs {
    /// Go back from the posterior, too, for an upper bound: the evidence lies between the two.
    #[arg(long, help_heading = "Annealing")]
    pub bracket: bool,
    /// Where the path to the posterior begins: at a reference that is fitted to Gibbs chains, or at the prior of the hidden values
    /// [default: reference, or prior where names of hidden values cannot be summed over].
    #[arg(long, value_name = "reference|prior", help_heading = "Annealing")]
    pub path: Option<PathArg>,
    /// Steps of the path, with a sweep over all tokens after each [default: 1000, or what the time limit allows].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000), help_heading = "Annealing")]
    pub sweeps: Option<u64>,
    /// Gibbs chains that go ahead, dealt out to the runs; the best one makes the reference [default: two to six a run; beyond
    /// 20,000 tokens 4 to 16 in all].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000), help_heading = "Annealing")]
    pub chains: Option<u64>,
    /// Sweeps of each of these chains [default: 0.6 times --sweeps, at least 200].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000), help_heading = "Annealing")]
    pub chain_sweeps: Option<u64>,
}

/// Where an annealing path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PathArg {
    /// A fitted reference.
    Reference,
    /// The prior.
    Prior,
}

/// Settings of the engines that sweep.
#[derive(Debug, Default, Args)]
pub struct SweepArgs {
    /// Starts in all; the best is kept [default: 4].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = "Sweeps")]
    pub restarts: Option<u64>,
    /// Sweeps of each start at most [default: 1000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Sweeps")]
    pub max_iter: Option<u64>,
    /// Stop when a sweep changes the objective by no more than this share of it, or of what it lacks to a perfect fit if that
    /// is less; 0 never stops early [default: 1e-8].
    #[arg(long, value_name = "X", value_parser = parse_tolerance, allow_hyphen_values = true, help_heading = "Sweeps")]
    pub tol: Option<f64>,
    /// With vb: set the size of the prior where the bound is largest: `a`, or nodes whose pseudo-counts are to have a size of
    /// their own.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = parse_name, alias = "maximize", help_heading = "Sweeps")]
    pub maximise: Vec<String>,
}

/// Settings of the engines that sweep, where tables are the result.
#[derive(Debug, Default, Args)]
pub struct FitSweepArgs {
    #[command(flatten)]
    pub sweeps: SweepArgs,
    /// Start from the tables of this JSON file, `{"tables": {"node": [[..], ..]}}`, one row for each parent configuration;
    /// then there is one start.
    #[arg(long, value_name = "FILE", help_heading = "Sweeps", conflicts_with = "restarts")]
    pub init: Option<PathBuf>,
    /// With em or icm and a prior: which posterior density has its mode taken, that of the tables' logits or of the tables
    /// themselves [default: softmax].
    #[arg(long, value_name = "softmax|density", help_heading = "Sweeps")]
    pub mode: Option<ModeArg>,
    /// With em: set factors one after another, each after an expectation of its own, or all together [default: cycle].
    #[arg(long, value_name = "cycle|together", help_heading = "Sweeps")]
    pub update: Option<UpdateArg>,
    /// With em: random draws that are tried for each start, with twenty sweeps each; the best one goes on [default: 8].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = "Sweeps", conflicts_with = "init")]
    pub trials: Option<u64>,
}

/// `--mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    /// Pseudo-counts are added to counts.
    Softmax,
    /// Pseudo-counts less one are added; they must be at least one.
    Density,
}

/// `--update`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UpdateArg {
    /// Factors take turns.
    Cycle,
    /// All tables at once.
    Together,
}

/// `--resample`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemeArg {
    /// One uniform number for all.
    Systematic,
    /// One uniform number in each stratum.
    Stratified,
    /// Whole parts for certain, the rest drawn.
    Residual,
    /// Independent draws.
    Multinomial,
}

/// `--kernel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KernelArg {
    /// The best instructions of this machine.
    Auto,
    /// What every machine of this architecture has.
    Scalar,
}

/// `fit --method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FitMethod {
    /// Exact posterior means.
    Exact,
    /// Weighted particles: posterior means, the best allocation, hidden values of every record.
    Smc,
    /// Collapsed Gibbs chains: the same for very many tokens, and whether chains agree.
    Gibbs,
    /// Variational Bayes: approximate posterior means, and a lower bound of the evidence.
    Vb,
    /// Expectation maximisation: the most likely tables with `--prior none`, else the mode of their posterior.
    Em,
    /// Dual EM: one allocation of large probability, tables integrated out.
    DualEm,
    /// Iterated conditional modes: one allocation and the tables that go with it.
    Icm,
    /// Stochastic variational Bayes: posterior means from a stream that is read once, in batches; needs declared sizes and
    /// --tokens.
    Svb,
}

/// What a sweep of a Gibbs chain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MovesArg {
    /// Every token is drawn anew.
    Tokens,
    /// Particle Gibbs: particles place all tokens anew, one of them following the present state; then every token is drawn anew.
    Conditional,
    /// Particles place all tokens anew, and the new state is taken or not by what they say of the evidence.
    Independent,
}

/// Settings of Gibbs chains.
#[derive(Debug, Default, Args)]
pub struct ChainArgs {
    /// Independent chains [default: 4].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000), help_heading = "Chains (gibbs)")]
    pub chains: Option<u64>,
    /// Sweeps of each chain; in one, every token is drawn anew [default: 1000, or what a time limit allows].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000), help_heading = "Chains (gibbs)")]
    pub sweeps: Option<u64>,
    /// Sweeps before the first state that is kept [default: half of them].
    #[arg(long, value_name = "N", help_heading = "Chains (gibbs)")]
    pub warm_up: Option<u64>,
    /// What a sweep is: `tokens` draws every token anew; for small data `conditional` and `independent` place all of them at once, by
    /// --particles particles [default: tokens].
    #[arg(long, value_name = "MOVES", help_heading = "Chains (gibbs)")]
    pub moves: Option<MovesArg>,
    /// Sweeps from one kept state to the next [default: 10, or fewer where less than 20 states would be kept].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Chains (gibbs)")]
    pub thin: Option<u64>,
}

/// Settings for streams.
#[derive(Debug, Default, Args)]
pub struct StreamArgs {
    /// Seen nodes, with sizes where the model gives none: `doc[50],word[200]` [default: nodes named like a column].
    #[arg(long, value_name = "NODES", help_heading = "Streams (svb)")]
    pub seen: Option<String>,
    /// Number of tokens of the whole stream.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true, help_heading = "Streams (svb)")]
    pub tokens: Option<u64>,
    /// Records of a batch [default: 10000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Streams (svb)")]
    pub batch: Option<u32>,
    /// How often to go through a file; standard input is read once [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Streams (svb)")]
    pub passes: Option<u32>,
    /// Step t has the size (t + tau)^-kappa; above 0.5, at most 1 [default: 0.7].
    #[arg(long, value_name = "X", value_parser = parse_kappa, allow_hyphen_values = true, help_heading = "Streams (svb)")]
    pub kappa: Option<f64>,
    /// Makes early steps smaller, from 0 on [default: 1].
    #[arg(long, value_name = "X", value_parser = parse_tau, allow_hyphen_values = true, help_heading = "Streams (svb)")]
    pub tau: Option<f64>,
    /// Seen root nodes whose records stand together in the stream, such as documents: rows below them are fitted within
    /// their batch. `none` for records in random order [default: those with a hidden child].
    #[arg(long, value_name = "NODES|none", value_delimiter = ',', help_heading = "Streams (svb)")]
    pub local: Option<Vec<String>>,
}

/// Streams that are scored while they come in.
#[derive(Debug, Default, Args)]
pub struct OnlineArgs {
    /// Score the data while they come in: the running evidence after every batch (with --json an object a line), with the same
    /// work for each token. All sizes and --b must be given.
    #[arg(long, help_heading = "Streams", conflicts_with_all = ["given", "totals", "heldout"])]
    pub stream: bool,
    /// Seen nodes, with sizes where the model gives none: `doc[50],word[200]` [default: nodes named like a column].
    #[arg(long, value_name = "NODES", help_heading = "Streams", requires = "stream")]
    pub seen: Option<String>,
    /// Records of a batch [default: 1000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Streams", requires = "stream")]
    pub batch: Option<u32>,
    /// The latest tokens, among which --rejuvenate draws again [default: 10000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000), help_heading = "Streams", requires = "stream")]
    pub window: Option<u64>,
    /// Go on with the stream whose state is in this file, if it exists, and keep the new state there.
    #[arg(long, value_name = "FILE", help_heading = "Streams", requires = "stream", conflicts_with = "checkpoint")]
    pub state: Option<PathBuf>,
}

/// Arguments of `score`.
#[derive(Debug, Args)]
pub struct ScoreArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub prior: PriorArgs,
    /// Engine.
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub method: ScoreMethod,
    /// Also give ln p(sequence) given the values of these seen root nodes: `--given doc` for ln p(words | documents).
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    pub given: Vec<String>,
    /// With unknown cells: the totals to list, both ends included [default: until the tail is below 1e-12].
    #[arg(long, value_name = "LO..HI", value_parser = parse_totals)]
    pub totals: Option<TotalsRange>,
    /// Instead of the evidence: fit by vb or smc, and say how well the fit predicts the records of this file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["given", "totals", "checkpoint"])]
    pub heldout: Option<PathBuf>,
    /// With --heldout: values that the fit does not know are refused, or taken as missing [default: refuse].
    #[arg(long, value_name = "refuse|drop", requires = "heldout")]
    pub unseen: Option<UnseenArg>,
    /// With --bracket: columns of the data that count as hidden, as in data that `simulate --full` wrote. Their values are where runs back
    /// start, so that the upper bound does not rest on chains.
    #[arg(long, value_name = "NODES", value_delimiter = ',', requires = "bracket", conflicts_with_all = ["heldout", "stream"])]
    pub hide: Vec<String>,
    #[command(flatten)]
    pub online: OnlineArgs,
    #[command(flatten)]
    pub particles: ParticleArgs,
    #[command(flatten)]
    pub anneal: AnnealArgs,
    #[command(flatten)]
    pub sweeps: SweepArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub checkpoint: CheckpointArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `select`.
#[derive(Debug, Args)]
pub struct SelectArgs {
    /// Model with sizes to choose from: `r[1..8] -> i j k`, `doc -> topic[5,10,20] -> word`, `lca(1..6)`.
    #[arg(long, value_name = "TEXT|FILE", allow_hyphen_values = true)]
    pub model: String,
    #[command(flatten)]
    pub contest: ContestArgs,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// A model, as for `score`, or with sizes to choose from, as for `select`; give it again for each model.
    #[arg(long = "model", value_name = "TEXT|FILE", allow_hyphen_values = true, required = true)]
    pub models: Vec<String>,
    #[command(flatten)]
    pub contest: ContestArgs,
}

/// What `select` and `compare` have in common.
#[derive(Debug, Args)]
pub struct ContestArgs {
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub prior: PriorArgs,
    /// Engine. `auto` takes the exact answer where it is cheap and particles elsewhere, with more work where models are close.
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub method: ScoreMethod,
    /// Table of prior weights of models (CSV): a column for each node whose size varies, or a column `model`, and a column
    /// `weight` [default: all the same].
    #[arg(long, value_name = "FILE")]
    pub model_prior: Option<PathBuf>,
    /// Also rank at these multiples of `a`, to see how the answer moves with it; `none` for not at all [default:
    /// 0.25,0.5,2,4, where the scores are cheap].
    #[arg(long, value_name = "FACTORS|none", value_parser = parse_sensitivity)]
    pub sensitivity: Option<AValues>,
    /// Do not compute the lower bound (ELBO) of variational Bayes, neither to stand beside the evidence nor to leave models out:
    /// all are scored.
    #[arg(long)]
    pub no_bound: bool,
    /// Print the table as CSV.
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    #[command(flatten)]
    pub particles: ParticleArgs,
    #[command(flatten)]
    pub anneal: AnnealArgs,
    #[command(flatten)]
    pub sweeps: SweepArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub checkpoint: CheckpointArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `fit`.
#[derive(Debug, Args)]
pub struct FitArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub prior: PriorArgs,
    /// Engine.
    #[arg(long, value_name = "METHOD", default_value = "vb")]
    pub method: FitMethod,
    #[command(flatten)]
    pub particles: ParticleArgs,
    #[command(flatten)]
    pub sweeps: FitSweepArgs,
    #[command(flatten)]
    pub chains: ChainArgs,
    #[command(flatten)]
    pub stream: StreamArgs,
    /// With smc or gibbs, and -o: keep so many draws from the posterior, too, for `predict --draw N` [default: 0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10_000), requires = "output")]
    pub draws: Option<u32>,
    /// With smc or gibbs: also list the posterior of the hidden values of every record, and those of the best allocation.
    #[arg(long)]
    pub hidden: bool,
    #[command(flatten)]
    pub decomposition: DecompositionArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub checkpoint: CheckpointArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `predict`.
#[derive(Debug, Args)]
pub struct PredictArgs {
    /// Fit file, from `polyurn fit -o FIT`.
    #[arg(long, value_name = "FIT")]
    pub fit: PathBuf,
    #[command(flatten)]
    pub data: DataArgs,
    /// Use the tables and hidden values of one draw (fits by smc or gibbs): `best`, the most probable allocation, or its number, from 1.
    #[arg(long, value_name = "best|N", value_parser = parse_draw)]
    pub draw: Option<Draw>,
    /// Columns to pass through, in front: a list with commas, or one name (with commas of its own, if it has any); may be
    /// repeated.
    #[arg(long, value_name = "COLUMNS", value_parser = parse_name)]
    pub keep: Vec<String>,
    /// All probabilities of hidden values, not only the largest.
    #[arg(long, conflicts_with = "draw")]
    pub probabilities: bool,
    /// Fill in missing values: the most likely one and its probability.
    #[arg(long)]
    pub impute: bool,
    /// Also the expected count of each row's cell.
    #[arg(long)]
    pub expected: bool,
    /// Seen root nodes whose values are taken as given in log_probability_given [default: those with hidden children].
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    pub given: Option<Vec<String>>,
    /// Values that the fit does not know and that cannot be new documents: refuse them, or take them as missing.
    #[arg(long, value_name = "refuse|drop", default_value = "refuse")]
    pub unseen: UnseenArg,
    /// Rows of each new document stand together: read a file once, in constant memory (standard input always is).
    #[arg(long)]
    pub together: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Fit file, from `polyurn fit -o FIT`.
    #[arg(value_name = "FIT")]
    pub fit: PathBuf,
    /// What to write.
    #[arg(long, value_name = "FORMAT")]
    pub to: ExportFormat,
    /// With csv: factor matrices and core instead of tables.
    #[arg(long)]
    pub factors: bool,
    /// Take the tables of one draw (fits by smc or gibbs): `best`, the most probable allocation, or its number, from 1.
    #[arg(long, value_name = "best|N", value_parser = parse_draw)]
    pub draw: Option<Draw>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `export --to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// All listed cells of all tables, one line each.
    Csv,
    /// Tables, factors and labels as NumPy arrays.
    Npz,
    /// The network in the Bayesian Interchange Format.
    Bif,
    /// Topics as pyLDAvis.prepare takes them.
    Pyldavis,
    /// What the file says, with its tables.
    Json,
}

/// `--unseen`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UnseenArg {
    /// An error.
    Refuse,
    /// As if it were missing.
    Drop,
}

/// What to say about a fit in the words of factorisations.
#[derive(Debug, Args)]
pub struct DecompositionArgs {
    /// Also give factors and core: W and H of a matrix, weights and factor matrices of a CP model, a Tucker core; with smc
    /// from the best allocation.
    #[arg(long, help_heading = "Decomposition")]
    pub factors: bool,
    /// Largest entries of each component [default: 8].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Decomposition")]
    pub top: Option<u32>,
    /// Also give the probabilities of these nodes together, all others summed out: `topic,word`. May be given again.
    #[arg(long = "marginal", value_name = "NODES", help_heading = "Decomposition")]
    pub marginals: Vec<String>,
    /// Also give the expected count of every record.
    #[arg(long, help_heading = "Decomposition")]
    pub expected: bool,
}

/// Arguments of `enumerate`.
#[derive(Debug, Args)]
pub struct EnumerateArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub prior: PriorArgs,
    /// Count tensors in this many bins of ln pi(S), and by d_EP, instead of listing them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub bins: Option<u32>,
    /// Also list the occupied cells of each tensor.
    #[arg(long, conflicts_with = "bins")]
    pub tensors: bool,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `simulate`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).args(["model", "from"]))]
pub struct SimulateArgs {
    /// Model to draw from, as for `score`; every node needs a size.
    #[arg(long, value_name = "TEXT|FILE", allow_hyphen_values = true)]
    pub model: Option<String>,
    /// Draw tokens in proportion to the counts of this file instead.
    #[arg(long, value_name = "FILE", requires = "tokens")]
    pub from: Option<PathBuf>,
    #[command(flatten)]
    pub file: FileArgs,
    #[command(flatten)]
    pub prior: PriorArgs,
    /// Number of tokens [default: drawn from the prior, which needs --b].
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub tokens: Option<u64>,
    /// Seen nodes, with sizes where the model gives none: `doc[50],word[200]` [default: all].
    #[arg(long, value_name = "NODES", conflicts_with = "from")]
    pub seen: Option<String>,
    /// Write hidden nodes too.
    #[arg(long, conflicts_with = "from")]
    pub full: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// The file, or `-` for standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub reading: FileArgs,
    /// Format to write, if the name of the output does not tell: csv, tsv, tns, tensor-toolbox, mtx, uci, lda-c, svmlight, npy or
    /// npz.
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<Format>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The file, or `-` for standard input.
    #[arg(value_name = "FILE", required_unless_present = "data")]
    pub file: Option<PathBuf>,
    /// The file, spelt as in the other commands.
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub reading: FileArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `info`.
#[derive(Debug, Args)]
pub struct InfoArgs {
    /// Fit file to describe, from `polyurn fit -o FIT`.
    #[arg(value_name = "FIT", conflicts_with_all = [
        "model", "data", "seen", "dot", "format", "vocab", "labels", "max_unpacked", "bin", "columns", "a", "shape", "b", "tied_prior", "pseudo_count", "prior",
    ])]
    pub fit: Option<PathBuf>,
    /// Model to describe, as for `score`.
    #[arg(long, value_name = "TEXT|FILE", allow_hyphen_values = true, required_unless_present = "fit")]
    pub model: Option<String>,
    /// Data file, to take sizes, seen nodes and costs from.
    #[arg(long, value_name = "FILE", conflicts_with = "seen")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub prior: PriorArgs,
    /// Seen nodes, with sizes where the model gives none: `doc[50],word[200]`.
    #[arg(long, value_name = "NODES")]
    pub seen: Option<String>,
    /// Print the graph in Graphviz form.
    #[arg(long, conflicts_with = "json")]
    pub dot: bool,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Equivalent sample size and Gamma shape.
    #[arg(long, value_name = "A", default_value_t = 1.0, allow_hyphen_values = true)]
    pub a: f64,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// A fit file, or what select, compare or fit printed with --json; `-` for standard input.
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// Also write every plot as an SVG file into this folder.
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Heading of the page [default: from the model and the data].
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub title: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}
