//! The evidence of a stream while it comes in.

use super::{Particles, Score};
use crate::Seed;
use crate::counts::Unit;
use crate::engine::mixer::Mixer;
use crate::engine::smc::online::{Follower, Online};
use crate::engine::smc::{Estimate, Order, Path, Smc};
use crate::error::{Error, Result};
use crate::evidence::{Evidence, add_up};
use crate::graph::{Model, RowBatch};
use crate::math::{Double, LnProduct, ln_factorial};
use crate::prior::{GammaTotal, Prior};
use crate::warning::Warning;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// How far a source was read: tokens, and what they were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    n_tokens: u64,
    digest: u64,
}

/// A stream under way: particles that follow it, and how often each distinct record has come.
#[derive(Debug)]
pub struct Running {
    online: Online,
    is_shuffled: bool,
    prior: Prior,
    total: GammaTotal,
    follower: Follower,
    book: Book,
    /// Where an earlier call was stopped in the same source, with the labels that it knew: up to there tokens are passed over.
    behind: Option<(Mark, Vec<Vec<String>>)>,
    /// Tokens before the source at hand, and what was read of it.
    n_before: u64,
    seen: Mark,
    seed: Seed,
}

/// What is kept of all tokens beside the particles.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Book {
    /// Tokens of each distinct record.
    #[serde(with = "sorted")]
    cells: HashMap<Box<[u32]>, u64>,
    /// The product of their factorials.
    factorials: LnProduct,
    mark: Mark,
    /// Labels of each node in the order of their values.
    labels: Vec<Vec<String>>,
    /// Tokens and ln p(sequence) when somebody last looked.
    looked_at: (u64, f64),
}

/// What is known of a stream so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Tokens so far.
    pub tokens: u64,
    /// Distinct records so far.
    pub records: u64,
    /// The evidence of all tokens so far.
    pub evidence: Evidence,
    /// What the particles say.
    pub estimate: Estimate,
    /// Tokens since the last look.
    pub batch_tokens: u64,
    /// ln of their probability, given those before: the difference of two estimates.
    pub batch_log_p_sequence: f64,
    /// The smallest effective sample size since the last look; none if nothing was drawn.
    pub ess_min: Option<f64>,
}

impl Standing {
    /// The error of the evidence; none while nothing had to be drawn.
    pub fn std_error(&self) -> Option<f64> {
        self.estimate.std_error.filter(|_| self.ess_min.is_some())
    }
}

/// What the state file of a stream holds.
#[derive(Serialize, Deserialize)]
struct Saved {
    /// Whether tokens are shuffled within batches, and of how many rows.
    shuffled: Option<u64>,
    book: Book,
    follower: Vec<u8>,
}

impl Running {
    /// Before the first token. It has its own copy of the model and the prior.
    ///
    /// # Errors
    /// When the Gamma rate is not given; settings that are not possible.
    pub fn new(model: &Model, prior: &Prior, online: &Online, is_shuffled: bool, seed: Seed) -> Result<Self> {
        if prior.rate().is_none() {
            let message = "a stream has no total yet, so the Gamma rate has no default; give --b";
            return Err(Error::Setting(message.into()));
        }
        Ok(Running {
            is_shuffled,
            prior: prior.clone(),
            total: prior.total(None)?,
            follower: online.begin(model, prior, seed)?,
            online: online.clone(),
            book: Book { labels: vec![Vec::new(); model.n_nodes()], ..Default::default() },
            behind: None,
            n_before: 0,
            seen: Mark::default(),
            seed,
        })
    }

    /// Tokens so far.
    pub fn n_tokens(&self) -> u64 {
        self.follower.n_tokens()
    }

    /// Labels of each node in the order of their values, as far as they have come.
    pub fn labels(&self) -> &[Vec<String>] {
        &self.book.labels
    }

    /// Whether tokens are being passed over that an earlier call has taken.
    pub fn is_behind(&self) -> bool {
        self.behind.is_some()
    }

