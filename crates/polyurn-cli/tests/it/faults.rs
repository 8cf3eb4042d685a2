//! Stops, checkpoints, and outputs that cannot be written.

use crate::support::Folder;
use std::time::{Duration, Instant};

/// A problem that takes some seconds in a debug build.
fn slow_problem(folder: &Folder) -> Vec<&'static str> {
    let rows: String = (0..26).map(|n| format!("{},{}\n", (n * n) % 5, (n * 3 + n / 5) % 5)).collect();
    folder.write("slow.csv", format!("i,j\n{rows}"));
    let data = ["score", "--model", "i -> k[4] -> j", "--data", "slow.csv"];
    [&data[..], &["--method", "exact", "--json", "--seed", "1", "--max-memory", "8G"]].concat()
}

#[test]
fn a_time_limit_stops_the_run_with_exit_code_1() {
    let folder = Folder::new();
    let args = slow_problem(&folder);
    let start = Instant::now();
    let (code, error) = folder.fails(&[&args[..], &["--time-limit", "50ms"]].concat());
    assert_eq!(code, 1);
    assert!(error.contains("time limit"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[cfg(unix)]
#[test]
fn signals_stop_within_a_second_and_give_their_exit_codes() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let folder = Folder::new();
        let args = slow_problem(&folder);
        let mut child = folder
            .command(&[&args[..], &["-o", "out.json"]].concat())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(150));
        std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let start = Instant::now();
        let status = child.wait().unwrap();
        assert!(start.elapsed() < Duration::from_millis(1500));
        assert_eq!(status.code(), Some(code));
        assert_eq!(folder.names(), ["slow.csv"], "nothing is left behind");
    }
}

#[test]
fn a_stopped_run_goes_on_from_its_checkpoint_to_the_same_bytes() {
    let folder = Folder::new();
    let args = slow_problem(&folder);
    let strip = |text: String| -> serde_json::Value {
        let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value["seconds"] = 0.into();
        value
    };
    let whole = strip(folder.ok(&args));
    let resumable = [&args[..], &["--checkpoint", "run.ck", "--checkpoint-every", "1ms"]].concat();
    let (code, _) = folder.fails(&[&resumable[..], &["--time-limit", "100ms"]].concat());
    assert_eq!(code, 1);
    assert!(folder.names().contains(&"run.ck".to_owned()));
    // Another problem must not take it up.
    let (code, error) =
        folder.fails(&["score", "--model", "i -> k[3] -> j", "--data", "slow.csv", "--checkpoint", "run.ck"]);
    assert_eq!(code, 2);
    assert!(error.contains("another model"), "{error}");
    assert_eq!(strip(folder.ok(&resumable)), whole);
    assert!(!folder.names().contains(&"run.ck".to_owned()), "a finished run removes its checkpoint");
}

