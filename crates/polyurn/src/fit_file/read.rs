//! Reading fit files: the seal first, then the format and its version, then everything against everything else.

use super::header::{DataEntry, Header, IntensityEntry, Kind, LabelsEntry, NodeEntry};
use super::tables::{Arrays, table_of};
use super::{AllocatedTokens, FORMAT, FORMAT_VERSION, FitData, FitFile, Intensity, StoredDraw, npy, prior, seal};
use crate::counts::{Labels, MISSING};
use crate::engine::TableMeans;
use crate::error::{Error, Result};
use crate::graph::{Model, ModelSpec, NodeSpec, Size, TableIndex};
use std::collections::BTreeMap;
use std::io::{BufReader, Cursor, Read, Seek};
use std::path::Path;
use zip::ZipArchive;

impl FitFile {
    /// Reads a fit file.
    ///
    /// # Errors
    /// When the file cannot be read, is none, is damaged, or was written by a newer version.
    pub fn read(path: &Path) -> Result<Self> {
        let unreadable = |source| Error::Io { path: path.to_owned(), source };
        if path.is_dir() {
            return Err(Error::data(
                path.display().to_string(),
                "is a folder; give a file that `polyurn fit -o` wrote",
            ));
        }
        let file = std::fs::File::open(path).map_err(unreadable)?;
        read_from(BufReader::new(file), &path.display().to_string())
    }

    /// Reads a fit file from memory; `name` is what messages call it.
    ///
    /// # Errors
    /// As for [`FitFile::read`].
    pub fn from_bytes(bytes: &[u8], name: &str) -> Result<Self> {
        read_from(Cursor::new(bytes), name)
    }
}

fn read_from(mut input: impl Read + Seek, name: &str) -> Result<FitFile> {
    seal::check(&mut input, name)?;
    let wrong = |what: String| Error::data(name, format!("is sealed, but {what}; fit anew"));
    let zip = ZipArchive::new(input).map_err(|error| wrong(format!("is no zip archive ({error})")))?;
    let mut archive = Archive { zip };
    let text = archive.bytes("fit.json").map_err(wrong)?;
    let kind: Kind = serde_json::from_slice(&text).map_err(|error| wrong(format!("fit.json: {error}")))?;
    if kind.format != FORMAT {
        return Err(wrong(format!("its format is {:?}", kind.format)));
    }
    if kind.format_version > FORMAT_VERSION {
        let message = format!(
            "has version {} of the format, and this polyurn reads up to {FORMAT_VERSION}; take polyurn {} or newer",
            kind.format_version, kind.polyurn_version
        );
        return Err(Error::data(name, message));
    }
    let header: Header = serde_json::from_slice(&text).map_err(|error| wrong(format!("fit.json: {error}")))?;
    archive.fit(header).map_err(wrong)
}

/// The entries of the archive.
struct Archive<R: Read + Seek> {
    zip: ZipArchive<R>,
}

impl<R: Read + Seek> Archive<R> {
    /// All bytes of an entry. A size that the archive claims is not believed: memory follows what is there.
    fn bytes(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let mut entry = self.zip.by_name(name).map_err(|error| format!("{name}: {error}"))?;
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(|error| format!("{name}: {error}"))?;
        Ok(bytes)
    }

    fn array<T: npy::Item>(&mut self, name: &str) -> Result<(Vec<usize>, Vec<T>), String> {
        npy::decode(&self.bytes(name)?).map_err(|what| format!("{name} {what}"))
    }

    fn fit(&mut self, header: Header) -> Result<FitFile, String> {
        let model = model_of(&header)?;
        let labels: Vec<LabelsEntry> =
            serde_json::from_slice(&self.bytes("labels.json")?).map_err(|error| format!("labels.json: {error}"))?;
        let labels = labels_of(labels, &model)?;
        let tables = self.tables("tables", &model)?;
        let best = if header.has_best { Some(self.draw("best", &model)?) } else { None };
        let draws =
            (0..header.n_draws).map(|ix| self.draw(&format!("draws/{ix}"), &model)).collect::<Result<_, _>>()?;
        let prior =
            prior::prior_of(header.prior, model.tables(), |table| self.array::<f64>(&format!("prior/{table}.npy")))?;
        let value_counts = self.value_counts(&header.nodes)?;
        let DataEntry { source, sha256, records, tokens } = header.data;
        Ok(FitFile {
            labels,
            is_seen: header.nodes.iter().map(|node| node.seen).collect(),
            method: header.method,
            label_averaged: header.label_averaged,
            intensity: intensity_of(&header.intensity)?,
            prior,
            tables,
            best,
            draws,
            value_counts,
            data: FitData { source, sha256, n_records: records, n_tokens: tokens },
            settings: header.settings,
            seed: header.seed,
            command_line: header.command_line,
            version: header.polyurn_version,
            result: header.result,
            model,
        })
    }

    fn tables(&mut self, folder: &str, model: &Model) -> Result<Vec<TableMeans>, String> {
        let of_table = |(ix, table)| {
            let prefix = format!("{folder}/{ix}");
            let mut arrays = TableArrays { archive: self, prefix: &prefix };
            table_of(TableIndex(ix as u32), table, &mut arrays).map_err(|what| format!("{prefix}: {what}"))
        };
        model.tables().iter().enumerate().map(of_table).collect()
    }

