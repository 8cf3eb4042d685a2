//! Fit files: written by every method, described, exported, and never half written.

use crate::support::Folder;
use polyurn::fit_file::FitFile;
use std::time::{Duration, Instant};

const TABLE: &str = "i,j,s,count\n0,0,a,2\n0,1,b,1\n1,1,a,3\n2,,b,2\n1,2,é,1\n";
const METHODS: [&[&str]; 7] = [
    &["exact"],
    &["smc", "--particles", "64", "--runs", "2", "--heat", "1"],
    &["vb"],
    &["em"],
    &["em", "--prior", "none"],
    &["dual-em"],
    &["icm"],
];

fn fit(folder: &Folder, model: &str, data: &str, method: &[&str], to: &str) -> String {
    let args = [&["fit", "--model", model, "--data", data, "--seed", "3", "-q", "-o", to, "--method"], method].concat();
    folder.ok(&args)
}

#[test]
fn every_method_writes_a_fit_and_still_prints_it() {
    let folder = Folder::new();
    folder.write("t.csv", TABLE);
    for method in METHODS {
        let printed = fit(&folder, "k[2] -> i j s", "t.csv", method, "f.polyurn");
        let info = folder.ok(&["info", "f.polyurn"]);
        // The number for people, with its name, is the same in both.
        assert_eq!(info.lines().nth(3).unwrap(), printed.lines().next().unwrap(), "{method:?}");
        assert_eq!(info.contains("evidence"), ["exact", "smc"].contains(&method[0]), "{method:?}: {info}");
        let json = folder.json(&["info", "f.polyurn"]);
        assert_eq!(
            (&json["method"], &json["seed"], &json["format_version"]),
            (&method[0].into(), &3.into(), &2.into())
        );
        assert_eq!(json["data"]["tokens"], 9.0);
        assert_eq!(json["nodes"][0]["seen"], false);
        let predicted = folder.run(&["predict", "--fit", "f.polyurn", "--data", "t.csv", "-q"]);
        assert_eq!(predicted.status.code(), Some(if method[0] == "exact" { 2 } else { 0 }), "{method:?}");
        assert!(folder.ok(&["export", "f.polyurn", "--to", "csv"]).starts_with("node,given1,value1,value,mean,sd\n"));
    }
    folder.write("d.csv", "doc,word\nd1,cat\nd1,dog\nd2,cat\nd2,eel\n");
    let svb = ["svb", "--tokens", "4", "--seen", "doc,word"];
    fit(&folder, "doc[2] -> t[2] -> word[3]", "d.csv", &svb, "f.polyurn");
    assert!(folder.ok(&["info", "f.polyurn"]).contains("bound, from the last batch"));
    assert_eq!(folder.ok(&["predict", "--fit", "f.polyurn", "--data", "d.csv", "-q"]).lines().count(), 5);
}

#[test]
fn the_digest_is_that_of_the_data_and_the_command_repeats_the_fit() {
    let folder = Folder::new();
    folder.write("t.csv", TABLE);
    let args = ["fit", "--model", "k[2] -> i j s", "--data", "t.csv", "--method", "vb", "-q", "-o", "f.polyurn"];
    folder.ok(&args);
    let json = folder.json(&["info", "f.polyurn"]);
    let digest = polyurn::fit_file::digest(&mut TABLE.as_bytes()).unwrap();
    assert_eq!(json["data"]["sha256"], digest.as_str());
    let info = folder.ok(&["info", "f.polyurn"]);
    let command = info.lines().find_map(|line| line.strip_prefix("to repeat it")).unwrap().trim().to_owned();
    assert!(command.contains("'k[2] -> i j s'") && command.contains("--seed "), "{command}");
    let first = std::fs::read(folder.path().join("f.polyurn")).unwrap();
    let seed = json["seed"].to_string();
    folder.ok(&[&args[..], &["--seed", &seed]].concat());
    let second = FitFile::read(&folder.path().join("f.polyurn")).unwrap();
    assert_eq!(FitFile::from_bytes(&first, "first").unwrap().tables, second.tables);
}

