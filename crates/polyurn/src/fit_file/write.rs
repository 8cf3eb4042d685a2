//! Writing fit files.

use super::header::{DataEntry, Header, IntensityEntry, LabelsEntry, NodeEntry, PriorEntry, TableEntry};
use super::{FORMAT, FORMAT_VERSION, FitFile, Intensity, StoredDraw, npy, prior, seal, tables};
use crate::counts::Labels;
use crate::engine::TableMeans;
use crate::error::{Error, Result};
use crate::graph::NodeIndex;
use serde::Serialize;
use serde_json::Value;
use std::io::{Cursor, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Tables are mostly noise, but for cells that nothing was seen in; a light effort finds those.
const EFFORT: i64 = 3;

impl FitFile {
    /// The bytes of the file. The same fit gives the same bytes.
    ///
    /// # Errors
    /// When a number of the fit is none, or when the archive would be too large.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.check_numbers()?;
        let mut archive = Archive::new();
        let pseudo: Vec<_> =
            self.prior.tables.iter().zip(self.model.tables()).map(|(own, table)| prior::entry_of(own, table)).collect();
        let (pseudo, dense): (Vec<_>, Vec<_>) = pseudo.into_iter().unzip();
        archive.json("fit.json", &self.header(pseudo))?;
        let labels: Vec<LabelsEntry> = self.labels.iter().map(labels_entry).collect();
        archive.json("labels.json", &labels)?;
        archive.tables("tables", &self.tables, self)?;
        if let Some(best) = &self.best {
            archive.draw("best", best, self)?;
        }
        for (ix, draw) in self.draws.iter().enumerate() {
            archive.draw(&format!("draws/{ix}"), draw, self)?;
        }
        for (ix, cells) in dense.iter().enumerate() {
            if let Some(cells) = cells {
                archive.file(&format!("prior/{ix}.npy"), cells)?;
            }
        }
        for (node, counts) in self.value_counts.iter().enumerate() {
            if let Some(counts) = counts {
                archive.file(&format!("values/{node}.npy"), &npy::encode(&[counts.len()], counts.iter().copied()))?;
            }
        }
        archive.finish()
    }

    /// What `fit.json` says.
    pub fn description(&self) -> Value {
        let pseudo = self.prior.tables.iter().zip(self.model.tables());
        let pseudo = pseudo.map(|(own, table)| prior::entry_of(own, table).0).collect();
        serde_json::to_value(self.header(pseudo)).unwrap_or_default()
    }

    /// Refuses numbers that JSON and the reader do not take.
    fn check_numbers(&self) -> Result<()> {
        let tables = self.tables.iter().chain(self.best.iter().chain(&self.draws).flat_map(|draw| &draw.tables));
        let mut cells = tables.flat_map(|table| &table.rows).flat_map(|row| &row.cells);
        if !self.intensity.mean().is_finite() || cells.any(|cell| !(cell.mean.is_finite() && cell.sd.is_finite())) {
            let message = "the fit holds numbers that are not finite, and cannot be written; is the data possible?";
            return Err(Error::Setting(message.into()));
        }
        Ok(())
    }

    fn header(&self, pseudo: Vec<super::header::PseudoEntry>) -> Header {
        let model = &self.model;
        let name = |node: &NodeIndex| model.node(*node).name.clone();
        let names = |nodes: &[NodeIndex]| nodes.iter().map(name).collect::<Vec<String>>();
        let nodes = model.nodes().iter().enumerate().map(|(ix, node)| NodeEntry {
            name: node.name.clone(),
            size: node.size,
            parents: names(&node.parents),
            seen: self.is_seen[ix],
            table: node.table.0,
            has_value_counts: self.value_counts[ix].is_some(),
        });
        let tied = model.tables().iter().filter(|table| table.members.len() > 1).map(|table| names(&table.members));
        let tables = model.tables().iter().map(|table| TableEntry {
            nodes: names(&table.members),
            given: names(&model.node(table.members[0]).parents),
        });
        let (shape, rate) = match self.intensity {
            Intensity::Point(_) => (None, None),
            Intensity::Gamma { shape, rate } => (Some(shape), Some(rate)),
        };
        let prior = &self.prior;
        Header {
            format: FORMAT.into(),
            format_version: FORMAT_VERSION,
            polyurn_version: self.version.clone(),
            model: model.to_text(),
            nodes: nodes.collect(),
            tied: tied.collect(),
            method: self.method.clone(),
            label_averaged: self.label_averaged.clone(),
            intensity: IntensityEntry { mean: self.intensity.mean(), shape, rate },
            prior: PriorEntry {
                is_given: prior.is_given,
                a: prior.a,
                shape: prior.shape,
                rate: prior.rate,
                tables: pseudo,
            },
            tables: tables.collect(),
            has_best: self.best.is_some(),
            n_draws: self.draws.len() as u64,
            data: DataEntry {
                source: self.data.source.clone(),
                sha256: self.data.sha256.clone(),
                records: self.data.n_records,
                tokens: self.data.n_tokens,
            },
            settings: self.settings.clone(),
            seed: self.seed,
            command_line: self.command_line.clone(),
            result: self.result.clone(),
        }
    }
}