/// Every byte of what a run of particles leaves behind when it is killed, not only of a header; and every missing end.
#[test]
fn a_flipped_byte_or_a_missing_end_of_a_checkpoint_is_refused_wherever_it_is() {
    let folder = Folder::new();
    folder.write("toy.csv", "i,j,count\n0,0,2\n0,1,1\n0,2,1\n1,2,1\n1,3,2\n2,2,1\n2,3,1\n");
    // Long runs with little to remember: many moves of few particles.
    let moves = ["--particles", "2", "--rejuvenate", "20000", "--heat", "1", "--runs", "6"];
    let score =
        ["score", "--model", "k[2] -> i j", "--data", "toy.csv", "--method", "smc", "--seed", "1", "--threads", "1"];
    let args = [&score[..], &moves, &["--json"]].concat();
    let whole = timeless(&folder.ok(&args));
    let resumable = [&args[..], &["--checkpoint", "run.ck", "--checkpoint-every", "1ms"]].concat();
    let path = folder.path().join("run.ck");
    let mut child = folder.command(&resumable).stdout(std::process::Stdio::null()).spawn().unwrap();
    // The first one has next to nothing in it.
    while std::fs::metadata(&path).map_or(0, |file| file.len()) < 200 {
        assert!(child.try_wait().unwrap().is_none(), "it was over before there was a checkpoint with something in it");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let good = std::fs::read(&path).unwrap();
    assert!(good.len() < 20_000, "{} bytes", good.len());
    let refused = |bad: &[u8], what: &str| {
        std::fs::write(&path, bad).unwrap();
        let (code, error) = folder.fails(&resumable);
        let is_said = error.contains("is damaged") || error.contains("is no checkpoint of this version");
        assert!(code == 2 && is_said && error.lines().count() == 1, "{what}: {code} {error}");
        assert_eq!(std::fs::read(&path).unwrap(), bad, "what is refused is left alone");
    };
    for ix in 0..good.len() {
        let mut bad = good.clone();
        bad[ix] ^= 1 << (ix % 8);
        refused(&bad, &format!("byte {ix}"));
        refused(&good[..ix], &format!("cut at {ix}"));
    }
    std::fs::write(&path, &good).unwrap();
    assert_eq!(timeless(&folder.ok(&resumable)), whole);
}

/// Killed ten times, without a chance to say anything, each time some way beyond the last checkpoint.
#[cfg(unix)]
#[test]
fn a_run_that_is_killed_again_and_again_ends_with_the_same_bytes() {
    let folder = Folder::new();
    folder.write("slow.csv", include_str!("../../src/demo_data/dilemmas.csv"));
    let exact = slow_problem(&Folder::new());
    let runs = ["--particles", "200", "--runs", "60", "--threads", "1"];
    let score = ["score", "--model", "lca(3)", "--data", "slow.csv", "--json", "--seed", "1", "--method", "smc"];
    let starts = ["--restarts", "200", "--tol", "1e-12", "--threads", "1"];
    let fit = ["fit", "--model", "lca(4)", "--data", "slow.csv", "--json", "--seed", "1", "--method", "vb"];
    let ranges = ["select", "--model", "lca(2..4)", "--data", "slow.csv", "--json", "--seed", "1", "--threads", "1"];
    let ranges = [&ranges[..], &["--method", "smc", "--particles", "100", "--runs", "8", "--heat", "1"]].concat();
    let stream = ["fit", "--model", "doc[40] -> topic[8] -> word[60]", "--data", "words.csv", "--json", "--seed", "1"];
    let stream = [&stream[..], &["--method", "svb", "--tokens", "60000", "--batch", "400", "--threads", "1"]].concat();
    let words = ["simulate", "--model", "doc[40] -> topic[8] -> word[60]", "--seen", "doc,word", "--a", "100"];
    folder.ok(&[&words[..], &["--tokens", "60000", "--seed", "1", "-o", "words.csv"]].concat());
    let stream = [&stream[..], &["--passes", "8"]].concat();
    let jobs = [exact, [&score[..], &runs].concat(), [&fit[..], &starts].concat(), ranges, stream];
    for (n, args) in jobs.iter().enumerate() {
        let folder_of_exact;
        let folder = if n == 0 {
            folder_of_exact = Folder::new();
            slow_problem(&folder_of_exact);
            &folder_of_exact
        } else {
            &folder
        };
        let start = Instant::now();
        let whole = timeless(&folder.ok(args));
        let time = start.elapsed();
        let resumable = [&args[..], &["--checkpoint", "run.ck", "--checkpoint-every", "1ms"]].concat();
        let path = folder.path().join("run.ck");
        for n_killed in 0..10 {
            let before = std::fs::read(&path).ok();
            let mut child = folder.command(&resumable).stdout(std::process::Stdio::null()).spawn().unwrap();
            // It has come further, and goes on for a while: most of the work is left after ten times, however uneven the machine.
            while std::fs::read(&path).ok() == before {
                assert!(child.try_wait().unwrap().is_none(), "{args:?} was over after {n_killed} kills");
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(time / 50);
            assert!(child.try_wait().unwrap().is_none(), "{args:?} was over after {n_killed} kills");
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(timeless(&folder.ok(&resumable)), whole, "{args:?}");
    }
}

/// While one process works on a checkpoint, a second one is refused and touches nothing; a killed one leaves no lock behind.
#[cfg(unix)]
#[test]
fn a_second_run_on_the_same_checkpoint_is_refused() {
    let folder = Folder::new();
    folder.write("answers.csv", include_str!("../../src/demo_data/dilemmas.csv"));
    let path = folder.path().join("run.ck");
    let long = ["--method", "smc", "--particles", "100", "--runs", "100000", "--heat", "1", "--threads", "1"];
    let kept = ["--seed", "1", "--checkpoint", "run.ck", "--checkpoint-every", "1ms"];
    let chains = ["--method", "gibbs", "--sweeps", "100000000", "--chains", "1", "-o", "f.polyurn"];
    let jobs = [
        [&["score", "--model", "lca(3)"][..], &long].concat(),
        [&["select", "--model", "lca(2..4)"][..], &long].concat(),
        [&["fit", "--model", "lca(3)"][..], &chains].concat(),
    ];
    for job in jobs {
        let args = [&job[..], &["--data", "answers.csv"], &kept].concat();
        let (null, quiet) = (std::process::Stdio::null(), std::process::Stdio::null());
        let mut first = folder.command(&args).stdout(null).stderr(quiet).spawn().unwrap();
        while !path.exists() {
            assert!(first.try_wait().unwrap().is_none(), "{args:?} was over before it had a checkpoint");
            std::thread::sleep(Duration::from_millis(5));
        }
        let (code, said) = folder.fails(&args);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("run.ck: another run is using this checkpoint") && said.lines().count() == 1, "{said}");
        assert!(first.try_wait().unwrap().is_none(), "the first one goes on");
        first.kill().unwrap();
        first.wait().unwrap();
        let state = std::fs::read(&path).unwrap();
        // The file is free: another problem is refused for what is in it.
        let (code, said) = folder.fails(&[&args[..], &["--a", "7"]].concat());
        assert!(code == 2 && !said.contains("another run is using"), "{said}");
        assert_eq!(std::fs::read(&path).unwrap(), state, "what is refused is left alone");
        std::fs::remove_file(&path).unwrap();
    }
}

/// A run that is stopped by a signal says how to go on; a seed that was drawn is taken up too.
#[cfg(unix)]
#[test]
fn a_stopped_run_says_how_to_go_on() {
    let folder = Folder::new();
    folder.write("answers.csv", include_str!("../../src/demo_data/dilemmas.csv"));
    let base = ["score", "--model", "lca(3)", "--data", "answers.csv", "--method", "smc"];
    let args = [&base[..], &["--particles", "200", "--runs", "100000", "--threads", "1"]].concat();
    let stop = |args: &[&str]| {
        let (null, piped) = (std::process::Stdio::null(), std::process::Stdio::piped());
        let child = folder.command(args).stdout(null).stderr(piped).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(700));
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        String::from_utf8(output.stderr).unwrap()
    };
    let said = stop(&args);
    assert!(said.contains("the answer is from what was finished; with --checkpoint FILE"), "{said}");
    let resumable = [&args[..], &["--checkpoint", "run.ck", "--checkpoint-every", "1ms"]].concat();
    // The second time it goes on from the first one's, whose seed was drawn.
    for _ in 0..2 {
        let said = stop(&resumable);
        assert!(said.contains("run.ck: repeat the command to go on"), "{said}");
    }
    // A checkpoint is no place for data or results.
    let (code, said) = folder.fails(&[&args[..], &["--checkpoint", "answers.csv"]].concat());
    assert!(code == 2 && said.contains("input") && !said.contains("remove"), "{said}");
    let (code, said) = folder.fails(&[&args[..], &["--checkpoint", "./same", "-o", "same"]].concat());
    assert!(code == 2 && said.contains("both checkpoint and output"), "{said}");
}

/// The state of many particles takes longer to be written than work takes to stop.
#[cfg(unix)]
#[test]
fn a_stop_waits_for_a_large_checkpoint_to_be_written() {
    let folder = Folder::new();
    let model = "r[4] -> a[9] b[9] c[9] d[9]";
    let seen = ["--a", "9", "--tokens", "5000", "--seen", "a,b,c,d", "--seed", "1", "-q", "-o", "people.csv"];
    folder.ok(&[&["simulate", "--model", model][..], &seen].concat());
    let base =
        ["fit", "--model", "lca(4)", "--data", "people.csv", "--seed", "1", "--method", "smc", "-o", "f.polyurn"];
    let sizes = ["--particles", "10000", "--heat", "1", "--checkpoint", "f.ck", "--checkpoint-every", "1h"];
    let args = [&base[..], &sizes].concat();
    let (null, piped) = (std::process::Stdio::null(), std::process::Stdio::piped());
    let child = folder.command(&args).stdout(null).stderr(piped).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(143), "{said}");
    assert!(said.contains("f.ck: repeat the command to go on"), "{said}");
    assert!(folder.path().join("f.ck").metadata().unwrap().len() > 10_000_000);
}