#[test]
fn damaged_and_other_files_are_refused_in_one_line() {
    let folder = Folder::new();
    folder.write("t.csv", TABLE);
    fit(&folder, "k[2] -> i j s", "t.csv", &["vb"], "f.polyurn");
    let good = std::fs::read(folder.path().join("f.polyurn")).unwrap();
    let refused = |what: &str| {
        let commands: [&[&str]; 3] = [
            &["info", "bad.polyurn"],
            &["predict", "--fit", "bad.polyurn", "--data", "t.csv"],
            &["export", "bad.polyurn", "--to", "csv"],
        ];
        for args in commands {
            let (code, error) = folder.fails(args);
            assert_eq!(code, 2, "{what}");
            assert!(error.contains("bad.polyurn") && error.lines().count() == 1, "{what}: {error}");
        }
    };
    for ix in (0..good.len()).step_by(good.len() / 12) {
        let mut bad = good.clone();
        bad[ix] ^= 4;
        folder.write("bad.polyurn", &bad);
        refused("a flipped bit");
        folder.write("bad.polyurn", &good[..ix]);
        refused("a missing end");
    }
    folder.write("bad.polyurn", TABLE);
    refused("a table");
    std::fs::remove_file(folder.path().join("bad.polyurn")).unwrap();
    refused("no file");
    std::fs::create_dir(folder.path().join("bad.polyurn")).unwrap();
    refused("a folder");
}