fn labels_entry(labels: &Labels) -> LabelsEntry {
    match labels {
        Labels::Named(names) => LabelsEntry::Named(names.clone()),
        Labels::Indexed { first, .. } => LabelsEntry::Indexed { first: *first },
    }
}

/// An archive of arrays alone, as `numpy.load` opens it.
///
/// # Errors
/// When it would be too large.
pub fn npz<'n>(arrays: impl IntoIterator<Item = (&'n str, Vec<u8>)>) -> Result<Vec<u8>> {
    let mut archive = Archive::new();
    for (name, bytes) in arrays {
        archive.file(&format!("{name}.npy"), &bytes)?;
    }
    archive.zip.finish().map(Cursor::into_inner).map_err(|error| unwritable(&error))
}

/// A zip archive in memory.
struct Archive {
    zip: ZipWriter<Cursor<Vec<u8>>>,
}

impl Archive {
    fn new() -> Self {
        Archive { zip: ZipWriter::new(Cursor::new(Vec::new())) }
    }

    fn file(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(EFFORT))
            .large_file(bytes.len() >= u32::MAX as usize);
        self.zip.start_file(name, options).map_err(|error| unwritable(&error))?;
        self.zip.write_all(bytes).map_err(|error| unwritable(&error))
    }

    fn json(&mut self, name: &str, value: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(value).map_err(|error| unwritable(&error))?;
        text.push(b'\n');
        self.file(name, &text)
    }

    fn tables(&mut self, folder: &str, tables: &[TableMeans], fit: &FitFile) -> Result<()> {
        for table in tables {
            for (part, bytes) in tables::arrays_of(table, &fit.model.tables()[table.table.ix()]) {
                self.file(&format!("{folder}/{}.{part}.npy", table.table.0), &bytes)?;
            }
        }
        Ok(())
    }

    /// Tables and tokens of a draw.
    fn draw(&mut self, folder: &str, draw: &StoredDraw, fit: &FitFile) -> Result<()> {
        let StoredDraw { tables, allocation } = draw;
        self.tables(folder, tables, fit)?;
        let shape = [allocation.len(), fit.model.n_nodes()];
        let records = allocation.iter().flat_map(|tokens| tokens.record.iter().copied());
        self.file(&format!("{folder}/records.npy"), &npy::encode(&shape, records))?;
        let values = allocation.iter().flat_map(|tokens| tokens.values.iter().copied());
        self.file(&format!("{folder}/values.npy"), &npy::encode(&shape, values))?;
        let counts = allocation.iter().map(|tokens| tokens.n_tokens);
        self.file(&format!("{folder}/counts.npy"), &npy::encode(&[allocation.len()], counts))
    }

    fn finish(mut self) -> Result<Vec<u8>> {
        self.zip.set_comment(seal::placeholder()).map_err(|error| unwritable(&error))?;
        let mut bytes = self.zip.finish().map_err(|error| unwritable(&error))?.into_inner();
        seal::seal(&mut bytes);
        Ok(bytes)
    }
}

fn unwritable(error: &dyn std::fmt::Display) -> Error {
    Error::Setting(format!("the fit cannot be put into a file: {error}"))
}
