//! Every command in the README and in the guide does what is printed below it.
//!
//! In such a file, a comment `<!-- file NAME -->` before a fenced block says that the block is that file. A block of kind `sh`
//! holds commands, of which those of `polyurn` and `grep` are run; when the next thing after it is a block of kind `text`, that is what the last command prints, but for
//! times and the widths of columns. A line `..` stands for any number of lines.

use crate::support::Folder;
use std::path::{Path, PathBuf};

/// A fenced block.
struct Block {
    kind: String,
    /// The last line of text before it.
    above: String,
    text: String,
}

fn blocks(document: &str) -> Vec<Block> {
    let (mut blocks, mut open, mut above) = (Vec::new(), None::<Block>, String::new());
    for line in document.lines() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(_), Some(block)) => {
                blocks.push(block);
                above.clear();
            }
            (Some(kind), None) => {
                open = Some(Block { kind: kind.to_owned(), above: std::mem::take(&mut above), text: String::new() });
            }
            (None, Some(mut block)) => {
                block.text += &format!("{line}\n");
                open = Some(block);
            }
            (None, None) if !line.trim().is_empty() => above = line.trim().to_owned(),
            (None, None) => {}
        }
    }
    blocks
}

/// Lines with single blanks, without times and names of vector instructions.
fn essence(text: &str) -> Vec<String> {
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_time = |ix: usize| is_number(words[ix]) && matches!(words.get(ix + 1), Some(&("s" | "s.")));
        let shown = (0..words.len()).map(|ix| match words[ix] {
            _ if is_time(ix) => "_",
            // What this machine has.
            "(scalar)" | "(avx2)" | "(avx512)" => "(_)",
            word => word,
        });
        shown.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).filter(|line| !line.is_empty()).collect()
}

/// Whether `got` is `want`, in which `..` stands for any lines.
fn is_like(got: &[String], want: &[String]) -> bool {
    match want.split_first() {
        None => got.is_empty(),
        Some((first, rest)) if first == ".." => (0..=got.len()).any(|skipped| is_like(&got[skipped..], rest)),
        Some((first, rest)) => got.split_first().is_some_and(|(head, tail)| head == first && is_like(tail, rest)),
    }
}

/// Runs the commands of a document, and gives how many it had.
fn check(path: &Path) -> usize {
    let document = std::fs::read_to_string(path).unwrap();
    let folder = Folder::new();
    let (mut printed, mut n_commands) = (None, 0);
    for block in blocks(&document) {
        let file = block.above.strip_prefix("<!-- file ").and_then(|rest| rest.strip_suffix(" -->"));
        let follows = block.above.is_empty();
        match (block.kind.as_str(), file) {
            (_, Some(name)) => drop(folder.write(name, &block.text)),
            ("sh", None) => {
                for line in block.text.lines() {
                    if line.starts_with("polyurn ") {
                        printed = Some(run(&folder, line, path));
                        n_commands += 1;
                    } else if line.starts_with("grep ") {
                        run(&folder, line, path);
                    }
                }
                continue;
            }
            ("text", None) if follows => {
                if let Some(printed) = printed.take() {
                    let (got, want) = (essence(&printed), essence(&block.text));
                    assert!(is_like(&got, &want), "{}: printed\n{printed}\nbut has\n{}", path.display(), block.text);
                }
            }
            _ => {}
        }
        printed = None;
    }
    n_commands
}

fn run(folder: &Folder, line: &str, path: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_polyurn")).parent().unwrap().to_owned();
    let found = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::env::join_paths(std::iter::once(program).chain(std::env::split_paths(&found))).unwrap();
    let output = std::process::Command::new("sh")
        .args(["-c", line])
        .current_dir(folder.path())
        .env("PATH", paths)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: `{line}` failed: {stderr}", path.display());
    String::from_utf8(output.stdout).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_readme_shows_what_is_printed() {
    assert!(check(&root().join("README.md")) >= 3);
}

/// `cargo run --release -- demo` is what people see first.
#[test]
fn the_readme_shows_the_demonstration() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let shown =
        blocks(&readme).into_iter().find(|block| block.text.starts_with("Dilemmas:")).expect("a table of the demo");
    let printed = Folder::new().ok(&["demo"]);
    let want = [vec!["..".to_owned()], essence(&shown.text), vec!["..".to_owned()]].concat();
    assert!(is_like(&essence(&printed), &want), "printed\n{printed}\nbut has\n{}", shown.text);
}

#[test]
fn the_guide_shows_what_is_printed() {
    let mut pages: Vec<PathBuf> =
        std::fs::read_dir(root().join("docs/guide")).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    let n_commands: usize = pages.iter().map(|page| check(page)).sum();
    assert!(n_commands >= 5, "{n_commands} commands in the guide");
}

#[test]
fn a_document_that_is_wrong_is_found_out() {
    let lines = |text: &str| essence(text);
    assert!(is_like(&lines("a  b 1.5 s\nc\nd"), &lines("a b 0.2 s\n..\nd")));
    assert!(!is_like(&lines("a b 1.5"), &lines("a b 0.2")));
    assert!(!is_like(&lines("a\nb"), &lines("a")));
}

#[test]
fn every_command_has_a_page_with_its_help() {
    let folder = Folder::new();
    let list = folder.ok(&["--help"]);
    let commands: Vec<&str> = list
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?.split(' ').next())
        .collect();
    assert!(commands.len() >= 10, "{commands:?}");
    for command in commands {
        let page = std::fs::read_to_string(root().join(format!("docs/commands/{command}.md"))).unwrap_or_default();
        let help = folder.ok(&[command, "--help"]);
        assert_eq!(page, format!("# `polyurn {command}`\n\n```text\n{help}```\n"), "run scripts/command-pages");
    }
}
