//! Lines that stand beside records: programs, runs, and what later versions write.

use std::fs;
use std::path::Path;

use tempfile::tempdir;
use tilewright_core::program::Program;
use tilewright_search::forecast::Forecast;
use tilewright_search::model::Ranking;
use tilewright_search::records::{CacheState, Database, Merged, Outcome, Provenance, Record, Run, Shape};

const SCALE: &str = "kernel scale(M, in x: f32[M], out y: f32[M]) {
  for i in 0..M {
    block y(vi: spatial M = i) {
      y[vi] = x[vi] * 2.0
    }
  }
}
";

fn program() -> Program {
    SCALE.parse().expect("the program is well-formed")
}

fn record(trial: u64) -> Record {
    Record {
        kernel: "scale".to_owned(),
        program: program().stable_hash(),
        shape: Shape::of_dims([("M", 64)]),
        target: "cpu;threads=1".parse().expect("a target"),
        trace: "trace v1\n%0 = get_block \"y\"\n%1 = get_loops %0\nvectorize %1\n".parse().expect("a trace"),
        outcome: Outcome::Failed(format!("crash: of trial {trial}")),
        provenance: Provenance {
            trial,
            predicted: Some(-1.5),
            rules: Some(vec!["auto_inline".to_owned(), "a \"quoted\" rule".to_owned()]),
            cache: CacheState::Cold,
            ..Provenance::default()
        },
    }
}

fn run(trials: u64) -> Run {
    Run {
        kernel: "scale".to_owned(),
        program: program().stable_hash(),
        shape: Shape::of_dims([("M", 64)]),
        target: "cpu;threads=1".parse().expect("a target"),
        cache: CacheState::Warm,
        seed: 7,
        earlier: 3,
        trials,
        seconds: 1.25,
        generation_seconds: 0.5,
        end: "the trials are used up".to_owned(),
        best_ns: Some(123.5),
        default_ns: None,
        flops: 64.0,
        bytes: 512.0,
        peak_gflops: Some(100.25),
        peak_bandwidth: Some(20.5),
        generated: 1000,
        refused: [("lowering".to_owned(), 17)].into(),
        failed: [("crash".to_owned(), 1)].into(),
        rounds: vec![Ranking { candidates: 16, pairs: 120, correlation: 0.75 }],
        forecast: Some(Forecast { trials: 64, notable: 0.01, chance: 0.25, expected_gain: 0.5 }),
        version: "0.1.0".to_owned(),
        cpu: "a CPU".to_owned(),
        time: 1_800_000_000,
    }
}

