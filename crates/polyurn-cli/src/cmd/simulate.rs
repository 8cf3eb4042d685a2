//! `polyurn simulate`: data drawn from a model, or tokens drawn from a table.

use crate::args::SimulateArgs;
use crate::load::{load_data, load_model, parse_seen};
use crate::output::{Failure, Output};
use crate::text::plural;
use polyurn::control::Control;
use polyurn::counts::{Labels, MISSING, RowCount};
use polyurn::graph::bind_without_data;
use polyurn::io::{Format, write_csv};
use polyurn::plan::check_reachable_rows;
use polyurn::prior::Prior;
use polyurn::simulate::{Tokens, resample, simulate};
use polyurn::{Error, Warning};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Draws data.
pub fn run(args: &SimulateArgs) -> Result<(), Failure> {
    check_formats(args)?;
    let inputs: Vec<&Path> = args.from.iter().map(|path| path.as_path()).collect();
    let output = Output::open(&args.output, &inputs)?;
    let drawn = match (&args.model, &args.from) {
        (Some(model), _) => from_model(args, model, &output)?,
        (None, Some(path)) => from_table(args, path, &output)?,
        (None, None) => return Err(Failure::Usage("give --model or --from".into())),
    };
    output.note(&format!(
        "{} in {}, seed {}",
        plural(drawn.n_tokens, "token"),
        plural(drawn.rows.len() as u64, "record"),
        output.seed().0
    ));
    drawn.write(&output)
}

/// Refuses formats that would be ignored: what is written is CSV, and a name that says otherwise would be read otherwise.
fn check_formats(args: &SimulateArgs) -> Result<(), Failure> {
    if let Some(flag) = args.file.given().filter(|_| args.model.is_some()) {
        return Err(Failure::Usage(format!(
            "{flag}: it says how to read the file of --from; data from a model are written as CSV"
        )));
    }
    let Some(path) = args.output.output.as_ref().filter(|_| !args.output.json) else { return Ok(()) };
    let is_compressed =
        path.extension().is_some_and(|end| end.eq_ignore_ascii_case("gz") || end.eq_ignore_ascii_case("zst"));
    if is_compressed || Format::from_path(path).is_some_and(|format| format != Format::Csv) {
        return Err(Failure::Usage(format!(
            "{}: data are written as plain CSV; give a name that ends in .csv",
            path.display()
        )));
    }
    Ok(())
}

/// Rows ready to be written.
struct Drawn {
    names: Vec<String>,
    rows: Vec<(Vec<Option<String>>, u64)>,
    n_tokens: u64,
}

fn from_model(args: &SimulateArgs, model: &str, output: &Output) -> Result<Drawn, Failure> {
    let (source, settings) = load_model(model, &args.prior)?.with_prior()?.single()?;
    let seen = args.seen.as_deref().map(parse_seen).transpose()?;
    let (model, is_seen, mut warnings) = bind_without_data(&source, seen.as_deref())?;
    let prior = Prior::build(&model, &settings)?;
    check_reachable_rows(&model, &prior)?;
    if !prior.is_consistent() {
        warnings.push(Warning::InconsistentPrior);
    }
    output.warn(&warnings);
    if let Some(node) = model.nodes().iter().find(|node| node.name == "count") {
        return Err(Failure::Usage(format!(
            "node `{}` has the name of the count column of CSV files; give it another name",
            node.name
        )));
    }
    let tokens = match args.tokens {
        Some(n_tokens) => Tokens::Given(n_tokens),
        None => Tokens::Drawn(prior.total(Some(0)).map_err(|_| {
            Failure::Usage("give --tokens T, or --b so that the number of tokens can be drawn from the prior".into())
        })?),
    };
    let mut control = Control::default().with_cancel(crate::signals::cancel());
    let tensor = simulate(&model, &prior, tokens, output.seed(), &mut control)?;
    let shown: Vec<usize> =
        (0..model.n_nodes()).filter(|&node| args.full || args.seen.is_none() || is_seen[node]).collect();
    let n_tokens = tensor.iter().map(|(_, count)| count).sum();
    let mut cells: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
    for (values, count) in tensor {
        *cells.entry(shown.iter().map(|&node| values[node]).collect()).or_insert(0) += count;
    }
    Ok(Drawn {
        names: shown.iter().map(|&node| model.nodes()[node].name.clone()).collect(),
        rows: cells
            .into_iter()
            .map(|(values, count)| (values.iter().map(|value| Some(value.to_string())).collect(), count))
            .collect(),
        n_tokens,
    })
}

fn from_table(args: &SimulateArgs, path: &Path, output: &Output) -> Result<Drawn, Failure> {
    let prior = &args.prior;
    let has_prior = prior.a.is_some()
        || prior.shape.is_some()
        || prior.b.is_some()
        || prior.prior.is_some()
        || prior.tied_prior.is_some()
        || !prior.pseudo_count.is_empty();
    if has_prior {
        return Err(Failure::Usage(
            "--from draws from a table of counts, which takes no prior; drop the prior's flags".into(),
        ));
    }
    let (dataset, _) = load_data(path, &args.file, false, output)?;
    if let Some(line) = dataset.unknown_lines.first() {
        return Err(Error::data_at(&dataset.source, *line, None, "the count is `?`; give a number to draw from").into());
    }
    output.warn(&dataset.warnings);
    if !output.json() {
        output.note_formulas(dataset.columns.iter().map(|column| &column.labels));
    }
    let names: Vec<String> = dataset
        .columns
        .iter()
        .enumerate()
        .map(|(ix, column)| column.name.clone().unwrap_or_else(|| format!("i{}", ix + 1)))
        .collect();
    let n_tokens = args.tokens.unwrap_or(0);
    let held: Vec<u64> = dataset.counts.iter().collect();
    let counts = resample(&held, n_tokens, output.seed())?;
    let label = |labels: &Labels, code: u32| (code != MISSING).then(|| labels.name(code).into_owned());
    let rows = counts
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(row, &count)| {
            let cells = dataset.columns.iter().zip(&dataset.values);
            (cells.map(|(column, values)| label(&column.labels, values.at(row))).collect(), count)
        })
        .collect();
    Ok(Drawn { names, rows, n_tokens })
}

impl Drawn {
    fn write(&self, output: &Output) -> Result<(), Failure> {
        if output.json() {
            return output.result(|| self.json(output), String::new);
        }
        output.write(|out| {
            let rows = self.rows.iter().map(|(cells, count)| (cells, RowCount::Tokens(*count)));
            let rows = rows.map(|(cells, count)| (cells.iter().map(Option::as_deref), count));
            write_csv(out, Path::new("standard output"), &self.names, rows).map_err(|error| match error {
                Error::Io { source, .. } => source,
                other => std::io::Error::other(other.to_string()),
            })
        })
    }

    fn json(&self, output: &Output) -> Value {
        let rows: Vec<Value> =
            self.rows.iter().map(|(cells, count)| json!({ "values": cells, "count": count })).collect();
        json!({
            "columns": self.names,
            "rows": rows,
            "tokens": self.n_tokens,
            "records": self.rows.len(),
            "seed": output.seed(),
            "version": polyurn::VERSION,
        })
    }
}
