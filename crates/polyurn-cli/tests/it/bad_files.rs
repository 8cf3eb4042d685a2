//! Bad input beyond data and models: fit files, results, weights, checkpoints, states, and the flags that go with them.

use crate::bad_input::{compare_with_reviewed, complaints_about, transcript};
use crate::support::Folder;

/// One file beside those that are always there (none without a name), and the arguments.
type Bad = (&'static str, &'static [u8], &'static [&'static str]);

const NONE: &[u8] = b"";
const SELECT: &[&str] = &["select", "--model", "k[1..2] -> i j", "--data", "d.csv", "--model-prior", "w.csv"];
const HELD_OUT: &[&str] = &["score", "--model", "i -> k[2] -> j", "--data", "d.csv", "--heldout", "h.csv"];
const PREDICT: &[&str] = &["predict", "--fit", "fit.polyurn", "--data", "n.csv"];
const PRIOR: &[&str] = &["score", "--model", "i -> j", "--data", "d.csv", "--prior", "p.json"];
const SMC: &[&str] = &["score", "--model", "k[2] -> i j", "--data", "d.csv", "--method", "smc", "--checkpoint", "c"];
const STREAM: &[&str] =
    &["score", "--stream", "--model", "k[2] -> i[2] j[2]", "--data", "d.csv", "--b", "1", "--state", "s"];