    /// Takes a batch; `go_on` is asked now and then.
    ///
    /// # Errors
    /// What `go_on` says, after which all that was taken stays; data that are not those of an earlier call; too many tokens.
    pub fn take(&mut self, batch: &RowBatch, go_on: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let labels = self.book.labels.iter_mut().zip(&batch.new_labels);
        labels.for_each(|(labels, new)| labels.extend(new.iter().cloned()));
        let rows: Vec<u32> = match self.is_shuffled {
            true => batch.rows.shuffled(self.seed, self.n_before + self.seen.n_tokens),
            false => Vec::new(),
        };
        let tokens: Box<dyn Iterator<Item = &[u32]>> = if self.is_shuffled {
            Box::new(rows.iter().map(|&row| batch.rows.row(row as usize)))
        } else {
            Box::new(batch.rows.tokens())
        };
        let mut tokens = tokens.peekable();
        while let Some((mark, _)) = &self.behind {
            let Some(token) = tokens.next() else { return Ok(()) };
            self.seen.add(token);
            if self.seen.n_tokens == mark.n_tokens {
                self.catch_up()?;
            }
        }
        let (book, seen) = (&mut self.book, &mut self.seen);
        self.follower.take(
            tokens,
            |token| {
                seen.add(token);
                book.add(token);
            },
            go_on,
        )
    }

    fn catch_up(&mut self) -> Result<()> {
        let (mark, labels) = self.behind.take().expect("looked at before");
        let mut known = labels.iter().zip(&self.book.labels);
        if self.seen != mark || !known.all(|(old, new)| new.starts_with(old)) {
            let why = "the data are not those that it was made from; give the same file, or another checkpoint";
            return Err(Error::Checkpoint(why.into()));
        }
        Ok(())
    }

    /// What is known now; the next look goes on from here.
    pub fn look(&mut self) -> Standing {
        let standing = self.standing();
        self.book.looked_at = (standing.tokens, standing.evidence.log_p_sequence);
        standing
    }

    fn standing(&mut self) -> Standing {
        let estimate = self.follower.estimate();
        let tokens = self.n_tokens();
        let is_random = self.follower.is_random();
        let sequence = if is_random { Double::from(estimate.ln_p_sequence) } else { self.follower.closed_form() };
        let arrangements = ln_factorial(tokens) - self.book.factorials.ln();
        let evidence = add_up(self.total.ln_p_total(tokens), arrangements, sequence);
        let (tokens_before, ln_before) = self.book.looked_at;
        let batch_log_p_sequence =
            if ln_before == f64::NEG_INFINITY { f64::NEG_INFINITY } else { evidence.log_p_sequence - ln_before };
        let ess_min = Some(self.follower.ess_lately()).filter(|_| is_random);
        Standing {
            tokens,
            records: self.book.cells.len() as u64,
            evidence,
            estimate,
            batch_tokens: tokens - tokens_before,
            batch_log_p_sequence,
            ess_min,
        }
    }

    /// The evidence of all tokens so far, in the form of any other score.
    pub fn score(&mut self, seconds: f64, warnings: Vec<Warning>) -> Score {
        let Standing { tokens, records, evidence, estimate, .. } = self.standing();
        let Online { particles, runs, rejuvenation, when, scheme, isa, threads, max_memory, .. } = self.online;
        let order = if self.is_shuffled { Order::Random } else { Order::Given };
        let path = Path { order, rejuvenation, when, scheme, ..Default::default() };
        let is_random = self.follower.is_random();
        let mut score = Score {
            a: self.prior.a(),
            shape: self.total.shape,
            rate: self.total.rate,
            log_marginal: evidence.log_marginal,
            std_error: None,
            parts: Some(evidence),
            given: None,
            totals: None,
            method: if is_random { "smc" } else { "exact" }.into(),
            why: if is_random { "particles follow the stream" } else { "nothing is hidden" }.into(),
            kernel: if is_random { isa.name() } else { "closed form" }.into(),
            particles: None,
            annealed: None,
            hits: None,
            climbs: None,
            maximised: Vec::new(),
            seconds,
            tokens,
            unit: Unit::TOKEN,
            records,
            warnings,
        };
        if is_random {
            let smc = Smc { particles, runs, path, isa, threads, max_memory };
            score.take("smc", Particles { smc, estimate, to_marginal: evidence.beside_sequence() });
        }
        if !self.prior.is_consistent() {
            score.warnings.push(Warning::InconsistentPrior);
        }
        if score.log_marginal == f64::NEG_INFINITY {
            score.warnings.push(Warning::ImpossibleData);
        }
        score
    }

