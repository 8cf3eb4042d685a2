//! Predictions against brute force: all assignments of all nodes, one after another.

use crate::fit_support::{CASES, likelihood, particles, vb};
use crate::support::{Random, settings};
use polyurn::counts::MISSING;
use polyurn::engine::TableMeans;
use polyurn::fit_file::{AllocatedTokens, FitFile};
use polyurn::graph::NodeIndex;
use polyurn::math::special::digamma;
use polyurn::predict::{Allocation, Draw, Predictor, Workspace};
use polyurn::prior::PriorSettings;

/// A cell of a table: its mean where it is listed, else even, as under an even prior.
fn cell(fit: &FitFile, tables: &[TableMeans], node: usize, token: &[u32]) -> f64 {
    let own = &fit.model.nodes()[node];
    let parents: Vec<u32> = own.parents.iter().map(|parent| token[parent.ix()]).collect();
    let row = tables[own.table.ix()].rows.iter().find(|row| row.parents == parents);
    row.map_or(1.0 / f64::from(own.size), |row| row.cells[token[node] as usize].mean)
}

/// Probability of a record, and joint probabilities with each value of each node, by listing all tokens.
fn brute_force(fit: &FitFile, tables: &[TableMeans], record: &[u32]) -> (f64, Vec<Vec<f64>>) {
    let sizes = fit.model.sizes();
    let mut joint: Vec<Vec<f64>> = sizes.iter().map(|&size| vec![0.0; size as usize]).collect();
    let mut total = 0.0;
    let mut token = vec![0; sizes.len()];
    loop {
        if token.iter().zip(record).all(|(value, shown)| *shown == MISSING || value == shown) {
            let p: f64 = (0..sizes.len()).map(|node| cell(fit, tables, node, &token)).product();
            total += p;
            token.iter().enumerate().for_each(|(node, &value)| joint[node][value as usize] += p);
        }
        let Some(at) = (0..sizes.len()).rev().find(|&at| token[at] + 1 < sizes[at]) else { break };
        token[at] += 1;
        token[at + 1..].fill(0);
    }
    (total, joint)
}

fn check(fit: &FitFile, draw: Draw, seed: u64, what: &str) {
    let predictor = Predictor::new(fit, draw).unwrap();
    let tables = if draw == Draw::Best { &fit.best.as_ref().unwrap().tables } else { &fit.tables };
    let mut random = Random::new(seed);
    let mut work = Workspace::default();
    let none = vec![None; predictor.open_roots().len()];
    for _ in 0..25 {
        let shown = |node: NodeIndex, random: &mut Random| {
            let size = fit.model.node(node).size;
            let is_shown = fit.is_seen[node.ix()] && random.between(0, 3) > 0;
            if is_shown { random.value(size) } else { MISSING }
        };
        let record: Vec<u32> = fit.model.node_indices().map(|node| shown(node, &mut random)).collect();
        let (seen, unseen): (Vec<NodeIndex>, Vec<NodeIndex>) =
            fit.model.node_indices().partition(|node| record[node.ix()] != MISSING);
        let question = predictor.question(&seen, &unseen).unwrap();
        let ln = predictor.answer(&question, &record, &none, &mut work);
        let (total, joint) = brute_force(fit, tables, &record);
        assert!((ln - total.ln()).abs() < 1e-10, "{what} {record:?}: {ln} {}", total.ln());
        for (at, node) in unseen.iter().enumerate() {
            for (value, joint) in joint[node.ix()].iter().enumerate() {
                let found = work.posterior(at)[value];
                assert!((found - joint / total).abs() < 1e-10, "{what} {record:?} {node:?}={value}: {found}");
            }
            let (best, p) = work.most_likely(at).unwrap();
            assert!(work.posterior(at).iter().all(|other| *other <= p) && p == work.posterior(at)[best as usize]);
        }
        // Without anything wanted it is the same number.
        let question = predictor.question(&seen, &[]).unwrap();
        let again = predictor.answer(&question, &record, &none, &mut work);
        assert!((again - ln).abs() < 1e-10, "{what}: {again} {ln}");
    }
}

#[test]
fn probabilities_and_posteriors_are_those_of_listing_all_tokens() {
    for (ix, (model, data)) in CASES.into_iter().enumerate() {
        check(&vb(model, data, &PriorSettings::default()), Draw::Means, ix as u64, model);
        check(&particles(model, data), Draw::Best, 50 + ix as u64, model);
    }
}