const ALL: &[Bad] = &[
    // Fit files and what is asked of them.
    ("", NONE, &["predict", "--fit", "nowhere.polyurn", "--data", "d.csv"]),
    ("", NONE, &["predict", "--fit", "d.csv", "--data", "d.csv"]),
    ("", NONE, &["predict", "--fit", "fit.polyurn", "--data", "nowhere.csv"]),
    ("", NONE, &["predict", "--fit", ".", "--data", "d.csv"]),
    ("e.polyurn", NONE, &["predict", "--fit", "e.polyurn", "--data", "d.csv"]),
    ("e.polyurn", b"PK\x03\x04 and no more", &["info", "e.polyurn"]),
    ("n.csv", b"", PREDICT),
    ("n.csv", b"q\n1\n", PREDICT),
    ("n.csv", b"i,i\n0,0\n", PREDICT),
    ("n.csv", b"i,j\n0,7\n", PREDICT),
    ("n.csv", b"i,j\n0\n", PREDICT),
    ("n.csv", b"i,j,count\n0,0,-1\n", PREDICT),
    ("n.csv", b"i,j,count\n0,0,many\n", PREDICT),
    ("", NONE, &["predict", "--fit", "fit.polyurn", "--data", "d.csv", "--keep", "q"]),
    ("", NONE, &["predict", "--fit", "fit.polyurn", "--data", "d.csv", "--given", "k"]),
    ("", NONE, &["predict", "--fit", "fit.polyurn", "--data", "d.csv", "--given", "q"]),
    ("", NONE, &["predict", "--fit", "fit.polyurn", "--data", "d.csv", "--draw", "99"]),
    ("", NONE, &["predict", "--fit", "fit.polyurn", "--data", "d.csv", "--draw", "worst"]),
    ("", NONE, &["export", "fit.polyurn", "--to", "xlsx"]),
    ("", NONE, &["export", "fit.polyurn", "--to", "npz", "--factors"]),
    ("", NONE, &["export", "fit.polyurn", "--to", "csv", "--draw", "99"]),
    ("", NONE, &["export", "fit.polyurn", "--to", "pyldavis", "--draw", "99"]),
    ("", NONE, &["export", "d.csv", "--to", "csv"]),
    // Results for a report.
    ("", NONE, &["report", "nowhere.json"]),
    ("", NONE, &["report", "d.csv"]),
    ("r.json", b"{}", &["report", "r.json"]),
    ("r.json", b"[1, 2]", &["report", "r.json"]),
    ("r.json", b"{\"models\": []}", &["report", "r.json"]),
    ("r.json", b"{\"models\": [{\"model\": 3}], \"best\": \"x\"}", &["report", "r.json"]),
    ("r.json", b"{\"models\": ", &["report", "r.json"]),
    // Rankings.
    ("", NONE, &["select", "--model", "k[1..2] -> i j", "--data", "d.csv", "--model-prior", "nowhere.csv"]),
    ("w.csv", b"", SELECT),
    ("w.csv", b"k\n1\n", SELECT),
    ("w.csv", b"q,weight\n1,1\n", SELECT),
    ("w.csv", b"k,weight\n1,-1\n", SELECT),
    ("w.csv", b"k,weight\n1,much\n", SELECT),
    ("w.csv", b"k,weight\n1,0\n2,0\n", SELECT),
    ("w.csv", b"k,weight\n1,1\n1,2\n", SELECT),
    ("w.csv", b"k,weight\n7,1\n", SELECT),
    ("", NONE, &["select", "--model", "k[3..1] -> i j", "--data", "d.csv"]),
    ("", NONE, &["select", "--model", "k[1..2000000] -> i j", "--data", "d.csv"]),
    ("", NONE, &["select", "--model", "i[1..3] -> j", "--data", "d.csv"]),
    ("", NONE, &["select", "--model", "k[1..2] -> i j", "--data", "d.csv", "--sensitivity", "x"]),
    ("", NONE, &["select", "--model", "k[1..2] -> i j", "--data", "d.csv", "--sensitivity", "0"]),
    ("", NONE, &["select", "--model", "k[1..2] -> i j", "--data", "d.csv", "--csv", "--json"]),
    ("", NONE, &["select", "--model", "k[1..2] -> i j", "--data", "d.csv", "--a", "1,1"]),
    ("", NONE, &["compare", "--data", "d.csv"]),
    ("", NONE, &["compare", "--model", "i -> j", "--model", "k[2] -> i", "--data", "d.csv"]),
    // Fits.
    ("", NONE, &["fit", "--model", "k[2] -> i j", "--data", "d.csv", "--method", "magic"]),
    ("", NONE, &["fit", "--model", "k[2] -> i j", "--data", "d.csv", "--method", "em", "--restarts", "0"]),
    ("", NONE, &["fit", "--model", "k[2] -> i j", "--data", "d.csv", "--method", "em", "--tol", "-1"]),
    ("", NONE, &["fit", "--model", "k[2] -> i j", "--data", "d.csv", "--method", "em", "--max-iter", "0"]),
    ("", NONE, &["fit", "--model", "k[2] -> i j", "--data", "d.csv", "--method", "em", "--init", "nowhere.json"]),
    ("", NONE, &["fit", "--model", "k[2] -> i j", "--data", "d.csv", "--method", "gibbs", "--chains", "0"]),
    ("", NONE, &["fit", "--model", "k[2] -> i j", "--data", "d.csv", "--method", "gibbs", "--thin", "0"]),
    ("", NONE, &["fit", "--model", "k[2] -> i j", "--data", "d.csv", "--method", "vb", "--prior", "none"]),
    ("", NONE, &["fit", "--model", "k[2] -> i j", "--data", "d.csv", "--method", "svb"]),
    (
        "i.json",
        b"{\"k\": ",
        &["fit", "--model", "k[2] -> i j", "--data", "d.csv", "--method", "em", "--init", "i.json"],
    ),
    (
        "i.json",
        b"{\"q\": [1]}",
        &["fit", "--model", "k[2] -> i j", "--data", "d.csv", "--method", "em", "--init", "i.json"],
    ),
    // Priors.
    ("p.json", b"{", PRIOR),
    ("p.json", b"{\"kind\": \"tables\"}", PRIOR),
    ("p.json", b"{\"kind\": \"bdeu\", \"size\": 0}", PRIOR),
    ("p.json", b"{\"kind\": \"base\", \"marginals\": {\"i\": [0.5]}}", PRIOR),
    ("p.json", b"{\"kind\": \"base\", \"marginals\": {\"i\": [-1, 2]}}", PRIOR),
    ("p.json", b"{\"kind\": \"base\", \"marginals\": {\"q\": [1, 1]}}", PRIOR),
    ("m.toml", b"nodes = 3", &["score", "--model", "m.toml", "--data", "d.csv"]),
    ("m.toml", b"[[nodes]]\nname = \"i\"\nname = \"j\"", &["score", "--model", "m.toml", "--data", "d.csv"]),
    // What is held out.
    ("", NONE, &["score", "--model", "i -> k[2] -> j", "--data", "d.csv", "--heldout", "nowhere.csv"]),
    ("h.csv", b"i,q\n0,0\n", HELD_OUT),
    ("h.csv", b"i,j\n0,9\n", HELD_OUT),
    ("h.csv", b"i,j,count\n0,0,?\n", HELD_OUT),
    // Unfinished work.
    ("c", b"hello", SMC),
    ("c", b"POLYURN2", SMC),
    ("c", b"POLYURN2\0\0\0\0\0\0\0\0\0\0\0\0", SMC),
    ("", NONE, &["score", "--model", "k[2] -> i j", "--data", "d.csv", "--checkpoint", "d.csv"]),
    ("", NONE, &["score", "--model", "k[2] -> i j", "--data", "d.csv", "--checkpoint-every", "often"]),
    ("s", b"hello", STREAM),
    ("", NONE, &["score", "--stream", "--model", "k[2] -> i j", "--data", "d.csv", "--b", "1"]),
    ("", NONE, &["score", "--stream", "--model", "k[2] -> i[2] j[2]", "--data", "d.csv"]),
    ("", NONE, &["score", "--model", "k[2] -> i j", "--data", "d.csv", "--state", "s"]),
    // Simulation and description.
    ("", NONE, &["simulate", "--from", "nowhere.csv", "--tokens", "3"]),
    ("", NONE, &["simulate", "--model", "i[2]", "--tokens", "-3"]),
    ("", NONE, &["simulate", "--model", "i[2]", "--tokens", "1e3"]),
    ("", NONE, &["simulate", "--model", "i[2]", "--tokens", "99999999999999999999999"]),
    ("", NONE, &["info", "--model", "i ->"]),
    ("", NONE, &["info", "nowhere.polyurn"]),
    ("", NONE, &["check", "nowhere.csv"]),
];

