//! Scores of fully observed networks against pgmpy's BDeu. Needs `POLYURN_BENCH_PYTHON`, a Python with pgmpy, which
//! `make bench-bdeu` sets up. Fails when the two differ by more than 1e-9 of a score.

use polyurn::Result;
use polyurn::control::Control;
use polyurn::counts::Dataset;
use polyurn::engine::exact::Exact;
use polyurn_bench::peer::{Peer, best_of};
use polyurn_bench::table::Row;
use polyurn_bench::{Section, wanted, with_problem};
use serde_json::Value;

/// The largest relative difference that passes.
const TOLERANCE: f64 = 1e-9;

fn main() -> Result<()> {
    let sections: [Section; 2] = [("time", time), ("agree", agree)];
    for (_, section) in wanted(sections) {
        section()?;
        println!();
    }
    Ok(())
}

/// A network as the peer describes it.
struct Network {
    text: String,
    a: f64,
}

impl Network {
    fn new(found: &Value) -> Self {
        let name = |node: usize| char::from(b'a' + node as u8).to_string();
        let list = |value: &Value| value.as_array().expect("a list").clone();
        let index = |value: &Value| value.as_u64().expect("a number") as usize;
        let mut parts: Vec<String> =
            list(&found["sizes"]).iter().enumerate().map(|(node, size)| format!("{}[{size}]", name(node))).collect();
        for (child, parents) in list(&found["parents"]).iter().enumerate() {
            let parents: Vec<String> = list(parents).iter().map(|parent| name(index(parent))).collect();
            if !parents.is_empty() {
                parts.push(format!("{} -> {}", parents.join(" "), name(child)));
            }
        }
        Network { text: parts.join("; "), a: found["a"].as_f64().expect("a number") }
    }

    /// From the text of the model and data in memory to the score.
    fn score(&self, data: &Dataset) -> Result<f64> {
        with_problem(&self.text, data, self.a, |problem| {
            Ok(Exact::default().ln_p_sequence(problem, &mut Control::default())?.ln_p_sequence.value())
        })
    }
}

fn difference(ours: f64, theirs: f64) -> f64 {
    ((ours - theirs) / theirs).abs()
}

fn time() -> Result<()> {
    println!(
        "BDeu of 4,177 rows, seven columns of five values and ten arrows, a = 10, one thread, three times in turn"
    );
    let mut readings = Vec::new();
    for _ in 0..3 {
        let peer = Peer::run("bdeu.py", "time");
        let (network, data) = (Network::new(&peer.found), peer.data()?);
        let (seconds, ours) = best_of(200, || network.score(&data))?;
        let theirs = peer.found["score"].as_f64().expect("a score");
        println!(
            "{:>10.3} ms  Polyurn; {} {:.1} ms: {:.1} times as long; relative difference {:.1e}",
            seconds * 1e3,
            peer.version(),
            peer.seconds() * 1e3,
            peer.seconds() / seconds,
            difference(ours, theirs)
        );
        assert!(difference(ours, theirs) <= TOLERANCE, "{ours} is not {theirs}");
        let remembered = peer.found["seconds_remembered"].as_f64().expect("seconds");
        println!("            the peer, of a network whose parts it scored before: {:.3} ms", remembered * 1e3);
        readings.push((peer, remembered, seconds));
    }
    readings.sort_by(|one, other| (one.0.seconds() / one.2).total_cmp(&(other.0.seconds() / other.2)));
    let (peer, remembered, seconds) = &readings[1];
    let task = "BDeu score of a network, 7 nodes, 10 arrows, 4,177 rows";
    Row::keep(task, peer.version(), peer.seconds(), *seconds);
    Row::keep(format!("{task}, all parts scored before"), peer.version(), *remembered, *seconds);
    Ok(())
}

fn agree() -> Result<()> {
    let peer = Peer::run("bdeu.py", "agree");
    let networks = peer.found["networks"].as_array().expect("networks");
    let mut largest: f64 = 0.0;
    for (ix, found) in networks.iter().enumerate() {
        let network = Network::new(found);
        let ours = network.score(&peer.data_named(&format!("{ix}.csv"))?)?;
        for theirs in found["scores"].as_array().expect("scores") {
            let theirs = theirs.as_f64().expect("a score");
            largest = largest.max(difference(ours, theirs));
            assert!(difference(ours, theirs) <= TOLERANCE, "{}: {ours} is not {theirs}", network.text);
        }
    }
    println!("{} random networks: largest relative difference from {} {largest:.1e}", networks.len(), peer.version());
    Ok(())
}