#[test]
fn long_products_do_not_underflow() {
    let names: Vec<String> = (0..60).map(|ix| format!("x{ix}")).collect();
    let mut data = names.join(",") + "\n";
    for row in 0..4 {
        let values: Vec<String> = (0..60).map(|ix| ((ix + row) % 3).to_string()).collect();
        data += &(values.join(",") + "\n");
    }
    let mut fit = vb(&format!("k[3] -> {}", names.join(" ")), &data, &PriorSettings::default());
    for row in fit.tables[1..].iter_mut().flat_map(|table| &mut table.rows) {
        row.cells.iter_mut().for_each(|cell| cell.mean = if cell.child == row.parents[0] { 1.0 } else { 1e-30 });
    }
    let predictor = Predictor::new(&fit, Draw::Means).unwrap();
    let record: Vec<u32> = (0..61).map(|node| if node == 0 { MISSING } else { node % 3 }).collect();
    let seen: Vec<NodeIndex> = (1..61).map(NodeIndex).collect();
    let question = predictor.question(&seen, &[NodeIndex(0)]).unwrap();
    let mut work = Workspace::default();
    let ln = predictor.answer(&question, &record, &[], &mut work);
    assert!(ln < -750.0 && ln.is_finite(), "{ln} is the log of a number below the smallest");
    let weight = |k: u32| -> f64 {
        let mut token = record.clone();
        token[0] = k;
        (0..61).map(|node| cell(&fit, &fit.tables, node, &token).ln()).sum()
    };
    let want = polyurn::math::log_sum_exp(&[weight(0), weight(1), weight(2)]);
    assert!((ln - want).abs() < 1e-9 * want.abs(), "{ln} {want}");
}

/// Topic shares of a new document, by the usual updates written out.
fn shares(fit: &FitFile, words: &[(u32, f64)], alpha: f64) -> Vec<f64> {
    let n_topics = fit.model.nodes()[1].size as usize;
    let word = |topic: usize, word: u32| fit.tables[2].rows[topic].cells[word as usize].mean;
    let mut weights = vec![1.0 / n_topics as f64; n_topics];
    let mut gamma = vec![0.0; n_topics];
    for _ in 0..5000 {
        gamma = vec![alpha; n_topics];
        for &(value, n) in words {
            let sum: f64 = (0..n_topics).map(|topic| weights[topic] * word(topic, value)).sum();
            (0..n_topics).for_each(|topic| gamma[topic] += n * weights[topic] * word(topic, value) / sum);
        }
        let total: f64 = gamma.iter().sum();
        weights = gamma.iter().map(|cell| (digamma(*cell) - digamma(total)).exp()).collect();
    }
    let total: f64 = gamma.iter().sum();
    gamma.iter().map(|cell| cell / total).collect()
}

#[test]
fn new_documents_get_a_row_from_their_own_records() {
    let (model, data) = CASES[1];
    let fit = vb(model, data, &settings(2.0));
    let predictor = Predictor::new(&fit, Draw::Means).unwrap();
    let (doc, topic, word) = (NodeIndex(0), NodeIndex(1), NodeIndex(2));
    assert_eq!(predictor.open_roots(), [doc]);
    let new = predictor.new_value(doc).unwrap();
    let question = predictor.question(&[doc, word], &[topic]).unwrap();
    let words = [(0, 3.0), (1, 1.0), (3, 2.0)];
    let records: Vec<[u32; 3]> = words.iter().map(|&(value, _)| [new, MISSING, value]).collect();
    let weighed: Vec<_> = records.iter().zip(&words).map(|(record, word)| (&question, &record[..], word.1)).collect();
    let rows = predictor.new_rows(doc, &weighed);
    let want = shares(&fit, &words, 2.0 / 9.0);
    let found = rows.cells(fit.model.node(topic).table).unwrap();
    assert!(found.iter().zip(&want).all(|(found, want)| (found - want).abs() < 1e-7), "{found:?} {want:?}");
    // Its records then have the probability that its row gives them, given the document.
    let mut work = Workspace::default();
    let ln = predictor.answer(&question, &records[0], &[Some(&rows)], &mut work);
    let sum: f64 = (0..3).map(|topic| found[topic] * fit.tables[2].rows[topic].cells[0].mean).sum();
    assert!((ln - sum.ln()).abs() < 1e-12 && predictor.ln_root(doc, new) == 0.0, "{ln}");
    // A document that is not shown is one of those that the fit knows.
    let question = predictor.question(&[word], &[topic]).unwrap();
    let ln = predictor.answer(&question, &[MISSING, MISSING, 0], &[None], &mut work);
    assert!((ln - brute_force(&fit, &fit.tables, &[MISSING, MISSING, 0]).0.ln()).abs() < 1e-12);
}

