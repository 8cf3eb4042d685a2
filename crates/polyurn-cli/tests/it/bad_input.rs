//! Bad input: exit code 2, one clear line (and a caret below for model text), nothing written.

use crate::support::Folder;
use std::process::Output;

/// A data file, the arguments, and words that the error must hold.
struct Bad {
    file: (&'static str, &'static [u8]),
    args: &'static [&'static str],
    words: &'static [&'static str],
}

const GOOD: (&str, &[u8]) = ("d.csv", b"i,j,count\n0,0,2\n0,1,1\n1,1,3\n");

/// A bad model text.
const fn model(args: &'static [&'static str], words: &'static [&'static str]) -> Bad {
    Bad { file: GOOD, args, words }
}

/// A bad data file, scored by a good model.
const fn data(
    name: &'static str,
    contents: &'static [u8],
    args: &'static [&'static str],
    words: &'static [&'static str],
) -> Bad {
    Bad { file: (name, contents), args, words }
}

const CSV: &[&str] = &["score", "--model", "i -> j", "--data", "d.csv"];
const TNS: &[&str] = &["score", "--model", "i -> j", "--data", "d.tns"];
const MTX: &[&str] = &["score", "--model", "i -> j", "--data", "d.mtx"];
const FILE: &[&str] = &["score", "--model", "m.json", "--data", "m.json", "--format", "csv"];

