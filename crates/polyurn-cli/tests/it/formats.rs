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
    // What is read in batches is cut at the same places.
    let stream = ["--model", "k[2] -> x[2] y[2]", "--data", "t.csv", "--seen", "x,y", "--a", "4", "-q", "--seed", "1"];
    let lines = folder.ok(&[&["score", "--stream", "--b", "1", "--json"], &stream[..], &bin].concat());
    let last: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&last["bins"], &last["records"]), (&scored["bins"], &3.into()));
    let fit = ["fit", "--method", "svb", "--tokens", "40", "--batch", "10", "--json", "-o", "s.polyurn"];
    let fitted: serde_json::Value = serde_json::from_str(&folder.ok(&[&fit[..], &stream, &bin].concat())).unwrap();
    assert_eq!(fitted["bins"], scored["bins"]);
    let predicted = |data: &str| folder.ok(&["predict", "--fit", "s.polyurn", "--data", data, "-q"]);
    assert_eq!(predicted("new.csv"), predicted("named.csv"));
}

#[test]
fn files_are_converted_there_and_back() {
    let folder = Folder::new();
    folder.write("t.csv", "doc,word,count\nd1,cat,5\nd1,=owl,1\nd2,dog,2\n");
    for name in ["t.tns", "t.ttb", "t.mtx", "docword.t.txt", "t.ldac", "t.svm", "t.npy", "t.npz", "t.tsv"] {
        let said = folder.run(&["convert", "t.csv", "-o", name]);
        assert!(said.status.success(), "{name}: {}", String::from_utf8_lossy(&said.stderr));
        let summary = folder.json(&["check", name]);
        assert_eq!((&summary["tokens"], &summary["distinct_rows"]), (&8.into(), &3.into()), "{name}");
        let values: Vec<_> = (0..2).map(|ix| summary["columns"][ix]["values"].clone()).collect();
        assert_eq!(values, [2, 3], "{name}");
        folder.ok(&["convert", name, "-o", "back.csv"]);
    }
    let back = folder.ok(&["convert", "docword.t.txt", "--to", "csv", "-q"]);
    assert_eq!(back, "doc,word,count\n1,cat,5\n1,=owl,1\n2,dog,2\n");
    assert!(folder.names().contains(&"vocab.t.txt".to_owned()) && folder.names().contains(&"t.ldac.vocab".to_owned()));
    let note = String::from_utf8(folder.run(&["convert", "t.csv", "--to", "csv"]).stderr).unwrap();
    assert!(note.contains("note: the value `=owl`") && note.contains("formula"), "{note}");
    let said = folder.json(&["convert", "t.csv", "-o", "t.tns", "--from", "csv", "--to", "tns"]);
    assert_eq!((&said["to"], &said["rows"]), (&"tns".into(), &3.into()));
}

#[test]
fn conversions_that_make_no_sense_are_refused_in_one_line() {
    let folder = Folder::new();
    folder.write("t.csv", "a,b,c\nx,y,z\n");
    folder.write("m.csv", "a,b\nx,\n");
    folder.write("t.mtx", "%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 2\n");
    folder.write("t.uci.vocab", "old\n");
    for (args, wanted) in [
        (&["convert", "t.csv", "-o", "t.ldac"][..], "t.csv: there are 3 columns, and lda-c has two"),
        (&["convert", "m.csv", "-o", "m.mtx"], "m.csv: there are missing values, which mtx cannot say"),
        (&["convert", "t.csv", "-o", "t.xyz"], "--to: say the format to write"),
        (&["convert", "t.csv"], "--to: say the format to write"),
        (&["convert", "t.csv", "-o", "t.csv"], "is an input too"),
        (&["convert", "t.csv", "-o", "u.csv.gz"], "leave its last ending out"),
        (&["convert", "t.csv", "--to", "csv", "--json"], "--json"),
        (&["convert", "t.mtx", "-o", "t.uci"], "t.uci.vocab: would be taken for the words of t.uci"),
    ] {
        let (code, message) = folder.fails(args);
        assert_eq!((code, message.trim_end().lines().count()), (2, 1), "{message}");
        assert!(message.contains(wanted), "{args:?}: {message}");
    }
    assert_eq!(folder.names(), ["m.csv", "t.csv", "t.mtx", "t.uci.vocab"]);
}

#[test]
fn standard_input_and_files_without_extension_are_told_by_their_content() {
    use std::io::Write;
    let folder = Folder::new();
    folder.write("t.csv", "doc,word,count\na,cat,5\na,owl,1\nb,dog,2\n");
    for name in ["t.csv", "t.tsv", "t.tns", "t.ttb", "t.mtx", "t.uci", "t.ldac", "t.svm", "t.npy", "t.npz"] {
        if name != "t.csv" {
            folder.ok(&["convert", "t.csv", "-o", name, "-q"]);
        }
        let bytes = std::fs::read(folder.path().join(name)).unwrap();
        folder.write("nameless", &bytes);
        let named = folder.json(&["check", name]);
        let nameless = folder.json(&["check", "nameless"]);
        assert_eq!((&nameless["format"], &nameless["tokens"]), (&named["format"], &8.into()), "{name}");
        let mut child = folder
            .command(&["check", "-", "--json"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let said: serde_json::Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!((&said["format"], &said["tokens"]), (&named["format"], &8.into()), "{name}");
    }
    folder.write("a.txt", "d1 x The cat and the dog\nd2 y The owl\n");
    let (code, message) = folder.fails(&["check", "a.txt"]);
    assert!(code == 2 && message.contains("a.txt: no format goes with this extension"), "{message}");
    assert_eq!(folder.json(&["check", "a.txt", "--format", "mallet", "--labels"])["tokens"], 7);
    let (code, message) = folder.fails(&["check", "-"]);
    assert!(code == 2 && message.contains("standard input") && message.contains("--format"), "{message}");
}

/// Written as they are, so that they can be read back; and said.
#[test]
fn labels_like_formulas_are_said_wherever_they_are_written_to_csv() {
    let folder = Folder::new();
    folder.write("t.csv", "who,says,count\nann,=cmd(),3\nbob,b,2\n");
    folder.ok(&["fit", "--model", "who -> says", "--data", "t.csv", "--method", "exact", "-o", "t.polyurn", "-q"]);
    for command in [
        &["convert", "t.csv", "-o", "u.tsv"][..],
        &["export", "t.polyurn", "--to", "csv", "-o", "e.csv"],
        &["predict", "--fit", "t.polyurn", "--data", "t.csv", "-o", "p.csv"],
        &["simulate", "--from", "t.csv", "--tokens", "50", "--seed", "1", "-o", "s.csv"],
    ] {
        let said = String::from_utf8(folder.run(command).stderr).unwrap();
        assert!(said.contains("the value `=cmd()` and perhaps others begin with =, +, - or @"), "{command:?}: {said}");
        let quiet = folder.run(&[command, &["--quiet"]].concat());
        assert!(!String::from_utf8(quiet.stderr).unwrap().contains("=cmd()"), "{command:?}");
    }
    let written = std::fs::read_to_string(folder.path().join("e.csv")).unwrap();
    assert!(written.contains("=cmd()"), "{written}");
    // Numbers are no formulas.
    folder.write("n.csv", "x\n-5\n+1e3\n");
    let said = String::from_utf8(folder.run(&["convert", "n.csv", "-o", "n.tsv"]).stderr).unwrap();
    assert!(!said.contains("formula"), "{said}");
}
