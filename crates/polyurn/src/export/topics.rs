//! Topics in the shape that pyLDAvis takes: `pyLDAvis.prepare(**json.load(open("topics.json")))`.

use super::Export;
use crate::error::{Error, Result};
use crate::graph::NodeIndex;
use serde::Serialize;

/// The arguments of `pyLDAvis.prepare`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Topics {
    /// Probabilities of words, a row for each topic.
    pub topic_term_dists: Vec<Vec<f64>>,
    /// Probabilities of topics, a row for each document.
    pub doc_topic_dists: Vec<Vec<f64>>,
    /// Tokens of each document.
    pub doc_lengths: Vec<f64>,
    /// The words.
    pub vocab: Vec<String>,
    /// Tokens of each word.
    pub term_frequency: Vec<f64>,
}

impl Export<'_> {
    /// Topics of a model doc -> topic -> word, whatever its nodes are called. Documents and words without tokens are left
    /// out, since pyLDAvis divides by their counts.
    ///
    /// # Errors
    /// For a model of another shape, for a fit that did not keep counts of words and documents, and when tables are averages
    /// over namings of topics.
    pub fn topics(&self) -> Result<Topics> {
        let model = &self.fit.model;
        let [doc, topic, word] = self.chain().ok_or_else(|| {
            Error::Setting(
                "topics: the model is not of the form doc -> topic -> word, with topic hidden and the others seen"
                    .into(),
            )
        })?;
        if !self.fit.label_averaged.is_empty() {
            return Err(Error::Setting(
                "topics: tables are averages over all namings of topics; fit with vb or smc".into(),
            ));
        }
        let counts = |node: NodeIndex| {
            self.fit.value_counts[node.ix()].clone().ok_or_else(|| {
                Error::Setting("topics: this fit did not keep the counts of words and documents (svb does not)".into())
            })
        };
        let (doc_counts, word_counts) = (counts(doc)?, counts(word)?);
        let (n_topics, n_words) = (model.node(topic).size as usize, model.node(word).size as usize);
        let of_docs = self.cells(model.node(topic).table)?;
        let of_topics = self.cells(model.node(word).table)?;
        let has_tokens = |counts: &[f64], ix: usize| counts[ix] > 0.0;
        let docs: Vec<usize> = (0..doc_counts.len()).filter(|&ix| has_tokens(&doc_counts, ix)).collect();
        let words: Vec<usize> = (0..n_words).filter(|&ix| has_tokens(&word_counts, ix)).collect();
        let topic_rows = of_topics.chunks_exact(n_words);
        Ok(Topics {
            topic_term_dists: topic_rows.map(|row| normalised(words.iter().map(|&ix| row[ix]))).collect(),
            doc_topic_dists: docs
                .iter()
                .map(|&doc| normalised(of_docs[doc * n_topics..][..n_topics].iter().copied()))
                .collect(),
            doc_lengths: docs.iter().map(|&ix| doc_counts[ix]).collect(),
            vocab: words.iter().map(|&ix| self.labels(word).name(ix as u32).into_owned()).collect(),
            term_frequency: words.iter().map(|&ix| word_counts[ix]).collect(),
        })
    }

    /// Document, topic and word, if that is what the model is.
    fn chain(&self) -> Option<[NodeIndex; 3]> {
        let model = &self.fit.model;
        if model.n_nodes() != 3 || model.has_ties() {
            return None;
        }
        let topic = model.node_indices().find(|node| !self.fit.is_seen[node.ix()])?;
        let ([doc], [word]) = (&model.node(topic).parents[..], &model.node(topic).children[..]) else { return None };
        let is_chain = model.node(*doc).parents.is_empty() && model.node(*word).parents == [topic];
        (is_chain && self.fit.is_seen[doc.ix()] && self.fit.is_seen[word.ix()]).then_some([*doc, topic, *word])
    }
}

fn normalised(cells: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut cells: Vec<f64> = cells.collect();
    let sum: f64 = cells.iter().sum();
    if sum > 0.0 {
        cells.iter_mut().for_each(|cell| *cell /= sum);
    }
    cells
}
