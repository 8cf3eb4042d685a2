//! Faults of the system, real ones: files that may not grow, a disk that is full, folders and files that may not be written or read,
//! threads that cannot be started. One clear line each, nothing half written.

#![cfg(unix)]

use crate::support::Folder;
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A user without rights, as whom root runs what must be refused; others are refused as they are.
const NOBODY: u32 = 65_534;

const TOY: &str = "i,j,count\n0,0,2\n0,1,1\n0,2,1\n1,2,1\n1,3,2\n2,2,1\n2,3,1\n";

fn permit(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs `polyurn` after some shell commands that set limits.
fn limited(folder: &Folder, limits: &str, args: &[&str]) -> Output {
    let script = format!("{limits}; exec \"$@\"");
    let program = env!("CARGO_BIN_EXE_polyurn");
    Command::new("sh").args(["-c", &script, "sh", program]).args(args).current_dir(folder.path()).output().unwrap()
}

/// Exit code and standard error.
fn outcome(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A folder that everybody may look into, with a program that everybody may run.
struct Public {
    folder: Folder,
    program: PathBuf,
}

impl Public {
    fn new() -> Self {
        let folder = Folder::new();
        permit(folder.path(), 0o755);
        let program = folder.path().join("polyurn");
        std::fs::copy(env!("CARGO_BIN_EXE_polyurn"), &program).unwrap();
        permit(&program, 0o755);
        Public { folder, program }
    }

    fn is_root(&self) -> bool {
        self.folder.path().metadata().unwrap().uid() == 0
    }

    /// Runs as somebody whom permissions bind.
    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(self.folder.path());
        if self.is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.output().unwrap()
    }
}

/// A fit, and every command that writes a file of more than a few bytes.
fn writers(folder: &Folder) -> Vec<Vec<&'static str>> {
    folder.write("toy.csv", TOY);
    let rows: String = (0..400).map(|ix| format!("{},{}\n", ix % 3, ix % 4)).collect();
    folder.write("rows.csv", format!("i,j\n{rows}"));
    folder.ok(&["fit", "--model", "i -> k[2] -> j", "--data", "toy.csv", "--method", "vb", "--seed", "1", "-o", "f"]);
    let ranking = folder.ok(&["select", "--model", "i -> k[1..3] -> j", "--data", "toy.csv", "--seed", "1", "--json"]);
    folder.write("ranking.json", ranking);
    let model = ["--model", "i -> k[2] -> j", "--data", "toy.csv", "--seed", "1", "--json"];
    let simulate = ["simulate", "--model", "k[2] -> i[40] j[40]", "--a", "1000", "--tokens", "3000", "--seed", "1"];
    vec![
        [&["score"], &model[..]].concat(),
        [&["fit", "--method", "vb"], &model[..]].concat(),
        [&["enumerate"], &model[..]].concat(),
        ["select", "--model", "i -> k[1..3] -> j", "--data", "toy.csv", "--seed", "1", "--json"].to_vec(),
        [&simulate[..], &["--seen", "i,j"]].concat(),
        vec!["predict", "--fit", "f", "--data", "rows.csv"],
        vec!["export", "f", "--to", "json"],
        vec!["report", "ranking.json"],
    ]
}

#[test]
fn a_file_that_may_not_grow_is_said_and_the_old_one_stays() {
    let folder = Folder::new();
    for args in writers(&folder) {
        let old = folder.write("out", "old");
        let before = folder.names();
        // Units of 512 or 1,024 bytes, by the shell.
        let (code, error) = outcome(&limited(&folder, "ulimit -f 1", &[&args[..], &["-o", "out"]].concat()));
        assert_eq!(code, Some(1), "{args:?}: {error}");
        assert!(error.contains("error: out: ") && error.to_lowercase().contains("too large"), "{args:?}: {error}");
        assert!(!error.contains(".tmp"), "{args:?}: {error}");
        assert_eq!((std::fs::read_to_string(&old).unwrap().as_str(), folder.names()), ("old", before), "{args:?}");
    }
}