    /// All that there is, for [`Running::repeat_from`] and [`Running::go_on_from`]. `batch` is the number of rows of a batch.
    pub fn state(&mut self, batch: u64) -> Vec<u8> {
        self.book.mark = self.seen;
        let follower = self.follower.state();
        let saved = SavedRef { shuffled: self.is_shuffled.then_some(batch), book: &self.book, follower: &follower };
        postcard::to_stdvec(&saved).expect("plain data")
    }

    /// Takes up a state: what comes next is new.
    ///
    /// # Errors
    /// When it is damaged or belongs to another model, prior, seed or setting.
    pub fn go_on_from(&mut self, state: &[u8]) -> Result<()> {
        self.book = self.read(state)?.book;
        self.n_before = self.n_tokens();
        Ok(())
    }

    /// Takes up a state: the same data come again from the start, and what was taken of them is passed over.
    ///
    /// # Errors
    /// As for [`Running::go_on_from`], and when batches were shuffled and are now of another size.
    pub fn repeat_from(&mut self, state: &[u8], batch: u64) -> Result<()> {
        let saved = self.read(state)?;
        if saved.shuffled.is_some_and(|rows| rows != batch) {
            return Err(Error::Checkpoint(
                "tokens were shuffled within batches of another size; give the same --batch".into(),
            ));
        }
        self.book = saved.book;
        let n_nodes = self.book.labels.len();
        let labels = std::mem::replace(&mut self.book.labels, vec![Vec::new(); n_nodes]);
        self.behind = (self.book.mark.n_tokens > 0).then_some((self.book.mark, labels));
        Ok(())
    }

    fn read(&mut self, state: &[u8]) -> Result<Saved> {
        let damaged = |_| Error::Checkpoint("it is damaged, or of another command".into());
        let saved: Saved = postcard::from_bytes(state).map_err(damaged)?;
        if saved.shuffled.is_some() != self.is_shuffled || saved.book.labels.len() != self.book.labels.len() {
            return Err(Error::Checkpoint("it belongs to another model or --order; repeat those that made it".into()));
        }
        self.follower.go_on_from(&saved.follower)?;
        Ok(saved)
    }
}

#[derive(Serialize)]
struct SavedRef<'s> {
    shuffled: Option<u64>,
    book: &'s Book,
    follower: &'s [u8],
}

impl Mark {
    fn add(&mut self, token: &[u32]) {
        let mut mix = Mixer(self.digest);
        token.iter().for_each(|&value| mix.word(u64::from(value)));
        *self = Mark { n_tokens: self.n_tokens + 1, digest: mix.0 };
    }
}

impl Book {
    fn add(&mut self, token: &[u32]) {
        match self.cells.get_mut(token) {
            Some(n) => {
                *n += 1;
                self.factorials.multiply(Double::from(*n));
            }
            None => drop(self.cells.insert(token.into(), 1)),
        }
    }
}

/// A map in the order of its keys: the same state has the same bytes.
mod sorted {
    use hashbrown::HashMap;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    type Cells = HashMap<Box<[u32]>, u64>;

    pub fn serialize<S: Serializer>(cells: &Cells, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list: Vec<(&Box<[u32]>, &u64)> = cells.iter().collect();
        list.sort_unstable();
        list.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cells, D::Error> {
        Ok(Vec::<(Box<[u32]>, u64)>::deserialize(deserializer)?.into_iter().collect())
    }
}
