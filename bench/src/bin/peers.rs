//! Every comparison with the tools people use, and the table of it: docs/peers.md, and the README. `make bench-peers` builds the
//! other programs, which measure, and names a Python with the peers. What stands in their place is written only when all succeed.

use polyurn_bench::table::{Place, ROWS, Row, in_readme, markdown, page};
use std::path::Path;
use std::process::Command;

/// Programs that keep rows, and their sections that do.
const PROGRAMS: [(&str, &[&str]); 5] = [
    ("sweeps", &["nmf", "dense", "lda", "cp64", "cp1000", "lca"]),
    ("gibbs", &["k20", "k50"]),
    ("bdeu", &["time", "agree"]),
    ("smc", &["numpy"]),
    ("read", &["frames"]),
];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder above");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rows = folder.path().join("rows");
    // The load is that of others, so it is read before our own.
    let place = Place::here();
    let own = std::env::current_exe().expect("a name");
    for (program, sections) in PROGRAMS {
        let status = Command::new(own.with_file_name(program)).args(sections).env(ROWS, &rows).status();
        assert!(status.expect("the program was built").success(), "{program} failed");
    }
    let rows = Row::read_all(&std::fs::read_to_string(rows).expect("rows"));
    let table = markdown(&rows, &place);
    println!("{table}");
    let readme = root.join("README.md");
    let text = in_readme(&std::fs::read_to_string(&readme).expect("a README"), &table);
    std::fs::write(readme, text).expect("a README that can be written");
    std::fs::write(root.join("docs/peers.md"), page(&table)).expect("a page that can be written");
}
