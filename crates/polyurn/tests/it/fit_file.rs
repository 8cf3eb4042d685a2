//! Fit files: what is written comes back, and nothing else is believed.

use crate::fit_support::{CASES, likelihood, particles, vb};
use crate::support::{settings, tables};
use polyurn::fit_file::{FitFile, digest, npy};
use polyurn::prior::{PriorSettings, PriorSpec, ProductTerm, PseudoCounts};
use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

/// What a table's pseudo-counts say.
fn cells(pseudo: &PseudoCounts) -> Vec<(f64, f64)> {
    match pseudo {
        PseudoCounts::Even { cell, row } => vec![(cell.value, cell.ln()), (row.value, row.ln())],
        PseudoCounts::Dense { cells, rows, .. } => cells.iter().chain(rows).map(|&cell| (cell, 0.0)).collect(),
        PseudoCounts::Product { terms } => {
            let weights = |term: &ProductTerm| -> Vec<f64> {
                term.parents.iter().chain([&term.child]).flat_map(|own| own.to_vec()).collect()
            };
            terms.iter().flat_map(|term| weights(term).into_iter().map(|weight| (term.size, weight))).collect()
        }
    }
}

#[track_caller]
fn assert_comes_back(fit: &FitFile, what: &str) {
    let bytes = fit.to_bytes().unwrap();
    assert!(bytes == fit.to_bytes().unwrap(), "{what}: the same fit gives the same bytes");
    let mut back = FitFile::from_bytes(&bytes, "fit").unwrap();
    assert!(back.to_bytes().unwrap() == bytes, "{what}: it is written as it was read");
    for (own, back) in fit.prior.tables.iter().zip(&back.prior.tables) {
        assert_eq!(cells(back), cells(own), "{what}");
    }
    // Logarithms of pseudo-counts are only specified where these are tiny; all else is the same to the last bit.
    back.prior.tables.clone_from(&fit.prior.tables);
    assert!(&back == fit, "{what}");
}

#[test]
fn fits_come_back_as_they_were() {
    for (model, data) in CASES {
        assert_comes_back(&vb(model, data, &PriorSettings::default()), model);
        assert_comes_back(&likelihood(model, data), model);
        assert_comes_back(&particles(model, data), model);
    }
}

#[test]
fn all_kinds_of_priors_come_back() {
    let data = "i,j,count\na,b,2\nb,b,1\na,c,3\n";
    let marginals = BTreeMap::from([("i".to_owned(), vec![0.2, 0.8]), ("k".to_owned(), vec![0.5, 0.0])]);
    let marginals = PriorSpec::Base { alpha: None, marginals: Some(marginals), size: Some(3.0) };
    let own = BTreeMap::from([
        ("k".to_owned(), vec![vec![0.7, 1.9]]),
        ("i".to_owned(), vec![vec![0.3, 1.1], vec![2.0, 0.2]]),
        ("j".to_owned(), vec![vec![0.2, 0.9], vec![1.5, 0.3]]),
    ]);
    let tiny = settings(1e-280);
    for prior in [PriorSettings { spec: marginals, ..Default::default() }, tables(own), settings(1e6), tiny] {
        assert_comes_back(&vb("k[2] -> i j", data, &prior), "prior");
    }
}

#[test]
fn large_tables_list_some_of_their_cells() {
    let mut data = String::from("i,j\n");
    for ix in 0..40 {
        data += &format!("{},{}\n", ix % 7, ix % 11);
    }
    let fit = vb("k[2] -> i[20000] j", &data, &PriorSettings::default());
    assert!(fit.tables[1].rows[0].cells.len() < 20_000);
    assert_comes_back(&fit, "listed cells");
    assert!(fit.to_bytes().unwrap().len() < 10_000, "memory follows the cells that are listed");
}

#[test]
fn every_changed_byte_and_every_missing_end_is_refused_in_one_line() {
    let fit = particles(CASES[0].0, CASES[0].1);
    let good = fit.to_bytes().unwrap();
    let refused = |bytes: &[u8], what: &str| {
        let error = FitFile::from_bytes(bytes, "fit.polyurn").expect_err(what);
        let message = error.to_string();
        assert!(message.starts_with("fit.polyurn: ") && !message.contains('\n'), "{what}: {message}");
        assert!(error.is_usage());
    };
    for ix in 0..good.len() {
        for flip in [0x01, 0x20, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[ix] ^= flip;
            refused(&bad, &format!("byte {ix} ^ {flip}"));
        }
        refused(&good[..ix], &format!("cut at {ix}"));
    }
    refused(&[&good[..], b"x"].concat(), "longer");
    refused(&[b"x", &good[..]].concat(), "shifted");
    refused(&[], "empty");
    refused(b"doc,word,count\nd1,cat,3\n", "a data file");
    refused(&vec![0; 100_000], "zeros");
}

