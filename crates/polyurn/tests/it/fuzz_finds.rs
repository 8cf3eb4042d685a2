//! What the fuzzer found once, and what it starts from: no target may stumble over any of it again. `scripts/fuzz` adds to the folder.

// The fuzzer's crate is a workspace of its own, for it needs a nightly compiler; its targets do not.
#[path = "../../../../fuzz/src/targets.rs"]
#[allow(unreachable_pub)]
mod targets;

use std::path::Path;
use targets::TARGETS;

#[test]
#[expect(clippy::print_stdout, reason = "so that a panic tells which file it was")]
fn no_target_stumbles_over_what_was_found_before() {
    let finds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/finds");
    let mut n_files = 0;
    for (name, target) in TARGETS {
        let mut files: Vec<_> = match std::fs::read_dir(finds.join(name)) {
            Ok(folder) => folder.map(|file| file.unwrap().path()).collect(),
            Err(error) => panic!("every target has a folder of finds; {name}: {error}"),
        };
        files.sort();
        for file in files {
            println!("{}", file.display());
            target(&std::fs::read(&file).unwrap());
            n_files += 1;
        }
    }
    assert!(n_files > TARGETS.len(), "{n_files} files");
    let folders = std::fs::read_dir(&finds).unwrap().count();
    assert_eq!(folders, TARGETS.len(), "a folder in finds/ belongs to no target");
}