#[test]
fn bad_files_get_exit_code_2_and_one_clear_line() {
    let model = Folder::new();
    const DATA: &str = "i,j,count\n0,0,2\n0,1,1\n1,1,3\n";
    model.write("d.csv", DATA);
    let fit = ["fit", "--model", "i -> k[2] -> j", "--data", "d.csv", "--method", "vb", "--seed", "1"];
    model.ok(&[&fit[..], &["-o", "fit.polyurn"]].concat());
    let fit = std::fs::read(model.path().join("fit.polyurn")).unwrap();
    let mut complaints = Vec::new();
    let mut transcripts = String::new();
    for (ix, &(name, contents, args)) in ALL.iter().enumerate() {
        assert!(!ALL[..ix].contains(&(name, contents, args)), "{args:?} twice");
        let folder = Folder::new();
        folder.write("d.csv", DATA);
        folder.write("fit.polyurn", &fit);
        if !name.is_empty() {
            folder.write(name, contents);
        }
        let before = folder.names();
        let output = folder.run(&[args, &["-o", "out"]].concat());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        transcripts += &transcript((name, contents), args, &error);
        complaints.extend(complaints_about(&output, args, folder.names() == before));
    }
    assert!(complaints.is_empty(), "{} complaints\n\n{}", complaints.len(), complaints.join("\n"));
    compare_with_reviewed("bad_files.txt", &transcripts);
}
