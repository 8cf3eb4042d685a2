//! Texts of the library name flags of the command line; here they get the names and the values that Python has.

use pyo3::prelude::*;
use serde_json::Value;

/// What a flag takes, for its value to be written as Python has it.
#[derive(Debug, Clone, Copy)]
enum Takes {
    /// Nothing that texts repeat.
    Nothing,
    /// One of some words, or several of them in a sentence: `--method vb or em`.
    Words(&'static [&'static str]),
    /// Any word.
    Word,
    /// A number, maybe with a unit, or one letter that stands for it.
    Number,
    /// Numbers between commas.
    Numbers,
    /// Names between commas; texts have them before a colon.
    Names,
    /// `LO..HI`.
    Range,
    /// `NODE=V`.
    Pair,
}

const METHODS: &[&str] =
    &["auto", "exact", "naive", "sis", "smc", "anneal", "vb", "em", "dual-em", "icm", "gibbs", "svb"];

/// Flags, and what Python calls them.
const FLAGS: &[(&str, &str, Takes)] = &[
    ("a", "a", Takes::Number),
    ("b", "b", Takes::Number),
    ("batch", "batch", Takes::Number),
    ("bin", "bins", Takes::Nothing),
    ("bracket", "bracket", Takes::Nothing),
    ("chain-sweeps", "chain_sweeps", Takes::Number),
    ("chains", "chains", Takes::Number),
    ("checkpoint", "checkpoint", Takes::Nothing),
    ("checkpoint-every", "checkpoint_every", Takes::Number),
    ("columns", "columns", Takes::Names),
    ("cooling", "cooling", Takes::Number),
    ("data", "X", Takes::Nothing),
    ("draw", "draw", Takes::Word),
    ("draws", "draws", Takes::Number),
    ("drop-unknown", "handle_unknown=\"missing\"", Takes::Nothing),
    ("ess", "ess", Takes::Number),
    ("format", "format", Takes::Word),
    ("from", "table", Takes::Nothing),
    ("full", "full", Takes::Nothing),
    ("given", "given", Takes::Names),
    ("heat", "heat", Takes::Number),
    ("heldout", "heldout", Takes::Nothing),
    ("impute", "impute", Takes::Nothing),
    ("init", "init", Takes::Nothing),
    ("json", "to_dict()", Takes::Nothing),
    ("kernel", "kernel", Takes::Words(&["auto", "scalar"])),
    ("labels", "labels", Takes::Nothing),
    ("local", "local", Takes::Names),
    ("marginal", "marginal", Takes::Names),
    ("max-iter", "max_iter", Takes::Number),
    ("max-memory", "max_memory", Takes::Number),
    ("max-unpacked", "max_unpacked", Takes::Number),
    ("maximise", "maximise", Takes::Names),
    ("method", "method", Takes::Words(METHODS)),
    ("mode", "mode", Takes::Words(&["softmax", "density"])),
    ("model", "model", Takes::Nothing),
    ("model-prior", "model_prior", Takes::Nothing),
    ("moves", "moves", Takes::Words(&["tokens", "conditional", "independent"])),
    ("order", "order", Takes::Word),
    ("particles", "particles", Takes::Number),
    ("path", "path", Takes::Words(&["reference", "prior"])),
    ("prior", "prior", Takes::Words(&["none"])),
    ("pseudo-count", "pseudo_count", Takes::Pair),
    ("rejuvenate", "rejuvenate", Takes::Number),
    ("resample", "resample", Takes::Words(&["systematic", "stratified", "residual", "multinomial"])),
    ("restarts", "n_init", Takes::Number),
    ("runs", "runs", Takes::Number),
    ("seed", "random_state", Takes::Number),
    ("seen", "seen", Takes::Names),
    ("sensitivity", "sensitivity", Takes::Numbers),
    ("shape", "shape", Takes::Number),
    ("split-merge", "split_merge", Takes::Number),
    ("state", "load", Takes::Nothing),
    ("stream", "polyurn.Stream", Takes::Nothing),
    ("sweeps", "sweeps", Takes::Number),
    ("thin", "thin", Takes::Number),
    ("threads", "n_jobs", Takes::Number),
    ("tied-prior", "tied_prior", Takes::Words(&["sum", "once"])),
    ("time-limit", "time_limit", Takes::Number),
    ("tokens", "tokens", Takes::Number),
    ("tol", "tol", Takes::Number),
    ("totals", "totals", Takes::Range),
    ("trials", "trials", Takes::Number),
    ("update", "update", Takes::Words(&["cycle", "together"])),
    ("vocab", "vocab", Takes::Nothing),
    ("warm-up", "warm_up", Takes::Number),
    ("window", "window", Takes::Number),
];

