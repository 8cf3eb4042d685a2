//! Exports of fits.

use crate::fit_support::{CASES, particles, vb};
use polyurn::export::Export;
use polyurn::predict::Draw;
use polyurn::prior::PriorSettings;
use std::io::Cursor;

#[test]
fn csv_lists_every_cell_once() {
    for (model, data) in CASES {
        let fit = vb(model, data, &PriorSettings::default());
        let text = Export::new(&fit, Draw::Means).unwrap().tables_csv();
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let n = reader.headers().unwrap().len();
        let rows: Vec<::csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        let cells = fit.tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.cells);
        let means: Vec<f64> = cells.map(|cell| cell.mean).collect();
        let found: Vec<f64> = rows.iter().map(|row| row[n - 2].parse().unwrap()).collect();
        assert_eq!(found, means, "{model}");
    }
}

#[test]
fn factors_multiply_to_the_expected_counts() {
    let (model, data) = CASES[0];
    let fit = particles(model, data);
    let export = Export::new(&fit, Draw::Best).unwrap();
    let factors = export.factors().unwrap();
    let core = factors.core.as_ref().unwrap();
    assert!((core.values.iter().sum::<f64>() - fit.intensity.mean()).abs() < 1e-9);
    let text = export.factors_csv().unwrap();
    assert_eq!(text.lines().next().unwrap(), "factor,k,i,j,s,weight");
    assert_eq!(text.lines().count(), 1 + 2 + 3 * 6);
}

#[test]
fn archives_hold_tables_factors_and_labels() {
    for (model, data) in CASES {
        let fit = vb(model, data, &PriorSettings::default());
        let bytes = Export::new(&fit, Draw::Means).unwrap().npz().unwrap();
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
        for node in fit.model.nodes() {
            for name in ["table", "axes.table", "labels"] {
                assert!(archive.by_name(&format!("{name}.{}.npy", node.name)).is_ok(), "{model} {name}");
            }
        }
    }
}

#[test]
fn networks_have_plain_and_different_words() {
    let data = "a b,\"x,y\"\n1 1,é\n1_1,e\n1-1,é\n";
    let fit = vb("\"a b\" -> \"x,y\"", data, &PriorSettings::default());
    let text = Export::new(&fit, Draw::Means).unwrap().bif().unwrap();
    assert!(text.contains("variable a_20b {"), "{text}");
    assert!(text.contains("type discrete [ 3 ] { 1_201, 1-1, 1_1 };"), "{text}");
    assert!(text.contains("type discrete [ 2 ] { e, _e9 };"), "{text}");
    assert!(text.contains("property name = \"a b\" ;"), "{text}");
    assert!(text.contains("probability ( x_2cy | a_20b ) {"), "{text}");
    assert!(text.is_ascii(), "{text}");
}

#[test]
fn topics_are_for_topic_models() {
    let fit = vb(CASES[1].0, CASES[1].1, &PriorSettings::default());
    let topics = Export::new(&fit, Draw::Means).unwrap().topics().unwrap();
    assert_eq!((topics.topic_term_dists.len(), topics.doc_topic_dists.len(), topics.vocab.len()), (3, 3, 4));
    assert_eq!(topics.doc_lengths, [4.0, 3.0, 4.0]);
    assert_eq!(topics.term_frequency.iter().sum::<f64>(), 11.0);
    for row in topics.topic_term_dists.iter().chain(&topics.doc_topic_dists) {
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
    for (model, data) in [CASES[0], CASES[3], CASES[4]] {
        let fit = vb(model, data, &PriorSettings::default());
        let error = Export::new(&fit, Draw::Means).unwrap().topics().unwrap_err().to_string();
        assert!(error.contains("doc -> topic -> word"), "{error}");
    }
}
