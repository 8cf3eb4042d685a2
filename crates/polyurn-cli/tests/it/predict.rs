//! `polyurn predict`: one line for each row, whatever the rows are.

use crate::support::Folder;
use std::io::Write;
use std::process::Stdio;

const WORDS: [&str; 6] = ["cat", "dog", "eel", "fox", "gnu", "hen"];

/// Documents about cats and dogs, or about foxes and gnus.
fn documents() -> String {
    let mut text = String::from("doc,word,count\n");
    for doc in 0..8 {
        for word in 0..3 {
            text += &format!("d{doc},{},{}\n", WORDS[3 * (doc % 2) + word], 3 + (doc + word) % 3);
        }
    }
    text
}

fn topic_folder(method: &[&str]) -> Folder {
    let folder = Folder::new();
    folder.write("d.csv", documents());
    let args = ["fit", "--model", "doc -> topic[2] -> word", "--data", "d.csv", "--seed", "4", "-q", "-o", "d.polyurn"];
    folder.ok(&[&args[..], &["--method"], method].concat());
    folder
}

fn rows(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn rows_come_out_in_order_with_kept_columns() {
    let folder = topic_folder(&["vb"]);
    folder.write("n.csv", "id,word,doc,count\n7,cat,d0,1\n8,,d1,2\n9,hen,,1\n10,,,5\n11,gnu,d1,?\n");
    let text =
        folder.ok(&["predict", "--fit", "d.polyurn", "--data", "n.csv", "--keep", "id,count", "--expected", "-q"]);
    let rows = rows(&text);
    assert_eq!(rows[0].join(","), "id,count,log_probability,log_probability_given,expected_count,topic,topic:p");
    let ids: Vec<String> = rows[1..].iter().map(|row| format!("{} {}", row[0], row[1])).collect();
    assert_eq!(ids, ["7 1", "8 2", "9 1", "10 5", "11 ?"]);
    // Nothing is shown: the probability is one.
    assert!(rows[4][2].parse::<f64>().unwrap().abs() < 1e-12);
    // Cats are of the topic that hens are not of.
    assert_ne!(rows[1][5], rows[3][5]);
    assert!(rows[1][6].parse::<f64>().unwrap() > 0.9);
    let json = folder.ok(&["predict", "--fit", "d.polyurn", "--data", "n.csv", "--keep", "id", "--json", "-q"]);
    assert_eq!(json.lines().count(), 5);
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(first["keep"]["id"], "7");
    assert_eq!(first["hidden"]["topic"]["value"], rows[1][5].as_str());
    assert_eq!(first["log_probability"].as_f64().unwrap(), rows[1][2].parse::<f64>().unwrap());
}

#[test]
fn a_kept_column_may_have_commas_in_its_name() {
    let folder = topic_folder(&["vb"]);
    folder.write("n.csv", "\"name, first\",id,word,doc\nAnn,7,cat,d0\n");
    let args = ["predict", "--fit", "d.polyurn", "--data", "n.csv", "-q", "--keep", "name, first", "--keep", "id,doc"];
    let text = folder.ok(&args);
    assert!(text.starts_with("\"name, first\",id,doc,log_probability,"), "{text}");
    assert!(text.lines().nth(1).unwrap().starts_with("Ann,7,d0,"), "{text}");
}

#[test]
fn threads_and_formats_do_not_matter() {
    let folder = topic_folder(&["vb"]);
    let args = ["predict", "--fit", "d.polyurn", "--data", "d.csv", "--probabilities", "-q", "--threads"];
    let one = folder.ok(&[&args[..], &["1"]].concat());
    assert_eq!(one, folder.ok(&[&args[..], &["3"]].concat()));
    folder.write("d.tsv", documents().replace(',', "\t"));
    assert_eq!(one, folder.ok(&["predict", "--fit", "d.polyurn", "--data", "d.tsv", "--probabilities", "-q"]));
    folder.write("x.tns", "1 1 2\n1 2 1\n2 2 3\n");
    let fit = ["fit", "--model", "nmf(2)", "--data", "x.tns", "--method", "vb", "-q", "--seed", "1", "-o", "x.polyurn"];
    folder.ok(&fit);
    assert_eq!(folder.ok(&["predict", "--fit", "x.polyurn", "--data", "x.tns", "-q"]).lines().count(), 4);
}

#[test]
fn unknown_values_are_refused_or_dropped() {
    let folder = topic_folder(&["vb"]);
    folder.write("n.csv", "doc,word\nd0,cat\nd0,yak\n");
    let (code, error) = folder.fails(&["predict", "--fit", "d.polyurn", "--data", "n.csv", "-o", "out.csv"]);
    assert_eq!(code, 2);
    assert!(error.contains("n.csv, line 3, column word: value `yak` of `word`"), "{error}");
    assert!(error.contains("--unseen drop") && error.lines().count() == 1, "{error}");
    assert!(!folder.names().contains(&"out.csv".to_owned()), "nothing is half written");
    let output = folder.run(&["predict", "--fit", "d.polyurn", "--data", "n.csv", "--unseen", "drop"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 3);
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 value that the fit does not know"), "{output:?}");
}

#[test]
fn new_documents_may_be_scattered_in_a_file_and_stand_together_in_a_stream() {
    let folder = topic_folder(&["vb"]);
    let sorted = "doc,word,count\nnew,cat,2\nnew,dog,1\nd1,fox,1\nother,hen,4\n";
    let scattered = "doc,word,count\nnew,cat,2\nd1,fox,1\nnew,dog,1\nother,hen,4\n";
    folder.write("sorted.csv", sorted);
    folder.write("scattered.csv", scattered);
    let args = ["predict", "--fit", "d.polyurn", "--keep", "doc,word", "-q", "--data"];
    let lines = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let whole = lines(folder.ok(&[&args[..], &["sorted.csv"]].concat()));
    assert_eq!(whole, lines(folder.ok(&[&args[..], &["scattered.csv"]].concat())));
    assert_eq!(whole, lines(folder.ok(&[&args[..], &["sorted.csv", "--together"]].concat())));
    let stream = |text: &str| {
        let mut command = folder.command(&[&args[..], &["-", "--format", "csv"]].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    assert_eq!(whole, lines(String::from_utf8(stream(sorted).stdout).unwrap()));
    let refused = stream(scattered);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(error.contains("line 4") && error.contains("`new`") && error.lines().count() == 1, "{error}");
    // A new document has no probability of its own, but its words have one given it.
    let row = whole.iter().find(|line| line.starts_with("new,cat,")).unwrap();
    assert!(row.starts_with("new,cat,,-"), "{row}");
}

#[test]
fn the_best_draw_gives_every_token_its_value() {
    let folder = topic_folder(&["smc", "--particles", "64", "--runs", "2", "--heat", "1"]);
    let text =
        folder.ok(&["predict", "--fit", "d.polyurn", "--data", "d.csv", "--draw", "best", "--keep", "doc,word", "-q"]);
    let rows = rows(&text);
    assert_eq!(rows.len(), 25);
    assert!(rows[1..].iter().all(|row| row[5].parse::<f64>().is_ok_and(|share| share >= 0.5)));
    let (code, error) = folder.fails(&["predict", "--fit", "d.polyurn", "--data", "d.csv", "--draw", "7"]);
    assert!(code == 2 && error.contains("holds no draw but the best"), "{error}");
}

#[test]
fn missing_values_are_imputed() {
    let folder = topic_folder(&["vb"]);
    folder.write("n.csv", "doc,word\nd0,\nd1,gnu\n");
    let text = folder.ok(&["predict", "--fit", "d.polyurn", "--data", "n.csv", "--impute", "-q"]);
    let rows = rows(&text);
    assert_eq!(rows[0][4..].join(","), "doc:imputed,doc:p,word:imputed,word:p");
    assert!(["cat", "dog", "eel"].contains(&rows[1][6].as_str()), "{text}");
    let p: f64 = rows[1][7].parse().unwrap();
    assert!(p > 0.2 && p < 0.5, "{p}");
    assert_eq!(rows[2][6..].join(","), "gnu,1");
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    let folder = topic_folder(&["vb"]);
    folder.write("other.csv", "x,y\n1,2\n");
    folder.write("empty.csv", "doc,word\n");
    let base = ["predict", "--fit", "d.polyurn", "--data"];
    for (args, wanted) in [
        (vec!["other.csv"], "no column is named after a node"),
        (vec!["d.csv", "--keep", "nothing"], "no column `nothing`"),
        (vec!["d.csv", "--given", "word"], "--given word"),
        (vec!["d.csv", "--columns", "a,b,c,d"], "--columns names 4"),
        (vec!["missing.csv"], "missing.csv"),
    ] {
        let (code, error) = folder.fails(&[&base[..], &args].concat());
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(wanted) && error.lines().count() == 1, "{error}");
    }
    assert_eq!(folder.ok(&[&base[..], &["empty.csv", "-q"]].concat()).lines().count(), 1, "a header without rows");
}

/// A million rows, fifty classes: seconds, and no more memory than for a thousand.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "long: run by make test-long"]
fn large_files_stream_through_little_memory() {
    let folder = Folder::new();
    let row = |ix: u64| format!("{},{},{}\n", ix * 7919 % 97, ix * 104_729 % 89, ix * 1_299_709 % 83);
    let small: String = std::iter::once("a,b,c\n".to_owned()).chain((0..3000).map(row)).collect();
    folder.write("small.csv", small);
    let fit = ["fit", "--model", "k[50] -> a b c", "--data", "small.csv", "--method", "vb", "--max-iter", "20"];
    folder.ok(&[&fit[..], &["--restarts", "1", "-q", "-o", "f.polyurn"]].concat());
    let large: String = std::iter::once("a,b,c\n".to_owned()).chain((0..1_000_000).map(row)).collect();
    folder.write("large.csv", large);
    let start = std::time::Instant::now();
    let args = ["predict", "--fit", "f.polyurn", "--data", "large.csv", "-q", "-o", "out.csv"];
    let mut child = folder.command(&args).spawn().unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak = peak.max(kilobytes.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(start.elapsed() < std::time::Duration::from_secs(20));
    assert!(peak < 150_000, "{peak} kB");
    let lines = std::fs::read_to_string(folder.path().join("out.csv")).unwrap().lines().count();
    assert_eq!(lines, 1_000_001);
}

/// Sum of count times a column of `predict`.
fn weighted(folder: &Folder, data: &str, column: usize) -> f64 {
    let text = folder.ok(&["predict", "--fit", "d.polyurn", "--data", data, "--keep", "count", "-q"]);
    rows(&text)[1..].iter().map(|row| row[0].parse::<f64>().unwrap() * row[column].parse::<f64>().unwrap()).sum()
}

#[test]
fn held_out_rows_of_known_documents_use_their_rows() {
    let folder = topic_folder(&["vb"]);
    folder.write("h.csv", "doc,word,count\nd0,cat,2\nd0,hen,1\nd1,gnu,3\nd5,fox,1\n");
    let args = ["score", "--model", "doc -> topic[2] -> word", "--data", "d.csv", "--heldout", "h.csv", "--seed", "4"];
    let json = folder.json(&args);
    let (joint, given) = (weighted(&folder, "h.csv", 1), weighted(&folder, "h.csv", 2));
    assert!((json["log_probability"].as_f64().unwrap() - joint).abs() < 1e-9, "{json}");
    assert!((json["log_probability_given"].as_f64().unwrap() - given).abs() < 1e-9, "{json}");
    assert_eq!((&json["tokens"], &json["n_units"], &json["units"]), (&7.0.into(), &3.0.into(), &"doc".into()));
    assert!((json["perplexity"].as_f64().unwrap() - (-given / 7.0).exp()).abs() < 1e-9);
    assert!(json["std_error"].as_f64().unwrap() > 0.0);
    assert!(folder.ok(&args).contains("perplexity"));
}

/// The same people, counted or one by one.
#[test]
fn held_out_rows_with_counts_are_as_many_rows() {
    let folder = Folder::new();
    folder.write("a.csv", "x,y,count\np,q,7\np,r,2\ns,q,1\ns,r,6\n");
    let rows: String =
        [("p,q\n", 7), ("p,r\n", 2), ("s,q\n", 1), ("s,r\n", 6)].iter().map(|(row, n)| row.repeat(*n)).collect();
    folder.write("rows.csv", format!("x,y\n{rows}"));
    let score = |heldout: &str| {
        folder.json(&["score", "--model", "k[2] -> x y", "--data", "a.csv", "--heldout", heldout, "--seed", "1"])
    };
    let (counted, listed) = (score("a.csv"), score("rows.csv"));
    for field in ["log_probability_per_token", "std_error", "perplexity", "tokens", "n_units"] {
        let (x, y) = (counted[field].as_f64().unwrap(), listed[field].as_f64().unwrap());
        assert!((x - y).abs() <= 1e-12 * x.abs(), "{field}: {x} {y}");
    }
}

#[test]
fn held_out_new_documents_are_completed() {
    let folder = topic_folder(&["vb"]);
    // Tokens 1, 3 and 5 tell about the document; 2 and 4 are scored.
    folder.write("h.csv", "doc,word,count\nnew,cat,3\nnew,dog,2\n");
    let args = ["score", "--model", "doc -> topic[2] -> word", "--data", "d.csv", "--heldout", "h.csv", "--seed", "4"];
    let json = folder.json(&args);
    assert_eq!(
        (&json["tokens"], &json["inference_tokens"], &json["new_values"]),
        (&2.0.into(), &3.0.into(), &1.into())
    );
    assert!(json["log_probability"].is_null() && json["std_error"].is_null(), "{json}");
    // The same by hand: rows of count 0 are predicted but tell nothing.
    folder.write("i.csv", "doc,word,count\nnew,cat,2\nnew,dog,1\nnew,eel,0\n");
    let text = folder.ok(&["predict", "--fit", "d.polyurn", "--data", "i.csv", "-q"]);
    let rows = rows(&text);
    let want: f64 = rows[1..3].iter().map(|row| row[1].parse::<f64>().unwrap()).sum();
    assert!((json["log_probability_given"].as_f64().unwrap() - want).abs() < 1e-9, "{json} {want}");
}

#[test]
fn held_out_flags_are_checked() {
    let folder = topic_folder(&["vb"]);
    folder.write("yak.csv", "doc,word\nd0,yak\nd0,cat\n");
    let args = ["score", "--model", "doc -> topic[2] -> word", "--data", "d.csv", "--heldout"];
    for (more, wanted) in [
        (&["yak.csv"][..], "column word: value `yak`"),
        (&["-"], "read only once"),
        (&["missing.csv"], "missing.csv"),
        (&["d.csv", "--method", "exact"], "--method vb"),
        (&["d.csv", "--given", "doc"], "--given"),
        (&["d.csv", "--particles", "9"], "--particles: --method vb has no use for it"),
        (&["d.csv", "--bracket"], "--bracket: --heldout has no use for it; leave it out"),
        (&["d.csv", "--sweeps", "9"], "--sweeps: --heldout has no use for it"),
        (&["d.csv", "--chains", "9"], "--chains: --heldout has no use for it"),
        (&["d.csv", "--method", "smc", "--chain-sweeps", "9"], "--chain-sweeps: --heldout has no use for it"),
        (
            &["d.csv", "--a", "1,2"],
            "--a: give one value here; a list makes a curve, which score draws without --heldout",
        ),
    ] {
        let (code, error) = folder.fails(&[&args[..], more].concat());
        assert!(code == 2 && error.contains(wanted) && error.lines().count() == 1, "{error}");
    }
    let json = folder.json(&[&args[..], &["yak.csv", "--unseen", "drop"]].concat());
    // A token that shows nothing but its document is no token of probability one.
    assert_eq!(
        (&json["dropped_values"], &json["tokens"], &json["empty_tokens"]),
        (&1.into(), &1.0.into(), &1.0.into())
    );
    let smc = ["d.csv", "--method", "smc", "--particles", "16", "--runs", "2", "--heat", "1"];
    assert!(folder.json(&[&args[..], &smc].concat())["perplexity"].as_f64().unwrap() < 6.0);
    let mixture = ["score", "--model", "k[2] -> doc word", "--data", "d.csv", "--heldout", "d.csv"];
    let json = folder.json(&mixture);
    assert_eq!((&json["units"], &json["log_probability"]), (&"records".into(), &json["log_probability_given"]));
}

#[test]
fn draws_are_kept_if_wanted_and_found_by_number() {
    let folder = topic_folder(&["vb"]);
    let fit = ["fit", "--model", "doc -> topic[2] -> word", "--data", "d.csv", "--seed", "2", "-q"];
    // A prior so strong that the words leave much open.
    let smc = ["--method", "smc", "--particles", "64", "--runs", "2", "--heat", "1", "--a", "100"];
    folder.ok(&[&fit[..], &smc, &["--draws", "3", "-o", "drawn.polyurn"]].concat());
    assert!(folder.ok(&["info", "drawn.polyurn"]).contains("draws from the posterior"));
    let predict =
        |draw: &str| folder.ok(&["predict", "--fit", "drawn.polyurn", "--data", "d.csv", "-q", "--draw", draw]);
    // Every row of the data has a token in every draw, so all shares are those of allocations; draws differ somewhere.
    let texts = ["best", "1", "2", "3"].map(predict);
    assert!(texts.iter().all(|text| text.lines().count() == texts[0].lines().count()));
    assert!(texts[1..].iter().any(|text| *text != texts[0]) || texts[1] != texts[2]);
    for (draw, wanted) in [("4", "3 draws; give a number from 1 to 3"), ("0", "from 1"), ("last", "`best`")] {
        let (code, said) = folder.fails(&["predict", "--fit", "drawn.polyurn", "--data", "d.csv", "--draw", draw]);
        assert!(code == 2 && said.contains(wanted), "{said}");
    }
    let of = |draw: &str| folder.ok(&["export", "drawn.polyurn", "--to", "json", "--draw", draw]);
    assert_ne!(of("best"), folder.ok(&["export", "drawn.polyurn", "--to", "json"]));
    let (code, said) = folder.fails(&[&fit[..], &["--method", "vb", "--draws", "3", "-o", "x.polyurn"]].concat());
    assert!(code == 2 && said.contains("--draws") && !folder.names().contains(&"x.polyurn".to_owned()), "{said}");
}

/// Runs name topics in their own ways; what is kept of them has the names of the fit's tables.
#[test]
fn all_draws_have_the_names_of_the_tables() {
    let folder = topic_folder(&["smc", "--particles", "30", "--runs", "6", "--draws", "8"]);
    let topics = |flags: &[&str]| -> Vec<String> {
        let flags = [&["predict", "--fit", "d.polyurn", "--data", "d.csv", "-q"], flags].concat();
        let rows = rows(&folder.ok(&flags));
        let column = rows[0].iter().position(|name| name == "topic").unwrap();
        rows[1..].iter().map(|row| row[column].clone()).collect()
    };
    let by_tables = topics(&[]);
    // Two topics that share no word: a draw with swapped names would differ in every row, one with the same in hardly any.
    for draw in ["best", "1", "2", "3", "4", "5", "6", "7", "8"] {
        let own = topics(&["--draw", draw]);
        let n_same = own.iter().zip(&by_tables).filter(|(one, other)| one == other).count();
        assert!(4 * n_same >= 3 * own.len(), "draw {draw}: {n_same} of {}", own.len());
    }
    // And the names are those of one file: its tables say which words each topic has.
    let info = folder.ok(&["info", "d.polyurn"]);
    assert!(info.contains("doc -> topic[2] -> word"), "{info}");
    let (_, message) = folder.fails(&["predict", "--fit", "d.polyurn", "--data", "d.csv", "--keep", "nome"]);
    assert!(message.contains("the columns are doc, word, count"), "{message}");
}

#[test]
fn a_held_out_row_of_unknown_count_is_refused() {
    let folder = topic_folder(&["vb"]);
    folder.write("h.csv", "doc,word,count\nd0,cat,2\nd1,gnu,?\n");
    let args = ["score", "--model", "doc -> topic[2] -> word", "--data", "d.csv", "--heldout", "h.csv", "--seed", "4"];
    let (code, error) = folder.fails(&args);
    assert_eq!(code, 2);
    assert!(error.contains("h.csv, line 3") && error.contains("the count is `?`"), "{error}");
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    folder.write("h.csv", "doc,word,count\nd0,cat,2\n");
    let text = folder.ok(&args);
    assert!(text.contains("2, in 1 value of doc\n") && text.contains("1 value, with their rows"), "{text}");
}

#[test]
fn documents_that_are_taken_for_those_of_the_fit_by_their_numbers_are_told() {
    let folder = Folder::new();
    let head = "%%MatrixMarket matrix coordinate integer general\n";
    folder.write("old.mtx", format!("{head}3 4 6\n1 1 5\n1 2 4\n2 3 6\n2 4 3\n3 1 2\n3 4 2\n"));
    folder.write("new.mtx", format!("{head}4 4 3\n1 3 5\n2 4 2\n4 1 2\n"));
    let model = ["--model", "doc -> topic[2] -> word", "--columns", "doc,word", "--seed", "4"];
    folder.ok(&[&["fit", "--data", "old.mtx", "--method", "vb", "-o", "m.polyurn", "-q"][..], &model].concat());
    let said = |args: &[&str]| String::from_utf8(folder.run(args).stderr).unwrap();
    let told = "2 values of doc have numbers that the fit has, and are taken for the same; 1 are new";
    let predicted = said(&["predict", "--fit", "m.polyurn", "--data", "new.mtx", "--columns", "doc,word"]);
    assert!(predicted.contains(told), "{predicted}");
    assert!(predicted.contains("3 rows, 2 known values of doc, 1 new value of doc"), "{predicted}");
    let score = folder.json(&[&["score", "--data", "old.mtx", "--heldout", "new.mtx"][..], &model].concat());
    assert_eq!((&score["known_values"], &score["new_values"]), (&2.into(), &1.into()), "{score}");
    assert!(score["warnings"].to_string().contains(told), "{score}");
    // Names are the user's own.
    let folder = topic_folder(&["vb"]);
    folder.write("n.csv", "doc,word\nd0,cat\nnew,dog\n");
    let output = folder.run(&["predict", "--fit", "d.polyurn", "--data", "n.csv"]);
    let predicted = String::from_utf8(output.stderr).unwrap();
    assert_eq!(predicted, "2 rows, 1 known value of doc, 1 new value of doc\n");
}

#[cfg(unix)]
#[test]
fn a_stopped_prediction_says_that_a_file_is_written_whole_or_not_at_all() {
    let folder = topic_folder(&["vb"]);
    folder.write("long.csv", format!("doc,word\n{}", "d0,cat\nd1,gnu\n".repeat(2_000_000)));
    let args = ["predict", "--fit", "d.polyurn", "--data", "long.csv", "-o", "out.csv", "--threads", "1"];
    let child = folder.command(&args).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(143), "{said}");
    assert!(said.contains("out.csv was not written") && said.contains("repeat the command, or leave -o out"), "{said}");
    assert!(!folder.names().contains(&"out.csv".to_owned()));
}