#[test]
fn rows_below_a_new_value_are_counted_where_nothing_is_hidden() {
    let fit = vb("i -> j", "i,j,count\na,x,2\nb,y,1\nb,z,4\n", &settings(3.0));
    let predictor = Predictor::new(&fit, Draw::Means).unwrap();
    let (i, j) = (NodeIndex(0), NodeIndex(1));
    let new = predictor.new_value(i).unwrap();
    let question = predictor.question(&[i, j], &[]).unwrap();
    let rows = predictor.new_rows(i, &[(&question, &[new, 1], 4.0)]);
    // Pseudo-counts are 3/6 in each cell.
    let want = [0.5 / 5.5, 4.5 / 5.5, 0.5 / 5.5];
    let found = rows.cells(fit.model.node(j).table).unwrap();
    assert!(found.iter().zip(&want).all(|(found, want)| (found - want).abs() < 1e-14), "{found:?}");
    let fit = likelihood("i -> j", "i,j,count\na,x,2\nb,y,1\nb,z,4\n");
    let predictor = Predictor::new(&fit, Draw::Means).unwrap();
    let question = predictor.question(&[i, j], &[]).unwrap();
    let rows = predictor.new_rows(i, &[(&question, &[new, 1], 4.0)]);
    assert_eq!(rows.cells(fit.model.node(j).table).unwrap(), [0.0, 1.0, 0.0]);
}

#[test]
fn tied_tables_and_leaves_take_no_new_values() {
    let open = |model: &str, data: &str| -> Vec<u32> {
        let fit = vb(model, data, &PriorSettings::default());
        Predictor::new(&fit, Draw::Means).unwrap().open_roots().iter().map(|node| node.0).collect()
    };
    let data = "i,j,s\na,b,x\nb,a,y\n";
    assert_eq!(open("i -> k1[2] -> s <- k2[2] <- j", data), [0, 4]);
    assert_eq!(open("i -> k1[2] -> s <- k2[2] <- j; k1 ~ k2", data), [0; 0]);
    assert_eq!(open("i; j -> s", data), [1]);
    assert_eq!(open("i j -> s", data), [0; 0]);
    assert_eq!(open("k[2] -> i j s", data), [0; 0]);
}

#[test]
fn an_allocation_is_handed_out_token_by_token() {
    let (model, data) = CASES[0];
    let fit = particles(model, data);
    let best = fit.best.as_ref().unwrap();
    let n_tokens: u64 = best.allocation.iter().map(|tokens| tokens.n_tokens).sum();
    assert_eq!(n_tokens, 10);
    let mut allocation = Allocation::of(best);
    for tokens in &best.allocation {
        for _ in 0..tokens.n_tokens {
            let values = allocation.take(&tokens.record, 1).unwrap();
            assert!(values.iter().all(|(_, share)| *share == 1.0));
            assert!(tokens.record.iter().zip(&values).all(|(shown, (value, _))| *shown == MISSING || shown == value));
        }
    }
    assert!(best.allocation.iter().all(|tokens| allocation.take(&tokens.record, 1).is_none()), "all are handed out");
}

#[test]
fn shares_of_an_allocation_are_those_of_each_node_by_itself() {
    let (model, data) = CASES[0];
    let mut fit = particles(model, data);
    let n_nodes = fit.model.n_nodes();
    let record = vec![MISSING; n_nodes];
    let tokens = |first: u32, last: u32, n_tokens: u64| {
        let mut values = vec![0; n_nodes];
        (values[0], values[n_nodes - 1]) = (first, last);
        AllocatedTokens { record: record.clone(), values, n_tokens }
    };
    // Three of seven tokens have the commonest combination; four have its first value, five its last one.
    let allocation = vec![tokens(0, 1, 3), tokens(0, 0, 1), tokens(1, 1, 2), tokens(1, 0, 1)];
    fit.best.as_mut().unwrap().allocation = allocation;
    let taken = Allocation::of(fit.best.as_ref().unwrap()).take(&record, 7).unwrap();
    assert_eq!((taken[0], taken[n_nodes - 1]), ((0, 4.0 / 7.0), (1, 5.0 / 7.0)));
}

#[test]
fn averages_over_namings_and_missing_draws_are_refused() {
    let mut fit = vb(CASES[0].0, CASES[0].1, &PriorSettings::default());
    assert!(Predictor::new(&fit, Draw::Best).unwrap_err().to_string().contains("holds no draws"));
    let drawn = particles(CASES[0].0, CASES[0].1);
    assert_eq!(drawn.draws.len(), 2);
    for (ix, draw) in drawn.draws.iter().enumerate() {
        assert_eq!(Draw::Number(ix).stored(&drawn).unwrap(), Some(draw));
        assert_eq!(draw.allocation.iter().map(|tokens| tokens.n_tokens).sum::<u64>(), 10);
        assert!(Predictor::new(&drawn, Draw::Number(ix)).is_ok());
    }
    let beyond = Predictor::new(&drawn, Draw::Number(2)).unwrap_err().to_string();
    assert!(beyond.contains("2 draws; give a number from 1 to 2"), "{beyond}");
    fit.label_averaged = vec!["k".into()];
    assert!(Predictor::new(&fit, Draw::Means).unwrap_err().to_string().contains("all namings of k"));
}
