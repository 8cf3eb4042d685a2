//! Every preset, and contractions, against the DAG written out by hand, on small lopsided data.

use crate::support::{assert_log, assert_same_evidence, bound, csv, score_bound, settings, with_problem};
use polyurn::Warning;
use polyurn::evidence::ln_p_given;
use polyurn::graph::{BindOptions, ModelSource, bind, catalogue};
use polyurn::io::{Format, read_from};
use polyurn::prior::{PriorSettings, TiedPrior};

const TWO: &str = "a,b,count\nx,u,3\nx,v,1\ny,w,2\nz,u,1\nz,w,1\n";
const THREE: &str = "a,b,c,count\nx,u,k,2\nx,v,l,1\ny,w,k,2\nz,u,l,1\n";
/// The same labels in all columns, for ties.
const SQUARE: &str = "a,b,count\nx,x,2\nx,y,1\ny,z,2\nz,y,1\n";
const CUBE: &str = "a,b,c,count\nx,x,y,1\nx,y,y,2\ny,x,x,1\n";
const RELATION: &str = "a,b,c,count\nx,y,likes,2\ny,y,likes,1\ny,x,hates,1\nx,x,ignores,1\n";

/// The preset scores as each of the texts: they are the same graph, or a Markov-equivalent one.
#[track_caller]
fn same(preset: &str, texts: &[&str], data: &str) {
    let data = csv(data);
    for prior in [settings(0.35), PriorSettings { tied: TiedPrior::Once, rate: Some(0.8), ..settings(4.0) }] {
        let got = score_bound(&bound(preset, &data), &prior);
        for text in texts {
            let want = score_bound(&bound(text, &data), &prior);
            assert_same_evidence(&format!("{preset} and {text}"), &got, &want, 1e-12);
        }
    }
}

/// And differs from these.
#[track_caller]
fn differs(preset: &str, texts: &[&str], data: &str) {
    let data = csv(data);
    let got = score_bound(&bound(preset, &data), &settings(0.35)).log_marginal;
    for text in texts {
        let other = score_bound(&bound(text, &data), &settings(0.35)).log_marginal;
        assert!((got - other).abs() > 1e-6, "{preset} and {text} both score {got}");
    }
}

#[test]
fn lda_nmf_and_pachinko_are_chains_from_column_to_column() {
    same("lda(2)", &["a -> t[2] -> b", "t[2] -> a b", "a <- t[2] <- b"], TWO);
    same("nmf(3)", &["k[3] -> a b", "b -> k[3] -> a"], TWO);
    same("pachinko(2)", &["a -> k[2] -> b"], TWO);
    same("pachinko(2,3)", &["a -> k[2] -> l[3] -> b", "a <- k[2] <- l[3] <- b", "a <- k[2] -> l[3] -> b"], TWO);
    differs("pachinko(2,3)", &["a -> k[3] -> l[2] -> b", "a -> k[2] -> b"], TWO);
}

#[test]
fn cp_and_lca_are_a_star_over_all_columns() {
    for preset in ["cp(2)", "lca(2)"] {
        same(preset, &["r[2] -> a b c", "a -> r[2] -> b c", "b -> r[2]; r -> c a"], THREE);
        differs(preset, &["r[3] -> a b c", "r[2] -> a b; c", "a b c -> r[2]"], THREE);
    }
    same("cp(1)", &["independent", "a; b; c"], THREE);
}

#[test]
fn tucker_has_one_hidden_node_per_column_and_a_complete_core() {
    same("tucker(2,3)", &["p[2] -> q[3]; p -> a; q -> b", "q[3] -> p[2]; p -> a; q -> b"], TWO);
    differs("tucker(2,3)", &["p[3] -> q[2]; p -> a; q -> b", "p[2] -> a; q[3] -> b"], TWO);
    let data = "a,b,c,count\nx,u,k,1\nx,v,l,1\ny,w,k,1\n";
    same("tucker(2)", &["p[2] -> q[2] r[2]; q -> r; p -> a; q -> b; r -> c"], data);
    same(
        "tucker(2,1,2)",
        &["r[2] -> p[2] q[1]; p -> q; p -> a; q -> b; r -> c", "p[2] -> r[2]; p -> a; r -> c; b"],
        THREE,
    );
}

