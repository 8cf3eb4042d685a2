//! From arguments to a bound model with its prior settings.

use crate::args::{AValues, DataArgs, FileArgs, PriorArgs, ReadingArgs, TiedArg};
use crate::grid::Point;
use crate::output::{Failure, Output};
use crate::progress::watched;
use polyurn::Warning;
use polyurn::counts::Dataset;
use polyurn::engine::anneal::Truth;
use polyurn::graph::{BindOptions, Binding, ModelSource, SeenNode, Size, bind, bind_owned};
use polyurn::io::{Origin, ReadOptions, find_cuts_watched, read_model, read_prior_file, read_watched};
use polyurn::prior::{PriorSettings, TiedPrior};
use std::path::Path;

/// A model as given, with the prior of its file (if it was one) under the flags.
#[derive(Debug)]
pub struct GivenModel {
    /// The model.
    pub source: ModelSource,
    /// Prior settings, but for what varies along a curve.
    pub settings: PriorSettings,
    /// The points of a curve, when one is wanted.
    pub curve: Option<Vec<Point>>,
    /// False for `--prior none`: then the settings are defaults that nobody asked for.
    pub has_prior: bool,
}

/// Reads the model and puts the flags over its prior.
pub fn load_model(model: &str, prior: &PriorArgs) -> Result<GivenModel, Failure> {
    let (source, mut settings) = read_model(model)?;
    let has_prior = prior.prior.as_deref() != Some("none");
    if !has_prior {
        check_no_prior(prior)?;
    } else if let Some(path) = &prior.prior {
        settings.spec = read_prior_file(Path::new(path))?;
    }
    let curve = Point::all(prior)?;
    if let Some([a]) = prior.a.as_ref().map(|values| &values.0[..]) {
        settings.a = Some(*a);
    }
    settings.shape = prior.shape.or(settings.shape);
    settings.rate = prior.b.or(settings.rate);
    settings.tied = match prior.tied_prior {
        Some(TiedArg::Once) => TiedPrior::Once,
        Some(TiedArg::Sum) | None => TiedPrior::Sum,
    };
    let single = |(node, values): &(String, AValues)| match values.0[..] {
        [value] => Some((node.clone(), value)),
        _ => None,
    };
    settings.pseudo_counts = prior.pseudo_count.iter().filter_map(single).collect();
    Ok(GivenModel { source, settings, curve, has_prior })
}

/// Refuses flags of a prior beside `--prior none`.
fn check_no_prior(prior: &PriorArgs) -> Result<(), Failure> {
    let flags = [
        ("--a", prior.a.is_some()),
        ("--shape", prior.shape.is_some()),
        ("--b", prior.b.is_some()),
        ("--tied-prior", prior.tied_prior.is_some()),
        ("--pseudo-count", !prior.pseudo_count.is_empty()),
    ];
    match flags.iter().find(|flag| flag.1) {
        Some((flag, _)) => Err(Failure::Usage(format!("{flag}: it belongs to a prior, and --prior none has none"))),
        None => Ok(()),
    }
}

impl GivenModel {
    /// Refuses `--prior none`, for commands that need one.
    pub fn with_prior(self) -> Result<Self, Failure> {
        if self.has_prior {
            return Ok(self);
        }
        let message =
            "--prior none: this needs a prior; without one there is only maximum likelihood (fit --method em)";
        Err(Failure::Usage(message.into()))
    }

    /// The settings, for commands that take no curve.
    pub fn single(self) -> Result<(ModelSource, PriorSettings), Failure> {
        match self.curve {
            Some(points) => Err(Failure::Usage(format!(
                "{}: give one value here; a list makes a curve, which score draws without --heldout",
                if points[0].a.is_some() { "--a" } else { "--pseudo-count" }
            ))),
            None => Ok((self.source, self.settings)),
        }
    }
}

