//! Files in many formats, as they are read from the command line.

use crate::support::Folder;

/// Two documents of three words, as a table.
const TABLE: &str = "doc,word,count\n1,cat,5\n1,owl,1\n2,dog,2\n";

#[test]
fn bags_of_words_find_their_words_and_score_as_a_table_does() {
    let folder = Folder::new();
    folder.write("t.csv", TABLE);
    folder.write("docword.t.txt", "2\n3\n3\n1 1 5\n1 3 1\n2 2 2\n");
    folder.write("vocab.t.txt", "cat\ndog\nowl\n");
    folder.write("t.ldac", "2 0:5 2:1\n1 1:2\n");
    let scored = |data: &str| folder.json(&["score", "--model", "lda(2)", "--data", data])["log_marginal"].clone();
    for data in ["docword.t.txt", "t.ldac"] {
        assert_eq!(scored(data), scored("t.csv"), "{data}");
        let summary = folder.json(&["check", data]);
        assert_eq!(summary["columns"][1]["most_common"][0]["label"], "cat", "{data}");
    }
    // Words of a fit are known by their names in files without numbers.
    folder.ok(&["fit", "--model", "lda(2)", "--data", "t.ldac", "--method", "vb", "--seed", "1", "-o", "t.polyurn"]);
    let predicted = |data: &str| folder.ok(&["predict", "--fit", "t.polyurn", "--data", data, "-q"]);
    assert_eq!(predicted("docword.t.txt"), predicted("t.csv"));
}

#[test]
fn a_vocabulary_is_refused_where_it_does_not_belong() {
    let folder = Folder::new();
    folder.write("t.csv", TABLE);
    folder.write("t.ldac", "2 0:5 2:1\n1 1:2\n");
    folder.write("words", "cat\n");
    let refused = |args: &[&str]| folder.fails(args).1;
    let message = refused(&["check", "t.csv", "--vocab", "words"]);
    assert!(message.contains("--vocab words: a file of format csv takes no vocabulary"), "{message}");
    let message = refused(&["check", "t.ldac", "--vocab", "words"]);
    assert!(message.contains("t.ldac, line 1: entry 2, `2:1`: index `2` is beyond 0"), "{message}");
    let message = refused(&["check", "t.ldac", "--vocab", "none"]);
    assert!(message.contains("none: "), "{message}");
}

#[test]
fn cuts_of_numbers_are_kept_and_used_again() {
    let folder = Folder::new();
    let rows: Vec<(f64, &str)> =
        (0..40).map(|n| (f64::from(n % 20) / 10.0, if n % 20 < 9 { "a" } else { "b" })).collect();
    let table: String = rows.iter().map(|(x, y)| format!("{x},{y}\n")).collect();
    folder.write("t.csv", format!("x,y\n{table}"));
    let cut: String = rows.iter().map(|(x, y)| format!("{},{y}\n", if *x < 0.95 { "low" } else { "high" })).collect();
    folder.write("cut.csv", format!("x,y\n{cut}"));
    let bin = ["--bin", "x=2:kmeans"];
    let score =
        |data: &str, bin: &[&str]| folder.json(&[&["score", "--model", "x -> y", "--data", data], bin].concat());
    let scored = score("t.csv", &bin);
    assert_eq!(scored["log_marginal"], score("cut.csv", &[])["log_marginal"]);
    assert_eq!(scored["bins"], serde_json::json!([{ "column": "x", "method": "kmeans", "cuts": [0.95] }]));
    let fit = ["fit", "--model", "x -> y", "--data", "t.csv", "--method", "exact", "-q", "--json", "-o", "t.polyurn"];
    let fitted: serde_json::Value = serde_json::from_str(&folder.ok(&[&fit[..], &bin].concat())).unwrap();
    assert_eq!(fitted["bins"], scored["bins"]);
    // Numbers that the fit never saw have a category too.
    folder.write("new.csv", "x,y\n-7,a\n99,b\n,b\n");
    folder.write("named.csv", "x,y\n< 0.95,a\n>= 0.95,b\n,b\n");
    let predicted = |data: &str| folder.ok(&["predict", "--fit", "t.polyurn", "--data", data, "-q"]);
    assert_eq!(predicted("new.csv"), predicted("named.csv"));
    let refused = |args: &[&str]| folder.fails(args).1;
    let message = refused(&["predict", "--fit", "t.polyurn", "--data", "new.csv", "--bin", "x=2"]);
    assert!(message.contains("a fit keeps its own cuts"), "{message}");
    let message = refused(&["score", "--model", "x -> y", "--data", "t.csv", "--bin", "y=2"]);
    assert!(message.contains("t.csv, line 2, column y: `a` is not a number"), "{message}");
    let message = refused(&["score", "--model", "x -> y", "--data", "-", "--format", "csv", "--bin", "x=2"]);
    assert!(message.contains("can be read only once"), "{message}");
    let message = refused(&["score", "--model", "x -> y", "--data", "t.csv", "--bin", "x"]);
    assert!(message.contains("--bin") && message.contains("NAME=N"), "{message}");
    let compared = folder.json(&["compare", "--model", "x -> y", "--model", "x; y", "--data", "t.csv", "--bin", "x=2"]);
    assert_eq!(compared["bins"], scored["bins"]);
}