#[test]
fn blockmodels_have_two_memberships_tied_on_demand() {
    same("mmsb(2)", &["a -> p[2] -> c; b -> q[2] -> c", "c <- p[2] -> a; b <- q[2] -> c"], RELATION);
    same("mmsb(2,tied)", &["a -> p[2] -> c; b -> q[2] -> c; p ~ q"], RELATION);
    differs("mmsb(2)", &["mmsb(2,tied)", "a -> p[2] -> b; b -> q[2] -> c"], RELATION);
}

#[test]
fn scpf_copes_with_missing_categories() {
    // Row, column, category: j -> k, j k -> r, k r -> i.
    for data in [THREE, "a,b,c,count\nx,u,k,2\nx,v,,1\ny,w,k,2\nz,u,l,1\ny,v,,2\n"] {
        same("scpf(2)", &["b -> k[2]; b k -> c; k c -> a", "k[2] -> b; b k -> c; k c -> a"], data);
        differs("scpf(2)", &["b -> k[2]; b k -> c; k -> a", "b -> k[2] -> c; k c -> a"], data);
    }
}

#[test]
fn hidden_markov_models_have_one_hidden_node_per_column() {
    same(
        "hmm(2)",
        &[
            "z1[2] -> z2[2] -> z3[2]; z1 -> a; z2 -> b; z3 -> c",
            "z1[2] <- z2[2] <- z3[2]; z1 -> a; z2 -> b; z3 -> c",
            "a -> z1[2] -> z2[2] -> z3[2]; z2 -> b; z3 -> c",
        ],
        CUBE,
    );
    same("hmm(2,tied)", &["z1[2] -> z2[2] -> z3[2]; z1 -> a; z2 -> b; z3 -> c; z2 ~ z3; a ~ b ~ c"], CUBE);
    differs("hmm(2,tied)", &["hmm(2)", "z1[2] -> z2[2] -> z3[2]; z1 -> a; z2 -> b; z3 -> c; a ~ b ~ c"], CUBE);
    same("hmm(3,tied)", &["z1[3] -> z2[3]; z1 -> a; z2 -> b; a ~ b"], SQUARE);
    same("hmm(3)", &["z1[3] -> a"], "a,count\nx,2\ny,1\n");
}

#[test]
fn tensor_trains_have_bonds_between_neighbours() {
    same(
        "tensor-train(2,3)",
        &[
            "p[2] -> q[3]; p -> a; p q -> b; q -> c",
            "q[3] -> p[2]; q -> c; q p -> b; a <- p",
            "a -> p[2] -> q[3] -> c; p q -> b",
        ],
        THREE,
    );
    same("tensor-train(2)", &["p[2] -> q[2]; p -> a; p q -> b; q -> c"], THREE);
    same("tensor-train(3)", &["p[3] -> a b"], TWO);
    differs("tensor-train(2,3)", &["p[2] -> q[3]; p -> a; q -> b; q -> c", "tensor-train(3,2)"], THREE);
}

#[test]
fn symmetric_independent_and_complete_say_what_they_are() {
    same("symmetric(2)", &["r[2] -> a b; a ~ b"], SQUARE);
    same("symmetric(2)", &["r[2] -> a b c; a ~ b ~ c"], CUBE);
    differs("symmetric(2)", &["cp(2)"], SQUARE);
    same("independent", &["a; b; c"], THREE);
    same("complete", &["a -> b; a b -> c", "c -> b; b c -> a", "b -> a c; a -> c"], THREE);
    differs("complete", &["independent", "a -> b -> c"], THREE);
}

#[test]
fn every_preset_of_the_catalogue_scores() {
    for entry in catalogue() {
        let arguments = match entry.arguments {
            "" => "",
            "(K)" | "(R)" | "(K) or (K,tied)" | "(r1,r2,..)" | "(k1,k2,..)" => "(2)",
            other => panic!("an argument that no test knows: {other}"),
        };
        let data = match entry.name {
            "lda" | "nmf" | "pachinko" => TWO,
            _ => CUBE,
        };
        let found = score_bound(&bound(&format!("{}{arguments}", entry.name), &csv(data)), &settings(1.0));
        assert!(found.log_marginal.is_finite(), "{}", entry.name);
    }
}