/// How to read a data file, with the cuts of columns found in a first pass. The result tells them.
pub fn reading(path: &Path, file: &FileArgs, fractions: bool, output: &Output) -> Result<ReadOptions, Failure> {
    let mut options = file.uncut(fractions);
    if !file.bin.is_empty() {
        let mut control = watched(output);
        let mut watch = |share| control.tick("finding cuts", share);
        let (cuts, warnings) = find_cuts_watched(path, &options, &file.bin, &mut watch)?;
        output.warn(&warnings);
        output.keep_cuts(&cuts);
        options.cuts = cuts;
    }
    Ok(options)
}

/// Reads a data file of whole counts, or of fractions too.
pub fn load_data(path: &Path, file: &FileArgs, fractions: bool, output: &Output) -> Result<(Dataset, Origin), Failure> {
    let options = reading(path, file, fractions, output)?;
    let mut control = watched(output);
    Ok(read_watched(path, &options, &mut |share| control.tick("reading", share))?)
}

/// Reads data of whole counts, or of fractions too, and binds the model to them.
pub fn load_bound(
    source: &ModelSource,
    path: &Path,
    reading: &ReadingArgs,
    fractions: bool,
    output: &Output,
) -> Result<Binding, Failure> {
    let (dataset, _) = load_data(path, &reading.file, fractions, output)?;
    Ok(bind_owned(source, dataset, BindOptions { columns: reading.columns.as_deref(), ..Default::default() })?)
}

/// Reads data that show every node, as they were simulated, and binds the model to them without these columns; and what they show.
pub fn load_simulated(
    source: &ModelSource,
    data: &DataArgs,
    hide: &[String],
    output: &Output,
) -> Result<(Binding, Truth), Failure> {
    let (dataset, _) = load_data(&data.data, &data.reading.file, false, output)?;
    let given = data.reading.columns.as_deref();
    let whole = bind(source, &dataset, BindOptions { columns: given, ..Default::default() })?;
    let is_seen = whole.counts.seen_anywhere();
    let mut open = whole.model.nodes().iter().zip(is_seen).filter(|(_, is_seen)| !is_seen);
    if let Some((node, _)) = open.next() {
        let message = format!(
            "--hide: the data have no column `{}`; give all hidden values, as `simulate --full` writes them",
            node.name
        );
        return Err(Failure::Usage(message));
    }
    let named = || dataset.columns.iter().filter_map(|column| column.name.clone()).collect();
    let mut columns: Vec<String> = given.map_or_else(named, <[String]>::to_vec);
    for name in hide {
        let ix = columns.iter().position(|column| column == name).filter(|_| whole.model.find(name).is_some());
        let ix =
            ix.ok_or_else(|| Failure::Usage(format!("--hide {name}: give the name of a column that the model has")))?;
        columns.remove(ix);
    }
    // A node that the model gives no size has that of its column.
    let size_of = |name: &String| whole.model.find(name).map(|node| (name.clone(), whole.model.node(node).size));
    let sizes: Vec<(String, u32)> = hide.iter().filter_map(size_of).collect();
    let options = BindOptions { columns: Some(&columns), sizes: &sizes, ..Default::default() };
    let mut binding = bind_owned(source, dataset, options)?;
    // That they are left out is what was asked for.
    let is_asked = |warning: &Warning| matches!(warning, Warning::ColumnsLeftOut { columns } if columns.iter().all(|name| hide.contains(name)));
    binding.warnings.retain(|warning| !is_asked(warning));
    Ok((binding, Truth::of(&whole.counts)?))
}

/// `doc[50],word[200]` or `doc,word`.
pub fn parse_seen(text: &str) -> Result<Vec<SeenNode>, Failure> {
    let wrong =
        |why: String| Failure::Usage(format!("--seen {text}: {why}; write names with sizes, doc[50],word[200]"));
    let ModelSource::Graph(spec) = ModelSource::parse(text).map_err(|error| wrong(error.to_string()))? else {
        return Err(wrong("expected names".into()));
    };
    if !spec.edges.is_empty() || !spec.tied.is_empty() {
        return Err(wrong("expected names, not arrows or ties".into()));
    }
    spec.nodes
        .into_iter()
        .map(|node| match node.size {
            Size::Fixed(size) => Ok((node.name, Some(size))),
            Size::FromData => Ok((node.name, None)),
            Size::Choices(_) => Err(wrong("expected one size each".into())),
        })
        .collect()
}