#[test]
fn standard_output_that_is_full_is_said() {
    let folder = Folder::new();
    for args in writers(&folder) {
        let (code, error) = outcome(&limited(&folder, "exec > /dev/full", &args));
        assert_eq!(code, Some(1), "{args:?}: {error}");
        assert!(error.contains("error: standard output: No space left"), "{args:?}: {error}");
    }
}

#[test]
fn a_run_whose_state_cannot_be_written_goes_on_and_says_so_once() {
    let folder = Folder::new();
    let args = ["simulate", "--model", "k[2] -> i[6] j[5]", "--a", "20", "--tokens", "300", "--seed", "1"];
    folder.ok(&[&args[..], &["--seen", "i,j", "-o", "d.csv"]].concat());
    let score =
        ["score", "--model", "k[3] -> i j", "--data", "d.csv", "--seed", "2", "--method", "smc", "--runs", "20"];
    let score = [&score[..], &["--particles", "100", "--rejuvenate", "4", "--threads", "2"]].concat();
    let want = folder.ok(&score);
    let kept = [&score[..], &["--checkpoint", "run", "--checkpoint-every", "0.01s"]].concat();
    let output = limited(&folder, "ulimit -f 1", &kept);
    let (code, error) = outcome(&output);
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(error.matches("warning: run: ").count(), 1, "{error}");
    assert!(error.contains("the run goes on"), "{error}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), want);
    assert_eq!(folder.names(), ["d.csv"]);
}

/// A file system of 64 kB; gone with this.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// None without the right to mount one.
    fn mount(path: &Path) -> Option<Self> {
        std::fs::create_dir(path).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(path).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| SmallDisk(path.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_said_and_the_old_file_stays() {
    let folder = Folder::new();
    let simulate = ["simulate", "--model", "k[2] -> i[300] j[300]", "--a", "1e5", "--tokens", "50000", "--seed", "1"];
    let simulate = [&simulate[..], &["--seen", "i,j", "-o"]].concat();
    let path = folder.path().join("disk");
    // Who may not mount anything has the limits of the other tests.
    let Some(disk) = SmallDisk::mount(&path) else { return };
    std::fs::write(path.join("out.csv"), "old").unwrap();
    let (code, error) = folder.fails(&[&simulate[..], &["disk/out.csv"]].concat());
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("error: disk/out.csv: No space left on device") && !error.contains(".tmp"), "{error}");
    assert_eq!(std::fs::read_to_string(path.join("out.csv")).unwrap(), "old");
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1);
    let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(&path).status().unwrap();
    assert!(remounted.success());
    let (code, error) = folder.fails(&[&simulate[..], &["disk/out.csv"]].concat());
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("disk/out.csv: cannot write there: Read-only file system"), "{error}");
    drop(disk);
}

#[test]
fn what_may_not_be_read_or_written_is_refused_before_the_work() {
    let public = Public::new();
    let folder = &public.folder;
    folder.write("toy.csv", TOY);
    permit(&folder.write("secret.csv", TOY), 0o600 & if public.is_root() { 0o600 } else { 0 });
    std::fs::create_dir(folder.path().join("closed")).unwrap();
    permit(&folder.path().join("closed"), 0o555);
    let score = ["score", "--model", "i -> j", "--data"];
    for (more, words) in [
        (&["secret.csv"][..], &["error: secret.csv: ", "Permission denied"][..]),
        (
            &["toy.csv", "-o", "closed/out"],
            &["error: closed/out: cannot write there: Permission denied", "can be written"],
        ),
        (
            &["toy.csv", "--method", "smc", "--checkpoint", "closed/run"],
            &["closed/run: cannot write there: Permission"],
        ),
    ] {
        let (code, error) = outcome(&public.run(&[&score[..], more].concat()));
        assert_eq!((code, error.lines().count()), (Some(2), 1), "{error}");
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
    permit(&folder.path().join("closed"), 0o755);
}

#[test]
fn a_file_that_was_made_read_only_is_not_replaced() {
    let folder = Folder::new();
    folder.write("toy.csv", TOY);
    let path = folder.write("out", "old");
    permit(&path, 0o444);
    let (code, error) = folder.fails(&["score", "--model", "i -> j", "--data", "toy.csv", "-o", "out"]);
    assert_eq!((code, error.lines().count()), (2, 1), "{error}");
    assert!(error.contains("out: is read-only; "), "{error}");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "old");
}