/// A result without the times in it.
fn timeless(text: &str) -> serde_json::Value {
    fn strip(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(fields) => {
                fields.retain(|name, _| name != "seconds" && name != "command_line");
                fields.values_mut().for_each(strip);
            }
            serde_json::Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = serde_json::from_str(text).unwrap();
    strip(&mut value);
    value
}

#[test]
fn outputs_that_cannot_be_written_fail_before_the_work() {
    let folder = Folder::new();
    let args = slow_problem(&folder);
    for (path, word) in [("missing/out.json", "cannot write"), ("slow.csv", "input"), (".", "folder")] {
        let start = Instant::now();
        let (code, error) = folder.fails(&[&args[..], &["-o", path]].concat());
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(word) && error.lines().count() == 1 && !error.contains("tmp"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(1));
    }
}

#[cfg(unix)]
#[test]
fn devices_are_written_to_and_links_are_followed() {
    use std::os::unix::fs::FileTypeExt;
    let folder = Folder::new();
    folder.write("toy.csv", "i,j,count\n0,0,2\n0,1,1\n");
    let args = ["score", "--model", "i -> j", "--data", "toy.csv", "-o"];
    folder.ok(&[&args[..], &["/dev/null"]].concat());
    assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    let (code, error) = folder.fails(&[&args[..], &["/dev/full"]].concat());
    assert_eq!(code, 1);
    assert!(error.contains("/dev/full") && error.lines().count() == 1, "{error}");
    let real = folder.write("real.txt", "old");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions();
    folder.ok(&[&args[..], &["new.txt"]].concat());
    assert_eq!(mode(&folder.path().join("new.txt")), mode(&real), "a new file has the usual permissions");
    std::os::unix::fs::symlink(folder.path().join("real.txt"), folder.path().join("link.txt")).unwrap();
    folder.ok(&[&args[..], &["link.txt"]].concat());
    assert!(std::fs::symlink_metadata(folder.path().join("link.txt")).unwrap().is_symlink());
    assert!(std::fs::read_to_string(folder.path().join("real.txt")).unwrap().contains("ln evidence"));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let folder = Folder::new();
    folder.write("toy.csv", "i,j,count\n0,0,2\n0,1,1\n0,2,1\n1,2,1\n1,3,2\n2,2,1\n2,3,1\n");
    let output = std::process::Command::new("sh")
        .arg("-c")
        .arg(format!(
            "'{}' enumerate --model 'i -> k[3] -> j' --data toy.csv | head -n 1",
            env!("CARGO_BIN_EXE_polyurn")
        ))
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
