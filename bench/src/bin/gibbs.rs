//! Collapsed Gibbs chains against the tool people use now. Needs `POLYURN_BENCH_PYTHON`, a Python with the peer, which
//! `make bench-gibbs` sets up. All figures of a comparison come from one run, one after another on the same machine.

use polyurn::control::Control;
use polyurn::engine::Problem;
use polyurn::engine::gibbs::{Gibbs, GibbsResult};
use polyurn::prior::{Prior, PriorSettings};
use polyurn::{Result, Seed};
use polyurn_bench::peer::{Peer, best_of};
use polyurn_bench::table::Row;
use polyurn_bench::{Section, bound, mean_and_sd, wanted};

const SWEEPS: u64 = 200;

fn main() -> Result<()> {
    let sections: [Section; 2] = [("k20", || topics(20)), ("k50", || topics(50))];
    for (_, section) in wanted(sections) {
        section()?;
        println!();
    }
    Ok(())
}

fn topics(n_topics: u32) -> Result<()> {
    println!("LDA of the Reuters corpus, K = {n_topics}, pseudo-counts 0.1 and 0.01, {SWEEPS} sweeps");
    let peer = Peer::run("gibbs.py", &n_topics.to_string());
    let data = peer.data()?;
    let binding = bound(&format!("doc -> topic[{n_topics}] -> word"), &data)?;
    let pseudo_counts = vec![("topic".to_owned(), 0.1), ("word".to_owned(), 0.01)];
    let settings = PriorSettings { a: Some(1.0), pseudo_counts, ..Default::default() };
    let prior = Prior::build(&binding.model, &settings)?;
    let problem = Problem::new(&binding.model, &prior, &binding.counts)?;
    let run = |chains: u64, threads: usize| {
        let gibbs = Gibbs { chains, sweeps: SWEEPS, threads, ..Default::default() };
        best_of(5, || gibbs.run(&problem, Seed(1), &mut Control::default()))
    };
    let n_drawn = |result: &GibbsResult| (result.n_tokens * SWEEPS * result.chains.len() as u64) as f64;
    let theirs = peer.found["n_tokens"].as_f64().expect("tokens") * SWEEPS as f64;
    let show = |what: &str, rate: f64, than: f64| {
        println!("{:>10.1} million tokens/s  {what}: {:.2} times", rate / 1e6, rate / than);
    };
    let (seconds, one) = run(1, 1)?;
    let rate = n_drawn(&one) / seconds;
    let peer_rate = theirs / peer.seconds();
    show(&format!("{}, one thread", peer.version()), peer_rate, peer_rate);
    let two = peer.found["seconds_two"].as_f64().expect("seconds");
    show(&format!("{}, two threads, which is no exact sampler", peer.version()), theirs / two, peer_rate);
    show("one chain, one thread", rate, peer_rate);
    let task = format!("{SWEEPS} Gibbs sweeps of LDA, Reuters, K = {n_topics}");
    Row::keep(&task, peer.version(), peer.seconds(), seconds);
    Row::keep(format!("{task}; the peer on two threads, from stale counts"), peer.version(), two, seconds);
    let (seconds, two) = run(2, 2)?;
    show("two chains, two threads", n_drawn(&two) / seconds, peer_rate);
    println!("            two chains on two threads draw {:.2} times what one draws", n_drawn(&two) / seconds / rate);
    // What the peer's users look at: ln p(words, topics | documents), which leaves out the documents' own table.
    let tables = ["topic", "word"].map(|name| binding.model.node(binding.model.find(name).expect("a node")).table.ix());
    let chains = Gibbs { chains: 10, sweeps: SWEEPS, threads: 2, ..Default::default() };
    let chains = chains.run(&problem, Seed(2), &mut Control::default())?;
    let per_token = |by_table: &[f64]| tables.iter().map(|&ix| by_table[ix]).sum::<f64>() / chains.n_tokens as f64;
    let ours: Vec<f64> = chains.chains.iter().map(|chain| per_token(&chain.ln_joint_by_table)).collect();
    let theirs = peer.found["ln_joint"].as_array().expect("a list").iter();
    let theirs: Vec<f64> = theirs.map(|ln| ln.as_f64().expect("a number")).collect();
    let ((mean, sd), (peer_mean, peer_sd)) = (mean_and_sd(&ours), mean_and_sd(&theirs));
    println!("            ln p(words, topics | documents) per token after {SWEEPS} sweeps:");
    println!(
        "            {mean:.4}, spread {sd:.4} over {} chains; peer {peer_mean:.4}, spread {peer_sd:.4} over {}; difference {:.4}",
        ours.len(),
        theirs.len(),
        (mean - peer_mean).abs()
    );
    Ok(())
}