#[test]
fn contractions_are_the_graphs_of_their_factors() {
    same("einsum: ik,jk->ij; k[3]", &["nmf(3)", "k[3] -> a b"], TWO);
    same("einsum: ir,jr,kr->ijk; r[2]", &["cp(2)", "r[2] -> a b c"], THREE);
    // A factor over the hidden letter alone changes nothing.
    same("einsum: r,ir,jr,kr->ijk; r[2]", &["cp(2)"], THREE);
    same("einsum: pq,ip,jq->ij; p[2]; q[3]", &["tucker(2,3)"], TWO);
    same("einsum: ip,jpq,kq->ijk; p[2]; q[3]", &["tensor-train(2,3)"], THREE);
    let data = "a,b,c,count\nx,u,k,1\nx,v,l,1\ny,w,k,1\n";
    same("einsum: pqs,ip,jq,ks->ijk; p[2]; q[2]; s[2]", &["tucker(2)"], data);
    same("einsum: ir,jr->ij; r[2]; i ~ j", &["symmetric(2)"], SQUARE);
    same("einsum: ijk->ijk", &["complete"], THREE);
    same("einsum: i,j,k->ijk", &["independent"], THREE);
    // Letters bind to columns in the order after the arrow.
    same("einsum: ip,jpq,kq->kji; p[2]; q[3]", &["p[2] -> q[3]; p -> c; p q -> b; q -> a"], THREE);
    for text in ["einsum: ir,jr,kr->ijk; r[2]", "einsum: ip,jpq,kq->ijk; p[2]; q[3]"] {
        let binding = bound(text, &csv(THREE));
        assert!(!binding.warnings.iter().any(|warning| matches!(warning, Warning::EdgesAdded { .. })), "{text}");
    }
}

#[test]
fn a_four_cycle_is_triangulated_and_the_added_edge_reported() {
    let text = "einsum: ip,pj,jq,qi->ij; p[2]; q[2]";
    // Of the two chords the one between the hidden letters makes cliques with fewer seen ones.
    same(text, &["p[2] -> q[2]; p q -> a b"], TWO);
    let binding = bound(text, &csv(TWO));
    let added: Vec<&Vec<(String, String)>> = binding
        .warnings
        .iter()
        .filter_map(|warning| match warning {
            Warning::EdgesAdded { edges } => Some(edges),
            _ => None,
        })
        .collect();
    let [edges] = added[..] else { panic!("{:?}", binding.warnings) };
    let [(one, other)] = &edges[..] else { panic!("{edges:?}") };
    let mut ends = [one.as_str(), other.as_str()];
    ends.sort_unstable();
    assert_eq!(ends, ["p", "q"]);
}

#[test]
fn presets_bind_to_axes_without_names_in_order() {
    let tns = "1 1 1 2\n1 2 2 1\n2 3 1 2\n3 1 2 1\n";
    let data = read_from(tns.as_bytes(), "test.tns", Format::Tns).unwrap();
    for preset in ["tensor-train(2,3)", "scpf(2)", "cp(2)", "einsum: ip,jpq,kq->ijk; p[2]; q[3]"] {
        let binding = bind(&ModelSource::parse(preset).unwrap(), &data, BindOptions::default()).unwrap();
        // THREE has the same counts under the same order of labels.
        let want = score_bound(&bound(preset, &csv(THREE)), &settings(0.6));
        assert_same_evidence(preset, &score_bound(&binding, &settings(0.6)), &want, 1e-12);
    }
}

#[test]
fn given_its_documents_an_lda_model_scores_words_alone() {
    let rising = |x: f64, n: u64| (0..n).map(|j| (x + j as f64).ln()).sum::<f64>();
    let data = csv(TWO);
    for k in 1..=3 {
        let a = 0.35;
        with_problem(&bound(&format!("lda({k})"), &data), &settings(a), |problem| {
            let doc = problem.model.find("a").unwrap();
            // Documents x, y, z hold 4, 2 and 2 tokens.
            let want = rising(a / 3.0, 4) + 2.0 * rising(a / 3.0, 2) - rising(a, 8);
            assert_log("documents", ln_p_given(problem, &[doc]).unwrap().value(), want, 1e-12);
            assert!(ln_p_given(problem, &[problem.model.find("b").unwrap()]).is_err());
        });
    }
    // One topic: words are one Dirichlet-multinomial, whatever the document; u, v, w occur 4, 1 and 3 times.
    with_problem(&bound("lda(1)", &data), &settings(1.1), |problem| {
        let sequence = score_bound(&bound("lda(1)", &data), &settings(1.1)).log_p_sequence;
        let documents = ln_p_given(problem, &[problem.model.find("a").unwrap()]).unwrap().value();
        let third = 1.1 / 3.0;
        let words = rising(third, 4) + rising(third, 1) + rising(third, 3) - rising(1.1, 8);
        assert_log("words", sequence - documents, words, 1e-12);
    });
}