/// A file with a program, a record and a run, and its three lines.
fn written(directory: &Path) -> Vec<String> {
    let mut database = Database::open(directory).unwrap();
    database.append_program("scale", &program()).unwrap();
    database.append_program("scale", &program()).unwrap();
    database.append(record(1)).unwrap();
    database.append_run(run(4)).unwrap();
    let text = fs::read_to_string(directory.join("scale.jsonl")).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn programs_and_runs_are_read_again() {
    let directory = tempdir().unwrap();
    let lines = written(directory.path());
    assert_eq!(lines.len(), 3, "a program is written once: {lines:?}");
    let read = Database::open(directory.path()).unwrap();
    assert_eq!(read.problems(), []);
    assert_eq!(read.records().collect::<Vec<_>>(), [&record(1)]);
    assert_eq!(read.runs(), [run(4)]);
    let found = read.program(program().stable_hash()).expect("its line was read");
    assert_eq!(found.to_string(), program().to_string());
    assert!(run(4).covers(3) && run(4).covers(6) && !run(4).covers(7) && !run(4).covers(2));
    let mut read = read;
    read.append_program("scale", &program()).unwrap();
    assert_eq!(fs::read_to_string(directory.path().join("scale.jsonl")).unwrap().lines().count(), 3);
}

#[test]
fn no_word_of_such_lines_is_believed() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("scale.jsonl");
    let lines = written(directory.path());
    let [stored, _, run] = &lines[..] else { panic!("{lines:?}") };
    let hash = format!("{:016x}", program().stable_hash());
    let cases: &[(String, &str)] = &[
        (stored.replace(&hash, "0123456789abcdef"), "but the hash of `text` is"),
        (stored.replace("x[vi] * 2.0", "x[vi] * 3.0"), "but the hash of `text` is"),
        (stored.replace("x[vi] * 2.0", "x[vi] * "), "`text` is no program"),
        (stored.replace("x[vi] * 2.0", "x[vi, vi] * 2.0"), "`text` is no "),
        (stored.replace("\"scale\"", "\"../scale\""), "is no kernel name"),
        (stored.replace("\"text\"", "\"test\""), "not a program: unknown field `test`"),
        (run.replace("\"trials\":4", "\"trials\":-4"), "not a run"),
        (run.replace("\"seconds\":1.25", "\"seconds\":-1.25"), "`seconds` is -1.25"),
        (run.replace("\"best_ns\":123.5", "\"best_ns\":0.0"), "`best_ns` is 0"),
        (run.replace("\"correlation\":0.75", "\"correlation\":1.5"), "a meaningless ranking"),
        (run.replace("\"chance\":0.25", "\"chance\":-1.0"), "a meaningless forecast"),
        (run.replace("cpu;threads=1", "toaster"), "`target`"),
        (run.replace("\"M\":64", "\"M\":-64"), "`M` is -64"),
        (run.replace("{\"version\":1,", "{\"version\":1,\"more\":1,"), "unknown field `more`"),
        (run[..run.len() / 2].to_owned(), "not a record"),
    ];
    for (line, message) in cases {
        assert!(!lines.contains(line), "the case must differ: {message}");
        fs::write(&path, format!("{line}\n{}\n", lines[1])).unwrap();
        let read = Database::open(directory.path()).unwrap();
        assert_eq!((read.records().len(), read.runs().len()), (1, 0), "{line}");
        let [problem] = read.problems() else { panic!("one problem for {line}: {:?}", read.problems()) };
        assert!(problem.line == 1 && problem.message.contains(message), "{message}: {problem}");
    }
}

/// Lines of kinds and versions that do not exist yet.
fn later() -> [String; 2] {
    [
        r#"{"version":1,"kind":"energy","kernel":"scale","joules":[1,2,{"deep":[]}]}"#.to_owned(),
        r#"{"version":2,"kernel":"scale","speed":"high"}"#.to_owned(),
    ]
}

#[test]
fn lines_of_later_versions_are_reported_and_kept() {
    let (directory, other) = (tempdir().unwrap(), tempdir().unwrap());
    let path = directory.path().join("scale.jsonl");
    let mut lines = written(directory.path());
    lines.extend(later());
    lines.push(r#"{"version":1,"kind":"energy","kernel":"no name"}"#.to_owned());
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let mut database = Database::open(directory.path()).unwrap();
    let problems: Vec<String> = database.problems().iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(
        problems[0].ends_with("a line of the kind `energy`, which this version of Tilewright does not know")
    );
    let mut merged = Database::open(other.path()).unwrap();
    let added = merged.merge(&database).unwrap();
    assert_eq!(added, Merged { records: 1, programs: 1, runs: 1, later: 2 });
    assert_eq!(merged.merge(&database).unwrap(), Merged::default());
    let copied = fs::read_to_string(other.path().join("scale.jsonl")).unwrap();
    assert_eq!(copied.lines().collect::<Vec<_>>(), lines[..5]);
    // The only record is of a trial that failed.
    assert_eq!(database.prune(1).unwrap(), 1);
    lines.remove(1);
    assert_eq!(fs::read_to_string(&path).unwrap().lines().collect::<Vec<_>>(), lines);
    assert_eq!((database.records().len(), database.runs().len()), (0, 1));
    assert!(database.program(program().stable_hash()).is_some());
}

#[test]
fn merging_brings_programs_to_the_files_that_lack_them() {
    let (directory, other) = (tempdir().unwrap(), tempdir().unwrap());
    written(directory.path());
    let mut old = Database::open(other.path()).unwrap();
    old.append(record(1)).unwrap();
    let added = old.merge(&Database::open(directory.path()).unwrap()).unwrap();
    assert_eq!(added, Merged { records: 0, programs: 1, runs: 1, later: 0 });
    let mut all = Database::in_memory();
    all.merge(&old).unwrap();
    assert_eq!(all.merge(&Database::open(directory.path()).unwrap()).unwrap(), Merged::default());
}