    fn draw(&mut self, folder: &str, model: &Model) -> Result<StoredDraw, String> {
        let tables = self.tables(folder, model)?;
        let (shape, records) = self.array::<u32>(&format!("{folder}/records.npy"))?;
        let (values_shape, values) = self.array::<u32>(&format!("{folder}/values.npy"))?;
        let (_, counts) = self.array::<u64>(&format!("{folder}/counts.npy"))?;
        if shape != [counts.len(), model.n_nodes()] || values_shape != shape {
            return Err(format!("records.npy, values.npy and counts.npy in {folder} do not fit each other"));
        }
        let sizes = model.sizes();
        let are_values = |row: &[u32]| row.iter().zip(&sizes).all(|(&value, &size)| value < size || value == MISSING);
        if !records.chunks_exact(sizes.len()).chain(values.chunks_exact(sizes.len())).all(are_values) {
            return Err(format!("records.npy or values.npy in {folder} holds what are no values"));
        }
        let rows = records.chunks_exact(sizes.len()).zip(values.chunks_exact(sizes.len())).zip(counts);
        let allocation = rows.map(|((record, values), n_tokens)| AllocatedTokens {
            record: record.to_vec(),
            values: values.to_vec(),
            n_tokens,
        });
        Ok(StoredDraw { tables, allocation: allocation.collect() })
    }

    fn value_counts(&mut self, nodes: &[NodeEntry]) -> Result<Vec<Option<Vec<f64>>>, String> {
        let mut all = Vec::with_capacity(nodes.len());
        for (ix, node) in nodes.iter().enumerate() {
            if !node.has_value_counts {
                all.push(None);
                continue;
            }
            let name = format!("values/{ix}.npy");
            let (shape, counts) = self.array::<f64>(&name)?;
            if shape != [node.size as usize] || !counts.iter().all(|&n| n >= 0.0 && n.is_finite()) {
                return Err(format!("{name} does not hold a count for each value"));
            }
            all.push(Some(counts));
        }
        Ok(all)
    }
}

/// The arrays of one table.
struct TableArrays<'a, R: Read + Seek> {
    archive: &'a mut Archive<R>,
    prefix: &'a str,
}

impl<R: Read + Seek> Arrays for TableArrays<'_, R> {
    fn real(&mut self, name: &str) -> Result<(Vec<usize>, Vec<f64>), String> {
        self.archive.array(&format!("{}.{name}.npy", self.prefix))
    }

    fn whole(&mut self, name: &str) -> Result<(Vec<usize>, Vec<u32>), String> {
        self.archive.array(&format!("{}.{name}.npy", self.prefix))
    }

    fn long(&mut self, name: &str) -> Result<(Vec<usize>, Vec<u64>), String> {
        self.archive.array(&format!("{}.{name}.npy", self.prefix))
    }
}

fn model_of(header: &Header) -> Result<Model, String> {
    let mut position: BTreeMap<&str, usize> = BTreeMap::new();
    for (ix, node) in header.nodes.iter().enumerate() {
        if position.insert(&node.name, ix).is_some() {
            return Err(format!("node {:?} is listed twice", node.name));
        }
    }
    let find = |name: &String| position.get(name.as_str()).copied().ok_or_else(|| format!("there is no node {name:?}"));
    let mut edges = Vec::new();
    for (child, node) in header.nodes.iter().enumerate() {
        for parent in &node.parents {
            edges.push((find(parent)?, child));
        }
    }
    let tied: Vec<Vec<usize>> =
        header.tied.iter().map(|group| group.iter().map(find).collect()).collect::<Result<_, _>>()?;
    if tied.iter().any(|group| group.len() < 2) {
        return Err("a tie has fewer than two nodes".into());
    }
    let nodes: Vec<NodeSpec> = header
        .nodes
        .iter()
        .map(|node| NodeSpec { name: node.name.clone(), size: Size::Fixed(node.size), span: None })
        .collect();
    let sizes: Vec<u32> = header.nodes.iter().map(|node| node.size).collect();
    let spec = ModelSpec { nodes, edges, tied, added: Vec::new(), text: None };
    let model = Model::build(&spec, &sizes).map_err(|error| error.to_string())?;
    let fits = model.nodes().iter().zip(&header.nodes).all(|(node, entry)| node.table.0 == entry.table);
    if !fits || header.tables.len() != model.tables().len() {
        return Err("tables and nodes do not fit each other".into());
    }
    Ok(model)
}

fn labels_of(entries: Vec<LabelsEntry>, model: &Model) -> Result<Vec<Labels>, String> {
    if entries.len() != model.n_nodes() {
        return Err("labels.json does not have one entry for each node".into());
    }
    let of_node = |(entry, node): (LabelsEntry, &crate::graph::Node)| match entry {
        LabelsEntry::Named(names) if names.len() != node.size as usize => {
            Err(format!("node {:?} does not have one label for each value", node.name))
        }
        LabelsEntry::Named(names) => Ok(Labels::Named(names)),
        LabelsEntry::Indexed { first } => Ok(Labels::Indexed { size: node.size, first }),
    };
    entries.into_iter().zip(model.nodes()).map(of_node).collect()
}

fn intensity_of(entry: &IntensityEntry) -> Result<Intensity, String> {
    let is_fine = |value: f64| value >= 0.0 && value.is_finite();
    match (entry.shape, entry.rate) {
        (Some(shape), Some(rate)) if is_fine(shape) && is_fine(rate) && rate > 0.0 => {
            Ok(Intensity::Gamma { shape, rate })
        }
        (None, None) if is_fine(entry.mean) => Ok(Intensity::Point(entry.mean)),
        _ => Err("the intensity is no number".into()),
    }
}