/// Keys of results whose values are sentences.
const SENTENCES: [&str; 5] = ["message", "verdict", "movement", "sensitivity_not_tried", "why"];

/// A text with Python's names for flags.
#[pyfunction]
pub fn in_python(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("--") {
        let (before, flag) = rest.split_at(at);
        out.push_str(before);
        let name_len = flag[2..].find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(flag.len() - 2);
        let name = flag[2..2 + name_len].trim_end_matches('-');
        let is_word = before.chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '-');
        let Some((_, python, takes)) = FLAGS.iter().find(|known| is_word && known.0 == name) else {
            out.push_str("--");
            rest = &flag[2..];
            continue;
        };
        rest = &flag[2 + name.len()..];
        out.push_str(python);
        if let Some((value, after)) = rest.strip_prefix([' ', '=']).and_then(|rest| takes.value(rest)) {
            out.push('=');
            out.push_str(&value);
            rest = after;
        }
    }
    out + rest
}

/// The same for all sentences of a result.
pub fn result_in_python(result: &mut Value) {
    match result {
        Value::Object(object) => object.iter_mut().for_each(|(key, value)| match value {
            Value::String(text) if SENTENCES.contains(&key.as_str()) => *text = in_python(text),
            value => result_in_python(value),
        }),
        Value::Array(values) => values.iter_mut().for_each(result_in_python),
        _ => {}
    }
}

impl Takes {
    /// The value at the start of a text as Python writes it, and what follows; none where no value follows.
    fn value(self, text: &str) -> Option<(String, &str)> {
        let end = text.find(|c: char| c.is_whitespace() || ",;:)`".contains(c)).unwrap_or(text.len());
        let token = text[..end].trim_end_matches('.');
        let after = &text[token.len()..];
        let is_number = |word: &str| word.parse::<f64>().is_ok();
        match self {
            Takes::Nothing => None,
            Takes::Words(known) => known.contains(&token).then(|| several(token, after, known)),
            Takes::Word if token.strip_prefix("by").is_some_and(str::is_empty) && after.starts_with(':') => {
                let name =
                    after[1..].find(|c: char| c.is_whitespace() || ",;:)`".contains(c)).map_or(after.len(), |n| n + 1);
                Some((format!("\"by{}\"", &after[..name]), &after[name..]))
            }
            Takes::Word => (!token.is_empty() && token != "out").then(|| (quoted(token), after)),
            Takes::Number => {
                let is_one = token.len() == 1 && token.starts_with(|c: char| c.is_ascii_uppercase());
                let number = token.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                let value = if is_number(token) || is_one { token.to_owned() } else { quoted(token) };
                (is_one || is_number(number)).then_some((value, after))
            }
            Takes::Numbers => {
                let end = text.find(|c: char| c != ',' && c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
                let list = text[..end].trim_end_matches(['.', ',']);
                let is_list = !list.is_empty() && list.split(',').all(is_number);
                is_list.then(|| (format!("[{}]", list.replace(',', ", ")), &text[list.len()..]))
            }
            Takes::Names if token == "none" => Some(("[]".into(), after)),
            Takes::Names => after.starts_with(':').then(|| {
                let names: Vec<String> = token.split(',').map(quoted).collect();
                (format!("[{}]", names.join(", ")), after)
            }),
            Takes::Range => token.split_once("..").map(|(low, high)| (format!("({low}, {high})"), after)),
            Takes::Pair => token.split_once('=').map(|(node, value)| (format!("{{{}: {value}}}", quoted(node)), after)),
        }
    }
}

/// A word and those that are listed after it: `vb, em or icm`.
fn several<'t>(first: &str, mut after: &'t str, known: &[&str]) -> (String, &'t str) {
    let mut all = quoted(first);
    'next: loop {
        for between in [", ", " or ", " and "] {
            let Some(rest) = after.strip_prefix(between) else { continue };
            let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(rest.len());
            if known.contains(&&rest[..end]) {
                all.push_str(between);
                all.push_str(&quoted(&rest[..end]));
                after = &rest[end..];
                continue 'next;
            }
        }
        return (all, after);
    }
}

fn quoted(word: &str) -> String {
    format!("\"{word}\"")
}