/// The file with one entry replaced (or left out), and sealed again.
fn with_entry(bytes: &[u8], name: &str, contents: Option<&[u8]>) -> Vec<u8> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for ix in 0..archive.len() {
        let mut entry = archive.by_index(ix).unwrap();
        let mut own = Vec::new();
        entry.read_to_end(&mut own).unwrap();
        let own_name = entry.name().unwrap().into_owned();
        let contents = if own_name == name { contents } else { Some(&own[..]) };
        if let Some(contents) = contents {
            writer.start_file(own_name, SimpleFileOptions::default()).unwrap();
            writer.write_all(contents).unwrap();
        }
    }
    let comment = String::from_utf8(archive.comment().to_vec()).unwrap();
    writer.set_comment(comment).unwrap();
    let mut bytes = writer.finish().unwrap().into_inner();
    let n = bytes.len() - 64;
    let seal = digest(&mut &bytes[..n]).unwrap();
    bytes[n..].copy_from_slice(seal.as_bytes());
    bytes
}

fn entry(bytes: &[u8], name: &str) -> Vec<u8> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut contents = Vec::new();
    archive.by_name(name).unwrap().read_to_end(&mut contents).unwrap();
    contents
}

#[track_caller]
fn assert_refused(bytes: &[u8], wanted: &str) {
    let message = FitFile::from_bytes(bytes, "fit").unwrap_err().to_string();
    assert!(message.contains(wanted) && !message.contains('\n'), "{message}");
}

#[test]
fn a_good_seal_does_not_save_wrong_contents() {
    let good = particles(CASES[0].0, CASES[0].1).to_bytes().unwrap();
    assert!(FitFile::from_bytes(&with_entry(&good, "none", None), "fit").is_ok(), "sealed again it is fine");
    let header = String::from_utf8(entry(&good, "fit.json")).unwrap();
    let changed = |from: &str, to: &str| {
        assert!(header.contains(from), "{from}");
        with_entry(&good, "fit.json", Some(header.replacen(from, to, 1).as_bytes()))
    };
    assert_refused(&changed("\"format_version\": 2", "\"format_version\": 3"), "has version 3 of the format");
    assert_refused(&changed("\"format\": \"polyurn fit\"", "\"format\": \"other\""), "its format is \"other\"");
    assert_refused(&changed("\"parents\": []", "\"parents\": [\"i\"]"), "cycle");
    assert_refused(&changed("\"size\": 3", "\"size\": 4294967295"), "fit");
    assert_refused(&changed("\"size\": 3", "\"size\": 4"), "label for each value");
    assert_refused(&changed("\"has_best\"", "\"has_worst\""), "fit.json");
    for name in ["fit.json", "labels.json", "tables/0.rows.npy", "tables/1.mean.npy", "best/counts.npy", "values/1.npy"]
    {
        assert_refused(&with_entry(&good, name, None), name);
        assert_refused(&with_entry(&good, name, Some(b"")), name);
    }
    for number in [f64::NAN, -0.1, 2.0, f64::INFINITY] {
        let cells = npy::encode(&[1, 2], [number, 0.5]);
        assert_refused(&with_entry(&good, "tables/0.mean.npy", Some(&cells)), "no probability");
    }
    let far = npy::encode(&[2, 1], [0u32, 7]);
    assert_refused(&with_entry(&good, "tables/1.rows.npy", Some(&far)), "values of the parents");
    let huge = b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999, 2), }";
    assert_refused(&with_entry(&good, "tables/0.mean.npy", Some(huge)), "tables/0.mean.npy");
}

#[test]
fn entries_of_any_bytes_do_no_harm() {
    let good = particles(CASES[0].0, CASES[0].1).to_bytes().unwrap();
    let names: Vec<String> =
        ZipArchive::new(Cursor::new(&good[..])).unwrap().file_names().map(|name| name.unwrap().into_owned()).collect();
    for name in names {
        let contents = entry(&good, &name);
        for ix in (0..contents.len()).step_by(1 + contents.len() / 60) {
            let mut bad = contents.clone();
            bad[ix] ^= 0x11;
            // Some changes make another fit that is as good as this one; none makes a panic.
            let _ = FitFile::from_bytes(&with_entry(&good, &name, Some(&bad)), "fit");
            let cut = FitFile::from_bytes(&with_entry(&good, &name, Some(&contents[..ix])), "fit");
            // The line break at the end of JSON is not needed.
            let is_whole = name.ends_with(".json") && ix + 1 == contents.len();
            assert_eq!(cut.is_ok(), is_whole, "{name} cut at {ix}");
        }
    }
}

#[test]
fn files_of_version_1_stay_readable() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/version-1.polyurn");
    let fit = FitFile::read(path.as_ref()).unwrap();
    assert_eq!(fit.model.to_text(), "doc[2]; topic[2]; word[3]; doc -> topic; topic -> word");
    assert_eq!((fit.method.as_str(), fit.seed, fit.data.n_tokens), ("smc", 5, 9.0));
    assert_eq!(fit.labels[2].name(2), "été");
    assert!(fit.best.is_some_and(|best| best.allocation.iter().map(|tokens| tokens.n_tokens).sum::<u64>() == 9));
    let sums = fit.tables.iter().flat_map(|table| &table.rows).map(|row| row.cells.iter().map(|cell| cell.mean).sum());
    assert!(sums.into_iter().all(|sum: f64| (sum - 1.0).abs() < 1e-12));
}