#[test]
fn an_output_that_is_an_input_is_refused_by_every_command() {
    let folder = Folder::new();
    for args in writers(&folder) {
        let inputs = ["toy.csv", "rows.csv", "f", "ranking.json"];
        for input in inputs.into_iter().filter(|input| args.contains(input)) {
            let before = std::fs::read(folder.path().join(input)).unwrap();
            let same = format!("./{input}");
            let (code, error) = folder.fails(&[&args[..], &["-o", &same]].concat());
            assert_eq!((code, error.lines().count()), (2, 1), "{args:?}: {error}");
            assert!(error.contains("is an input too; write to another file"), "{args:?}: {error}");
            assert_eq!(std::fs::read(folder.path().join(input)).unwrap(), before);
        }
    }
}

#[test]
fn half_written_files_are_nobody_elses_business() {
    let folder = Folder::new();
    // Written through a pipe that is held open, so that there is time to look.
    let simulate = ["simulate", "--model", "k[2] -> i[300] j[300]", "--a", "1e5", "--tokens", "3000000", "--seed", "1"];
    let mut child = folder.command(&[&simulate[..], &["--seen", "i,j", "-o", "out.csv"]].concat()).spawn().unwrap();
    let mut seen = Vec::new();
    while child.try_wait().unwrap().is_none() {
        for entry in std::fs::read_dir(folder.path()).unwrap().flatten() {
            if entry.file_name() != "out.csv" {
                seen.extend(entry.metadata().ok().filter(|found| found.len() > 0));
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    // And when it is whole, it is like any other.
    let whole = folder.path().join("out.csv").metadata().unwrap();
    assert_eq!(whole.mode(), folder.write("usual", "").metadata().unwrap().mode());
    let is_private = |found: &Metadata| found.mode() & 0o777 == 0o600 || found.len() == whole.len();
    assert!(seen.len() > 1 && seen.iter().all(is_private), "{seen:?}");
}

#[test]
fn more_threads_than_anybody_has_change_nothing() {
    let folder = Folder::new();
    folder.write("toy.csv", TOY);
    for method in ["smc", "anneal", "vb"] {
        let args = ["score", "--model", "i -> k[3] -> j", "--data", "toy.csv", "--seed", "1", "--method", method];
        let one = folder.ok(&[&args[..], &["--threads", "1"]].concat());
        assert_eq!(folder.ok(&[&args[..], &["--threads", "65535"]].concat()), one, "{method}");
    }
}

#[test]
fn without_more_threads_from_the_system_there_is_an_answer_or_one_line() {
    let public = Public::new();
    // The limit is for all that a user runs, and root has none.
    if !public.is_root() {
        return;
    }
    public.folder.write("toy.csv", TOY);
    let (mut n_answers, mut n_lines) = (0, 0);
    for (method, n) in
        ["exact", "smc", "anneal", "vb"].into_iter().flat_map(|method| [1, 2, 4, 6, 9].map(|n| (method, n)))
    {
        let score = ["score", "--model", "i -> k[3] -> j", "--data", "toy.csv", "--seed", "1", "--method", method];
        let mut command = Command::new("prlimit");
        command.arg(format!("--nproc={n}")).arg(&public.program).args(score).args(["--threads", "8"]);
        let output = command.current_dir(public.folder.path()).uid(NOBODY).gid(NOBODY).output().unwrap();
        let (code, error) = outcome(&output);
        assert!(!error.contains("panicked"), "{method}, {n}: {error}");
        match code {
            Some(0) => {
                n_answers += 1;
                assert!(String::from_utf8_lossy(&output.stdout).contains("data         toy.csv"), "{method}, {n}");
            }
            Some(1) => {
                n_lines += 1;
                assert!(
                    error.lines().count() == 1 && error.contains("error: no thread could"),
                    "{method}, {n}: {error}"
                );
            }
            other => panic!("{method}, {n}: {other:?} {error}"),
        }
    }
    assert!(n_answers > 4 && n_lines > 2, "{n_answers} and {n_lines}: the limit is not felt");
}