const ALL: &[Bad] = &[
    // Flags of the particle engines.
    model(
        &["score", "--model", "k[2] -> h[2] -> i; k -> j", "--data", "d.csv", "--split-merge", "1"],
        &["--split-merge", "one hidden node"],
    ),
    model(&["score", "--model", "k[2] -> i j", "--data", "d.csv", "--particles", "0"], &["--particles", "0"]),
    model(&["score", "--model", "k[2] -> i j", "--data", "d.csv", "--particles", "many"], &["--particles", "many"]),
    model(&["score", "--model", "k[2] -> i j", "--data", "d.csv", "--runs", "0"], &["--runs", "0"]),
    model(&["score", "--model", "k[2] -> i j", "--data", "d.csv", "--ess", "1.5"], &["--ess", "1.5", "always"]),
    model(&["score", "--model", "k[2] -> i j", "--data", "d.csv", "--ess", "0"], &["--ess", "never"]),
    model(&["score", "--model", "k[2] -> i j", "--data", "d.csv", "--heat", "0.5"], &["--heat", "0.5"]),
    model(
        &["score", "--model", "k[2] -> i j", "--data", "d.csv", "--heat", "1", "--cooling", "5"],
        &["--cooling", "--heat"],
    ),
    model(
        &["score", "--model", "k[2] -> i j", "--data", "d.csv", "--order", "sorted"],
        &["--order", "sorted", "by:NODE"],
    ),
    model(&["score", "--model", "k[2] -> i j", "--data", "d.csv", "--order", "by:q"], &["--order", "`q`"]),
    model(
        &["score", "--model", "k[2] -> i j", "--data", "d.csv", "--order", "by:k"],
        &["--order by:k", "no record", "every record shows: i, j"],
    ),
    model(
        &["fit", "--model", "k[2] -> i j", "--data", "d.csv", "--method", "smc", "--order", "by:k"],
        &["--order by:k", "i, j"],
    ),
    data(
        "d.csv",
        b"i,j\n0,0\n0,\n,1\n",
        &["score", "--model", "k[2] -> i j", "--data", "d.csv", "--order", "by:k"],
        &["--order by:k", "records show: i, j"],
    ),
    model(&["score", "--model", "k[2] -> i j", "--data", "d.csv", "--resample", "fair"], &["fair", "systematic"]),
    model(&["score", "--model", "k[2] -> i j", "--data", "d.csv", "--kernel", "gpu"], &["gpu", "scalar"]),
    model(
        &["score", "--model", "k[2] -> i j", "--data", "d.csv", "--method", "exact", "--particles", "5"],
        &["--particles", "exact"],
    ),
    model(
        &["score", "--model", "k[2] -> i j", "--data", "d.csv", "--method", "sis", "--ess", "0.5"],
        &["--ess", "sis"],
    ),
    model(
        &["score", "--model", "k[2] -> i j", "--data", "d.csv", "--method", "naive", "--runs", "3"],
        &["--runs", "naive"],
    ),
    model(&["fit", "--model", "k[2] -> i j", "--data", "d.csv", "--method", "exact", "--hidden"], &["--hidden", "smc"]),
    data(
        "d.csv",
        b"i,j\n0,0\n0,\n",
        &["score", "--model", "k[2] -> i j", "--data", "d.csv", "--method", "naive"],
        &["naive", "same nodes"],
    ),
    // Model text.
    model(&["score", "--model", "", "--data", "d.csv"], &["model"]),
    model(&["score", "--model", "i ->", "--data", "d.csv"], &["^"]),
    model(&["score", "--model", "i -> j -> i", "--data", "d.csv"], &["cycle", "i -> j -> i", "^"]),
    model(&["score", "--model", "i -> i", "--data", "d.csv"], &["`i`", "^"]),
    model(&["score", "--model", "i -> k -> j", "--data", "d.csv"], &["`k`", "size", "k[4]", "^"]),
    model(&["score", "--model", "i -> k[0] -> j", "--data", "d.csv"], &["0", "^"]),
    model(&["score", "--model", "i -> k[x] -> j", "--data", "d.csv"], &["x", "^"]),
    model(&["score", "--model", "i -> k[2 -> j", "--data", "d.csv"], &["^"]),
    model(&["score", "--model", "i -> k[2]] -> j", "--data", "d.csv"], &["]", "^"]),
    model(&["score", "--model", "i => j", "--data", "d.csv"], &["^"]),
    model(&["score", "--model", "i -> k[2]; k[3] -> j", "--data", "d.csv"], &["2", "3", "^"]),
    model(&["score", "--model", "i -> k[1..4] -> j", "--data", "d.csv"], &["several sizes", "^"]),
    model(&["score", "--model", "i -> j; i ~ q", "--data", "d.csv"], &["q", "^"]),
    model(&["score", "--model", "k[2] -> i; j; i ~ j", "--data", "d.csv"], &["tied", "shape", "^"]),
    model(&["score", "--model", "foo(3)", "--data", "d.csv"], &["foo", "lda"]),
    model(&["score", "--model", "lda()", "--data", "d.csv"], &["lda"]),
    model(&["score", "--model", "mmsb(2)", "--data", "d.csv"], &["3", "mmsb"]),
    model(&["score", "--model", "tucker(2,2,2)", "--data", "d.csv"], &["tucker"]),
    model(&["score", "--model", "einsum: ir,jr; r[2]", "--data", "d.csv"], &["->"]),
    model(&["score", "--model", "einsum: ir,jr->ijk; r[2]", "--data", "d.csv"], &["k", "^"]),
    model(&["score", "--model", "einsum: ir,jr->i; r[2]; j[2]", "--data", "d.csv"], &["column"]),
    model(&["score", "--model", "missing.json", "--data", "d.csv"], &["missing.json"]),
    // Model files.
    data("m.json", b"{", FILE, &["m.json"]),
    data("m.json", b"{\"nodes\": [], \"edges\": []}", FILE, &["node"]),
    data("m.json", b"{\"nodes\": [{\"name\": \"x\", \"card\": 2}], \"edges\": [[\"x\", \"y\"]]}", FILE, &["`y`"]),
    data("m.json", b"{\"nodes\": [{\"name\": \"x\", \"kard\": 2}]}", FILE, &["kard"]),
    data("m.json", b"{\"nodes\": [{\"name\": \"x\"}, {\"name\": \"x\"}]}", FILE, &["`x`"]),
    data("m.json", b"{\"nodes\": [{\"name\": \"x\"}], \"edges\": [], \"a\": -1}", FILE, &["a", "-1"]),
    data("m.json", b"{\"nodes\": [{\"name\": \"x\"}], \"edges\": [], \"prior\": {\"kind\": \"bde\"}}", FILE, &["bde"]),
    data(
        "p.json",
        b"{\"kind\": \"base\", \"marginals\": {\"a\": [1, 0]}}",
        &["simulate", "--model", "a[2] -> c[2]", "--prior", "p.json", "--pseudo-count", "a=1", "--tokens", "9"],
        &["`c`", "a = 1", "zero"],
    ),
    model(&["score", "--model", "i", "--data", "d.csv", "--pseudo-count", "i=1e308"], &["`i`", "1e308"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--a", "1e300"], &["1e300"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--b", "1e308"], &["1e308"]),
    model(&["score", "--model", "-> i", "--data", "d.csv"], &["name", "^"]),
    model(&["simulate", "--model", "count[2]", "--tokens", "3"], &["`count`"]),
    // CSV.
    data("d.csv", b"", CSV, &["d.csv", "empty"]),
    data("d.csv", b"i,i\n0,0\n", CSV, &["d.csv", "`i`"]),
    data("d.csv", b"i,j,count\n0,0\n", CSV, &["line 2"]),
    data("d.csv", b"i,j,count\n0,0,1,1\n", CSV, &["line 2"]),
    data("d.csv", b"i,j,count\n0,0,1\n0,1,-3\n", CSV, &["line 3", "count", "-3"]),
    data("d.csv", b"i,j,count\n0,0,1.5\n", CSV, &["line 2", "count", "1.5"]),
    data("d.csv", b"i,j,count\n0,0,many\n", CSV, &["line 2", "count", "many"]),
    data("d.csv", b"i,j,count\n0,0,\n", CSV, &["line 2", "count"]),
    data("d.csv", b"i,j,count\n0,0,99999999999999999999\n", CSV, &["line 2", "99999999999999999999"]),
    data("d.csv", b"i,j,count\n0,0,18446744073709551615\n1,0,1\n", CSV, &["line 3"]),
    data("d.csv", b"i,j,count\n0,\xff,1\n", CSV, &["line 2", "UTF-8"]),
    data("d.csv", b"i,j,count\n0,\"x,1\n", CSV, &["line 2", "quote"]),
    data("d.csv", b"i,j,count\n0,,?\n", CSV, &["line 2", "?"]),
    data("d.csv", b"i,j,count\n0,0,?\n0,0,4\n", CSV, &["line 3", "line 2"]),
    data("d.csv", b"i,j,count\n0,0,?\n", CSV, &["--b"]),
    data("d.csv", b"i,j,z,count\n0,0,1,?\n", CSV, &["line 2", "`z`"]),
    data(
        "d.csv",
        b"i,j\n0,0\n5,1\n",
        &["score", "--model", "i[3] -> j", "--data", "d.csv"],
        &["line 3", "column i", "5", "3"],
    ),
    data(
        "d.csv",
        b"i,j\na,0\nb,1\nc,1\n",
        &["score", "--model", "i[2] -> j", "--data", "d.csv"],
        &["column i", "3", "2"],
    ),
    data("d.csv", b"i,j\n,0\n,1\n", CSV, &["`i`", "i[4]"]),
    // .tns
    data("d.tns", b"", TNS, &["d.tns", "no line"]),
    data("d.tns", b"1 1 2\n0 1 1\n", TNS, &["line 2", "0"]),
    data("d.tns", b"1 1 2\n1 1 1 1\n", TNS, &["line 2"]),
    data("d.tns", b"1 x 2\n", TNS, &["line 1", "x"]),
    data("d.tns", b"1 1 2.5\n", TNS, &["line 1", "2.5"]),
    data("d.tns", b"1 1 -2\n", TNS, &["line 1", "-2"]),
    data("d.tns", b"1 1 1 2\n", TNS, &["3 axes", "--columns"]),
    // Matrix Market.
    data("d.mtx", b"%%NotMatrix\n", MTX, &["line 1"]),
    data("d.mtx", b"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n", MTX, &["complex"]),
    data("d.mtx", b"%%MatrixMarket matrix coordinate integer general\n2 2 1\n3 1 1\n", MTX, &["line 3", "3"]),
    data("d.mtx", b"%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 1\n", MTX, &["2", "1"]),
    data("d.mtx", b"%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 -4\n", MTX, &["line 3", "-4"]),
    data("d.mtx", b"%%MatrixMarket matrix coordinate integer general\n", MTX, &["d.mtx"]),
    // Bags of words, rows of features, arrays.
    data("d.uci", b"2\n2\n1\n0 1 1\n", &["check", "d.uci"], &["line 4", "column doc", "0"]),
    data("d.uci", b"2\n2\n9\n1 1 1\n", &["check", "d.uci"], &["after 1", "promises 9"]),
    data("d.ldac", b"2 0:1\n", &["check", "d.ldac"], &["line 1", "2", "1"]),
    data("d.ldac", b"1 0:x\n", &["check", "d.ldac"], &["line 1", "entry 1", "0:x"]),
    data("d.ldac", b"1 0:1\n", &["check", "d.ldac", "--vocab", "nowhere"], &["nowhere"]),
    data("d.svm", b"1 0:1\n", &["check", "d.svm"], &["line 1", "0:1", "add 1"]),
    data("d.svm", b"1:2 3:4\n", &["check", "d.svm"], &["line 1", "1:2", "label"]),
    data("d.csv", b"i\n0\n", &["check", "d.csv", "--labels"], &["--labels", "csv"]),
    data("d.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': '|O', ", &["check", "d.npy"], &["d.npy", "header"]),
    data("d.npy", b"1,2\n", &["check", "d.npy"], &["d.npy", "no NumPy array"]),
    data("d.npz", b"PK\x03\x04cut", &["check", "d.npz"], &["d.npz", "cut short or damaged"]),
    data("d.csv", b"i,j\n1,a\n2,b\n", &["check", "d.csv", "--bin", "j=2"], &["line 2", "column j", "`a`"]),
    data("d.csv", b"i,j\n1,a\n2,b\n", &["check", "d.csv", "--bin", "k=2"], &["--bin k", "i, j"]),
    data("d.csv", b"i,j\n1,a\n2,b\n", &["check", "d.csv", "--bin", "i=1"], &["--bin", "i=1", "2 to 1000"]),
    data("d.csv", b"i,j\n1,\n", &["convert", "d.csv", "--to", "mtx"], &["missing values", "mtx"]),
    data("d.csv", b"i,j,k\n1,2,3\n", &["convert", "d.csv", "--to", "lda-c"], &["3 columns", "lda-c"]),
    // Files and formats.
    data("d.csv.gz", b"\x1f\x8b\x08\x00garbage", &["score", "--model", "i", "--data", "d.csv.gz"], &["d.csv.gz"]),
    data("d.xyz", b"i\n0\n", &["score", "--model", "i", "--data", "d.xyz"], &["d.xyz", "--format"]),
    model(&["score", "--model", "i", "--data", "nowhere.csv"], &["nowhere.csv"]),
    model(&["score", "--model", "i", "--data", "."], &["."]),
    // Flags.
    model(&[], &["Usage"]),
    model(&["scoer"], &["scoer"]),
    model(&["score"], &["--model"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--particels", "3"], &["--particels"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--a", "0"], &["--a", "0"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--a", "nan"], &["nan"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--a", "-2"], &["-2"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--b", "-1"], &["b", "-1"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--shape", "inf"], &["shape", "inf"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--method", "magic"], &["magic", "exact"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--max-memory", "lots"], &["lots"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--time-limit", "-5s"], &["-5s"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--threads", "0"], &["0"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--seed", "x"], &["x"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--totals", "1..5"], &["--totals"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--given", "q"], &["q"]),
    model(&["score", "--model", "i -> j", "--data", "d.csv", "--given", "j"], &["j", "root"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--pseudo-count", "q=1"], &["`q`"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--pseudo-count", "i=-1"], &["-1"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--pseudo-count", "i"], &["NODE=VALUE"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--prior", "none"], &["none"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--prior", "nowhere.json"], &["nowhere.json"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--columns", "a,b,c"], &["--columns"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--columns", "i,i"], &["--columns", "`i`", "twice"]),
    model(&["score", "--model", "i", "--data", "d.csv", "--columns", "i,q"], &["--columns", "`q`"]),
    model(&["simulate", "--tokens", "3"], &["--model", "--from"]),
    model(&["simulate", "--model", "i[2] -> j", "--tokens", "3"], &["`j`", "size"]),
    model(&["simulate", "--model", "i[2]"], &["--tokens"]),
    model(&["simulate", "--model", "i[2]", "--tokens", "3", "--seen", "q"], &["`q`"]),
    model(&["simulate", "--model", "i[2]", "--tokens", "3", "--format", "tns"], &["--format", "--from"]),
    model(&["fit", "--model", "i", "--data", "d.csv", "--method", "exact", "--a", "1,2"], &["--a"]),
    model(&["enumerate", "--model", "i", "--data", "d.csv", "--bins", "0"], &["0"]),
    model(&["check"], &["FILE"]),
    model(&["demo", "--a", "-1"], &["-1"]),
];

/// What a person sees of one bad input: the file as it is (escaped), the command, and all that it says.
pub fn transcript(file: (&str, &[u8]), args: &[&str], said: &str) -> String {
    let quoted = |word: &&str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,/:".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) { (*word).to_owned() } else { format!("'{word}'") }
    };
    let command: Vec<String> = std::iter::once(&"polyurn").chain(args).map(quoted).collect();
    let file = if file.0.is_empty() { String::new() } else { format!("# {}: {}\n", file.0, file.1.escape_ascii()) };
    format!("{file}$ {}\n{said}\n", command.join(" "))
}

/// What is wrong with how a bad input was met: its exit code, its lines, or that the folder is no longer as it was.
pub fn complaints_about(output: &Output, args: &[&str], is_left: bool) -> Vec<String> {
    let error = String::from_utf8_lossy(&output.stderr);
    // A caret takes two more lines; the bare command prints its help.
    let n_lines = error.lines().filter(|line| !line.starts_with("warning: ")).count();
    let wants_caret = error.lines().any(|line| line.contains('^') && line.trim_matches([' ', '^']).is_empty());
    let all = [
        (output.status.code() != Some(2), "the exit code is not 2"),
        (!args.is_empty() && n_lines != if wants_caret { 3 } else { 1 }, "not one line"),
        (!output.stdout.is_empty() || !is_left, "something was written"),
        (error.contains("panicked"), "panic"),
    ];
    let wrong = all.into_iter().filter(|(is_wrong, _)| *is_wrong);
    wrong.map(|(_, what)| format!("{what}: {:?}, {args:?}\n{error}", output.status.code())).collect()
}

#[test]
fn bad_input_gets_exit_code_2_and_one_clear_line() {
    assert!(ALL.len() >= 90);
    let mut complaints = Vec::new();
    let mut transcripts = String::new();
    for bad in ALL {
        let folder = Folder::new();
        folder.write(bad.file.0, bad.file.1);
        let writes = bad.args.len() > 1 && bad.args[0] != "scoer" && bad.args != ["score"];
        let args: Vec<&str> = if writes { [bad.args, &["-o", "out"]].concat() } else { bad.args.to_vec() };
        let output = folder.run(&args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        // The bare command prints its help, which has a test of its own.
        if !bad.args.is_empty() {
            transcripts += &transcript(bad.file, bad.args, &error);
        }
        let is_left = folder.names() == [bad.file.0];
        complaints.extend(complaints_about(&output, bad.args, is_left));
        let missing = bad.words.iter().filter(|word| !error.contains(**word));
        complaints.extend(missing.map(|word| format!("`{word}` is missing: {:?}\n{error}", bad.args)));
    }
    assert!(complaints.is_empty(), "{} complaints\n\n{}", complaints.len(), complaints.join("\n"));
    compare_with_reviewed("bad_input.txt", &transcripts);
}

/// Every message was read by a person: one that has changed is to be read again. POLYURN_ACCEPT=1 writes them down as they are now.
pub fn compare_with_reviewed(name: &str, transcripts: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(name);
    if std::env::var_os("POLYURN_ACCEPT").is_some() {
        std::fs::write(&path, transcripts).unwrap();
    }
    let reviewed = std::fs::read_to_string(&path).unwrap_or_default();
    let changed: Vec<&str> = transcripts.split("\n\n").filter(|one| !reviewed.contains(one)).collect();
    assert!(changed.is_empty(), "not as reviewed; read them, then POLYURN_ACCEPT=1:\n\n{}", changed.join("\n\n"));
    assert_eq!(transcripts, reviewed, "something that was reviewed is gone; read the rest, then POLYURN_ACCEPT=1");
}

#[test]
fn no_two_bad_inputs_are_the_same() {
    for (ix, bad) in ALL.iter().enumerate() {
        assert!(ALL[..ix].iter().all(|other| (other.args, other.file) != (bad.args, bad.file)), "{:?}", bad.args);
    }
}