/// Of a long table people see the rows that tokens are in.
#[test]
fn rows_that_are_shown_are_those_with_tokens() {
    let folder = Folder::new();
    let mut rows = String::from("i,j,count\n");
    (0..30).for_each(|i| rows += &format!("i{i},x,1\n"));
    rows += "i28,y,40\ni29,y,30\n";
    folder.write("t.csv", rows);
    let text = folder.ok(&["fit", "--model", "i -> j", "--data", "t.csv", "--seed", "1", "-o", "f.polyurn"]);
    for text in [text, folder.ok(&["info", "f.polyurn"])] {
        let table = &text[text.find("j given i").unwrap()..];
        assert!(table.contains("i=i28") && table.contains("i=i29") && !table.contains("i=i27"), "{table}");
        assert!(table.contains("and 18 more rows with fewer tokens"), "{table}");
    }
    assert!(!folder.ok(&["info", "f.polyurn"]).contains("memory"), "what changes no result");
    let (code, error) = folder.fails(&["export", "f.polyurn", "--to", "csv", "--json"]);
    assert!(code == 2 && error.contains("give --to json"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_killed_writer_leaves_the_old_or_the_new_file() {
    let folder = Folder::new();
    let mut data = String::from("i,j\n");
    (0..4000u64).for_each(|ix| data += &format!("{},{}\n", ix * 7919 % 150, ix * 104_729 % 140));
    folder.write("t.csv", data);
    let fit = ["fit", "--model", "i -> j", "--data", "t.csv", "--method", "em", "--max-iter", "1", "-q"];
    let args = |seed: &'static str| [&fit[..], &["-o", "f.polyurn", "--seed", seed]].concat();
    let path = folder.path().join("f.polyurn");
    let mut whole = Vec::new();
    let mut longest = Duration::ZERO;
    for seed in ["1", "2"] {
        let start = Instant::now();
        folder.ok(&args(seed));
        longest = longest.max(start.elapsed());
        whole.push(std::fs::read(&path).unwrap());
    }
    assert_ne!(whole[0], whole[1]);
    let (mut random, mut n_killed, mut n_changed) = (12_345u64, 0, 0);
    let mut reach = longest;
    let mut before = whole[1].clone();
    // Until a hundred were killed; those that were over before are not counted.
    for round in 0.. {
        if n_killed == 100 {
            break;
        }
        let seed = if round % 2 == 0 { "1" } else { "2" };
        let mut child = folder.command(&args(seed)).stdout(std::process::Stdio::null()).spawn().unwrap();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(reach.mul_f64((random >> 33) as f64 / (1u64 << 31) as f64));
        let is_over = child.try_wait().unwrap().is_some();
        child.kill().unwrap();
        child.wait().unwrap();
        n_killed += u32::from(!is_over);
        // However busy the machine is, about one in six gets to the end, and many are killed near it.
        reach = reach.mul_f64(if is_over { 0.8 } else { 1.05 });
        let now = std::fs::read(&path).unwrap();
        assert!(whole.contains(&now), "round {round}: a mixture of {} bytes", now.len());
        n_changed += u32::from(now != before);
        before = now;
    }
    // Some were killed before the file was there, and some after.
    assert!(n_changed >= 3, "{n_changed} changes");
}

#[test]
fn exports_are_what_other_tools_read() {
    let folder = Folder::new();
    folder.write("t.csv", TABLE);
    folder.write("d.csv", "doc,word,count\nd1,cat,3\nd1,dog,1\nd2,eel,2\n");
    fit(&folder, "k[2] -> i j s", "t.csv", &["vb"], "f.polyurn");
    fit(&folder, "doc -> t[2] -> word", "d.csv", &["vb"], "d.polyurn");
    let bif = folder.ok(&["export", "f.polyurn", "--to", "bif"]);
    assert!(bif.contains("probability ( i | k ) {") && bif.contains("type discrete [ 3 ] { a, b, _e9 };"), "{bif}");
    assert!(
        folder.ok(&["export", "f.polyurn", "--to", "csv", "--factors"]).starts_with("factor,k,i,j,s,weight\ncore,0,")
    );
    let topics: serde_json::Value =
        serde_json::from_str(&folder.ok(&["export", "d.polyurn", "--to", "pyldavis"])).unwrap();
    assert_eq!(topics["doc_lengths"], serde_json::json!([4.0, 2.0]));
    assert_eq!(topics["vocab"], serde_json::json!(["cat", "dog", "eel"]));
    let json: serde_json::Value = serde_json::from_str(&folder.ok(&["export", "f.polyurn", "--to", "json"])).unwrap();
    assert_eq!(json["tables"][1]["node"], "i");
    folder.ok(&["export", "f.polyurn", "--to", "npz", "-o", "f.npz"]);
    assert!(std::fs::read(folder.path().join("f.npz")).unwrap().starts_with(b"PK"));
    let (code, error) = folder.fails(&["export", "f.polyurn", "--to", "pyldavis"]);
    assert!(code == 2 && error.contains("doc -> topic -> word"), "{error}");
    let (code, error) = folder.fails(&["export", "f.polyurn", "--to", "csv", "--draw", "best"]);
    assert!(code == 2 && error.contains("holds no draws"), "{error}");
}

#[test]
fn labels_of_every_kind_survive() {
    let folder = Folder::new();
    folder.write("t.csv", "\"a b\",\"x\"\"y\"\n\"two\nlines\",\"1,5\"\n#,Ω\n\" blank \",Ω\n");
    fit(&folder, "k[2] -> \"a b\" \"x\"\"y\"", "t.csv", &["vb"], "f.polyurn");
    let out = folder.ok(&["predict", "--fit", "f.polyurn", "--data", "t.csv", "--keep", "a b", "--impute", "-q"]);
    assert!(
        out.starts_with("a b,log_probability,k,k:p,a b:imputed,a b:p,\"x\"\"y:imputed\",\"x\"\"y:p\"\n\"two\nlines\","),
        "{out}"
    );
    assert!(out.contains("\n\" blank \","), "{out}");
    assert!(folder.ok(&["info", "f.polyurn"]).contains("two\\nlines"));
}

/// The model as it was typed, what spreads of a bound are worth, and what a stop left undone.
#[test]
fn a_fit_says_what_it_is_in_the_words_of_its_user() {
    let folder = Folder::new();
    folder.write("d.csv", include_str!("../../src/demo_data/dilemmas.csv"));
    let fit = ["fit", "--model", "lca(2)", "--data", "d.csv", "--seed", "1"];
    let text = folder.ok(&[&fit[..], &["-o", "d.polyurn"]].concat());
    assert!(text.contains("of variational Bayes, often too small"), "{text}");
    let info = folder.ok(&["info", "d.polyurn"]);
    let model = info.lines().find(|line| line.starts_with("model")).unwrap();
    assert!(model.ends_with(" lca(2)") && info.contains("r -> passenger"), "{info}");
    assert!(folder.ok(&["report", "d.polyurn"]).contains("Model <code>lca(2)</code>"));
    let output = folder.run(&[&fit[..], &["--restarts", "1000000", "--time-limit", "300ms"]].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("of 1000000 starts had finished") && !said.contains(" runs "), "{said}");
    let heldout = folder.ok(&["score", "--model", "lca(2)", "--data", "d.csv", "--heldout", "d.csv", "--seed", "1"]);
    assert!(heldout.contains("216, in 216 records"), "{heldout}");
}
