//! Tuning records on disk: what is written is read, what is broken is named and skipped, nothing is lost.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use tempfile::tempdir;
use tilewright_core::schedule::Trace;
use tilewright_core::target::{CpuTarget, RunContext};
use tilewright_search::records::{
    Database, DatabaseError, Measurement, Merged, Outcome, Provenance, Record, Shape, TunedFor, best_of,
    ranked,
};

const PROGRAM: u64 = 0x0123_4567_89ab_cdef;

fn trace() -> Trace {
    "trace v1\n%0 = get_block \"c\"\n%1, %2, %3 = get_loops %0\nparallel %1\n".parse().expect("a trace")
}

fn shape(m: i64, n: i64) -> Shape {
    Shape::of_dims([("M", m), ("N", n)])
}

fn record(shape: Shape, target: &str, median_ns: f64) -> Record {
    Record {
        kernel: "matmul".to_owned(),
        program: PROGRAM,
        shape,
        target: target.parse().expect("a target"),
        trace: trace(),
        outcome: Outcome::Measured(Measurement {
            median_ns,
            spread: 0.01,
            max_rel_err: 1e-6,
            is_confirmed: false,
        }),
        provenance: Provenance {
            seed: 1,
            trial: 17,
            version: "0.1.0".to_owned(),
            cpu: "A \"quoted\" CPU".to_owned(),
            time: 1_800_000_000,
            ..Provenance::default()
        },
    }
}

fn failure(reason: &str) -> Record {
    Record { outcome: Outcome::Failed(reason.to_owned()), ..record(shape(8, 8), "cpu;threads=1", 1.0) }
}

fn machine(features: &[&str], vector_bits: u32, cores: u32) -> RunContext {
    let cpu = CpuTarget {
        cores,
        vector_bits,
        vector_registers: 16,
        l1_bytes: 32 << 10,
        l2_bytes: 1 << 20,
        l3_bytes: 0,
        cache_line_bytes: 64,
        features: features.iter().map(|&name| name.to_owned()).collect(),
        intrinsics: Vec::new(),
        descriptions: Default::default(),
    };
    cpu.into()
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn what_is_appended_is_read_again() {
    let directory = tempdir().unwrap();
    let tuned = directory.path().join("not/yet/there");
    let mut database = Database::open(&tuned).unwrap();
    assert_eq!(database.records().len(), 0);
    let mut other = record(shape(3, 0), "cpu;avx2;fma;threads=2", 0.1 + 0.2);
    other.kernel = "conv2d".to_owned();
    other.shape.params.insert("stride".to_owned(), 2);
    let written = [record(shape(1024, 7), "cpu;threads=1", 12345.678), other, failure("line one\nline two")];
    for record in &written {
        database.append(record.clone()).unwrap();
    }
    assert_eq!(lines(&tuned.join("matmul.jsonl")).len(), 2);
    let read = Database::open(&tuned).unwrap();
    assert_eq!(read.problems(), []);
    let read: Vec<_> = read.records().cloned().collect();
    assert_eq!(
        read,
        [written[1].clone(), written[0].clone(), written[2].clone()],
        "in the order of file names"
    );
}

#[test]
fn one_file_can_hold_all_kernels() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("all.jsonl");
    let mut database = Database::open(&path).unwrap();
    database.append(record(shape(4, 4), "cpu;threads=1", 5.0)).unwrap();
    database.append(Record { kernel: "conv2d".into(), ..record(shape(4, 4), "cpu;threads=1", 5.0) }).unwrap();
    assert_eq!(lines(&path).len(), 2);
    assert_eq!(Database::open(&path).unwrap().records().len(), 2);
}

#[test]
fn a_new_file_makes_its_neighbours_newer() {
    let directory = tempdir().unwrap();
    let keeper = directory.path().join(".gitkeep");
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::create(&keeper).unwrap().set_modified(long_ago).unwrap();
    let mut database = Database::open(directory.path()).unwrap();
    database.append(record(shape(4, 4), "cpu;threads=1", 5.0)).unwrap();
    assert!(fs::metadata(&keeper).unwrap().modified().unwrap() > long_ago);
    fs::File::options().append(true).open(&keeper).unwrap().set_modified(long_ago).unwrap();
    database.append(record(shape(4, 4), "cpu;threads=1", 5.0)).unwrap();
    assert_eq!(fs::metadata(&keeper).unwrap().modified().unwrap(), long_ago, "only for a new file");
}

#[test]
fn broken_lines_are_named_and_skipped() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("matmul.jsonl");
    let mut database = Database::open(directory.path()).unwrap();
    database.append(record(shape(8, 8), "cpu;threads=1", 5.0)).unwrap();
    let good = lines(&path).remove(0);
    let cases: &[(String, &str)] = &[
        ("not json".to_owned(), "not a record"),
        ("[1, 2]".to_owned(), "not a record"),
        ("{}".to_owned(), "it states no `version`"),
        (good.replace("\"version\":1", "\"version\":2"), "format version 2, expected 1"),
        (good.replace("\"version\":1", "\"version\":\"1\""), "not a record"),
        (good.replace("\"seed\":1", "\"seed\":-1"), "not a record"),
        (good.replace("\"seed\"", "\"sead\""), "unknown field `sead`"),
        (good.replace("\"matmul\"", "\"../../etc/passwd\""), "is no kernel name"),
        (good.replace("0123456789abcdef", "+123456789abcdef"), "16 hexadecimal digits"),
        (good.replace("\"M\":8", "\"M\":-8"), "`M` is -8"),
        (good.replace("cpu;threads=1", "toaster"), "`target`"),
        (good.replace("\"median_ns\":5.0", "\"median_ns\":0.0"), "meaningless measurement"),
        (good.replace("\"median_ns\":5.0", "\"median_ns\":1e999"), "not a record"),
        (good.replace("\"median_ns\":5.0,", ""), "either `median_ns` or `error`"),
        (good.replace("\"spread\":0.01,", ""), "without `spread`"),
        (good.replace("parallel %1", "explode %1"), "`trace`: line 4"),
        (good.replace("trace v1", "trace v9"), "expected `trace v1`"),
        ("[".repeat(100_000), "not a record"),
        (good.replace("\"matmul\"", &"[".repeat(100_000)), "not a record"),
        (good.replace("{\"M\"", &format!("{}\"M\"", "{\"M\":".repeat(100_000))), "not a record"),
        ("x".repeat(5 << 20), "longer than"),
    ];
    for (line, message) in cases {
        let shown = &line[..line.len().min(200)];
        assert_ne!(*line, good, "the case must differ: {message}");
        fs::write(&path, format!("{good}\n{line}\n\n{good}\n")).unwrap();
        let read = Database::open(directory.path()).unwrap();
        assert_eq!(read.records().len(), 2, "{shown}");
        let [problem] = read.problems() else { panic!("one problem for {shown}: {:?}", read.problems()) };
        assert_eq!((problem.file.as_path(), problem.line), (path.as_path(), 2), "{shown}");
        assert!(problem.message.contains(message), "{shown}: {problem}");
    }
    fs::write(&path, [good.as_bytes(), b"\n\xff\xfe\x00\n", good.as_bytes(), b"\n"].concat()).unwrap();
    let read = Database::open(directory.path()).unwrap();
    assert_eq!((read.records().len(), read.problems().len()), (2, 1), "not UTF-8");
}

#[test]
fn a_line_torn_at_any_byte_costs_only_itself() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("matmul.jsonl");
    let mut database = Database::open(directory.path()).unwrap();
    database.append(record(shape(8, 8), "cpu;threads=1", 5.0)).unwrap();
    let text = fs::read(&path).unwrap();
    for cut in 0..text.len() {
        fs::write(&path, [&text[..], &text[..cut]].concat()).unwrap();
        let mut database = Database::open(directory.path()).unwrap();
        let whole = 1 + usize::from(cut == text.len() - 1);
        assert_eq!(database.records().len(), whole, "cut at {cut}");
        assert_eq!(database.problems().len(), usize::from(cut > 0) - (whole - 1), "cut at {cut}");
        if let [problem] = database.problems() {
            assert_eq!(problem.line, 2);
            assert!(problem.message.contains("cut off"), "cut at {cut}: {problem}");
        }
        database.append(record(shape(9, 9), "cpu;threads=1", 6.0)).unwrap();
        let again = Database::open(directory.path()).unwrap();
        assert_eq!(again.records().len(), whole + 1, "cut at {cut}");
        assert_eq!(again.records().last().unwrap().shape, shape(9, 9));
    }
}

#[test]
fn writers_at_once_lose_nothing() {
    const WRITERS: usize = 8;
    const RECORDS: usize = 40;
    let directory = tempdir().unwrap();
    let start = Barrier::new(WRITERS);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (directory, start) = (directory.path(), &start);
            scope.spawn(move || {
                let mut database = Database::open(directory).unwrap();
                start.wait();
                for number in 0..RECORDS {
                    let shape = shape(writer as i64, number as i64);
                    database.append(record(shape, "cpu;threads=1", 1.0)).unwrap();
                    if writer == 0 && number % 10 == 0 {
                        database.prune(usize::MAX).unwrap();
                    }
                }
            });
        }
    });
    let database = Database::open(directory.path()).unwrap();
    assert_eq!(database.problems(), []);
    let mut shapes: Vec<_> = database.records().map(|record| record.shape.clone()).collect();
    shapes.sort();
    shapes.dedup();
    assert_eq!(shapes.len(), WRITERS * RECORDS);
}

/// Tells the process of a test that it is one, and into which directory to write.
const DIRECTORY_VARIABLE: &str = "TILEWRIGHT_TEST_RECORDS";

/// The most records that each process of a test writes.
const RECORDS_OF_PROCESS: i64 = 200;

/// The work of the processes of other tests; nothing when run as a test.
#[test]
fn process_that_writes_records() {
    let Some(directory) = std::env::var_os(DIRECTORY_VARIABLE) else { return };
    let mut database = Database::open(directory).expect("a directory");
    let writer = i64::from(std::process::id());
    for number in 0..RECORDS_OF_PROCESS {
        if let Err(error) = database.append(record(shape(writer, number), "cpu;threads=1", 1.0)) {
            println!("after {number} records: {error}");
            return;
        }
    }
}

/// A process that writes records, under a shell's command in which `"$@"` stands for it.
fn writing_process(shell: &str, directory: &Path) -> Child {
    Command::new("sh")
        .args(["-c", shell, "sh"])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", "process_that_writes_records", "--nocapture"])
        .env(DIRECTORY_VARIABLE, directory)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell")
}

#[test]
fn processes_that_write_at_once_lose_nothing() {
    let directory = tempdir().unwrap();
    let processes: Vec<Child> = (0..3).map(|_| writing_process("exec \"$@\"", directory.path())).collect();
    for process in processes {
        assert!(process.wait_with_output().unwrap().status.success());
    }
    let database = Database::open(directory.path()).unwrap();
    assert_eq!(database.problems(), []);
    assert_eq!(database.records().len(), 3 * RECORDS_OF_PROCESS as usize);
}

#[test]
fn a_disk_that_fills_is_an_error_and_loses_nothing() {
    let directory = tempdir().unwrap();
    // A limit on the size of files, in blocks of 512 bytes, is met in the middle of a line like the end of a disk.
    let process = writing_process("trap '' XFSZ; ulimit -f 33; exec \"$@\"", directory.path());
    let output = process.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}");
    let (_, rest) = told.split_once("after ").unwrap_or_else(|| panic!("no write failed: {told}"));
    let (count, error) = rest.split_once(" records: ").expect("a number and an error");
    let count: usize = count.parse().expect("a number");
    assert!(count > 10 && count < RECORDS_OF_PROCESS as usize, "{told}");
    assert!(error.contains("matmul.jsonl"), "{told}");

    let mut database = Database::open(directory.path()).unwrap();
    assert_eq!(database.records().len(), count, "{:?}", database.problems());
    database.append(record(shape(1, 1), "cpu;threads=1", 1.0)).unwrap();
    let database = Database::open(directory.path()).unwrap();
    assert_eq!(database.records().len(), count + 1, "there is room again: {:?}", database.problems());
    assert!(database.problems().len() <= 1, "at most the line that was cut off: {:?}", database.problems());
}

#[test]
fn a_place_that_cannot_be_written_is_an_error_with_its_path() {
    let directory = tempdir().unwrap();
    let blocked = directory.path().join("file");
    fs::write(&blocked, "").unwrap();
    let mut database = Database::open(blocked.join("tuned")).unwrap_or_else(|_| Database::in_memory());
    let mut elsewhere = Database::open(directory.path()).unwrap();
    fs::create_dir(directory.path().join("matmul.jsonl")).unwrap();
    let error = elsewhere.append(record(shape(1, 1), "cpu;threads=1", 1.0)).unwrap_err();
    assert!(error.to_string().contains("matmul.jsonl"), "{error}");
    assert_eq!(elsewhere.records().len(), 0, "what is not on disk is not in memory");
    let reopened = Database::open(directory.path()).unwrap();
    assert!(reopened.problems()[0].to_string().contains("cannot be read"), "{:?}", reopened.problems());

    let bad = Record { kernel: "../escape".into(), ..record(shape(1, 1), "cpu;threads=1", 1.0) };
    assert!(matches!(database.append(bad), Err(DatabaseError::KernelName(name)) if name == "../escape"));
}

#[test]
fn the_exact_shape_comes_before_the_nearest() {
    let mut database = Database::in_memory();
    for (m, n, median) in [(64, 64, 10.0), (64, 64, 8.0), (128, 128, 1.0), (65, 64, 2.0)] {
        database.append(record(shape(m, n), "cpu;threads=2", median)).unwrap();
    }
    database.append(failure("crashed")).unwrap();
    let here = machine(&[], 128, 2);
    assert_eq!(database.best(PROGRAM, &shape(64, 64), &here).unwrap().median_ns(), Some(8.0));
    assert!(database.best(PROGRAM, &shape(8, 8), &here).is_none(), "a failure is no record to use");
    assert!(database.best(PROGRAM + 1, &shape(64, 64), &here).is_none());
    let (nearest, distance) = database.nearest(PROGRAM, &shape(66, 64), &here).unwrap();
    assert_eq!(nearest.shape, shape(65, 64));
    assert!(distance > 0.0 && distance < 0.02, "{distance}");
    let confirmed = |median| match record(shape(64, 64), "cpu;threads=2", median) {
        Record { outcome: Outcome::Measured(found), .. } => Measurement { is_confirmed: true, ..found },
        Record { outcome, .. } => panic!("{outcome:?}"),
    };
    let outcome = Outcome::Measured(confirmed(9.0));
    database.append(Record { outcome, ..record(shape(64, 64), "cpu;threads=2", 9.0) }).unwrap();
    let few = database.nearest_few(PROGRAM, &shape(66, 64), &here, 4);
    let times: Vec<_> = few.iter().map(|(record, _)| record.median_ns().unwrap()).collect();
    assert_eq!(times, [2.0, 9.0, 1.0, 8.0], "those that another one has beaten come last");
    let mut strided = shape(66, 64);
    strided.params.insert("stride".into(), 2);
    assert!(database.nearest(PROGRAM, &strided, &here).is_none());
}

#[test]
fn records_of_a_greater_machine_are_passed_over_and_named() {
    let mut database = Database::in_memory();
    database.append(record(shape(64, 64), "cpu;avx2;avx512f;threads=2", 1.0)).unwrap();
    database.append(record(shape(64, 64), "cpu;avx2;threads=2", 2.0)).unwrap();
    database.append(record(shape(64, 64), "gpu;threads=1", 0.1)).unwrap();
    let lesser = machine(&["avx2"], 256, 2);
    assert_eq!(database.best(PROGRAM, &shape(64, 64), &lesser).unwrap().median_ns(), Some(2.0));
    let passed = database.passed_over(PROGRAM, &lesser.target);
    assert_eq!(passed.len(), 1);
    assert!(passed[0].missing.iter().eq(["avx512f"]), "{:?}", passed[0].missing);
    let least = machine(&[], 128, 2);
    assert!(database.best(PROGRAM, &shape(64, 64), &least).is_none());
    assert!(database.nearest(PROGRAM, &shape(64, 64), &least).is_none());
}

#[test]
fn a_greater_machine_uses_records_of_a_lesser_but_prefers_its_own() {
    let greater = machine(&["avx2", "avx512f"], 512, 8);
    let mut database = Database::in_memory();
    database.append(record(shape(64, 64), "cpu;avx2;threads=8", 1.0)).unwrap();
    assert!(database.best(PROGRAM, &shape(64, 64), &greater).is_some());
    database.append(record(shape(64, 64), "cpu;avx2;avx512f;threads=1", 9.0)).unwrap();
    assert_eq!(database.best(PROGRAM, &shape(64, 64), &greater).unwrap().median_ns(), Some(9.0));
    database.append(record(shape(64, 64), "cpu;avx2;avx512f;threads=6", 12.0)).unwrap();
    assert_eq!(
        database.best(PROGRAM, &shape(64, 64), &greater).unwrap().median_ns(),
        Some(12.0),
        "tuned on nearly as many threads"
    );
}

#[test]
fn what_the_target_writes_serves_the_target() {
    let here = machine(&["avx", "avx2", "avx512f", "fma"], 128, 4);
    let tuned = TunedFor::of(&here);
    assert!(tuned.serves(&here.target));
    assert_eq!(tuned.to_string(), "cpu;avx;fma;threads=4");
}

#[test]
fn stale_definitions_are_reported() {
    let directory = tempdir().unwrap();
    Database::open(directory.path()).unwrap().append(record(shape(1, 1), "cpu;threads=1", 1.0)).unwrap();
    let database = Database::open(directory.path()).unwrap();
    assert_eq!(database.unknown_kernels(|name, hash| name == "matmul" && hash == PROGRAM), []);
    let problems = database.unknown_kernels(|_, hash| hash != PROGRAM);
    assert_eq!(problems[0].line, 1);
    assert!(problems[0].message.contains("no kernel `matmul`"), "{}", problems[0]);
}

#[test]
fn merging_adds_what_is_new() {
    let (one, two) = (tempdir().unwrap(), tempdir().unwrap());
    let mut left = Database::open(one.path()).unwrap();
    let mut right = Database::open(two.path()).unwrap();
    left.append(record(shape(1, 1), "cpu;threads=1", 1.0)).unwrap();
    for m in 1..4 {
        right.append(record(shape(m, 1), "cpu;threads=1", 1.0)).unwrap();
    }
    assert_eq!(left.merge(&right).unwrap(), Merged { records: 2, ..Merged::default() });
    assert_eq!(left.merge(&right).unwrap(), Merged::default());
    assert_eq!(Database::open(one.path()).unwrap().records().len(), 3);
}

#[test]
fn pruning_keeps_the_fastest_and_what_it_does_not_understand() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("matmul.jsonl");
    let mut database = Database::open(directory.path()).unwrap();
    for median in [5.0, 3.0, 4.0] {
        database.append(record(shape(8, 8), "cpu;threads=1", median)).unwrap();
    }
    database.append(record(shape(16, 8), "cpu;threads=1", 9.0)).unwrap();
    database.append(failure("wrong result")).unwrap();
    let future = "{\"version\":2,\"what\":\"a later version\"}";
    fs::write(&path, format!("{future}\n{}", fs::read_to_string(&path).unwrap())).unwrap();
    let mut in_memory = Database::in_memory();
    in_memory.add_text("embedded", &fs::read(&path).unwrap());

    assert_eq!(database.prune(1).unwrap(), 3);
    let medians: Vec<_> = database.records().filter_map(Record::median_ns).collect();
    assert_eq!(medians, [3.0, 9.0]);
    assert_eq!(lines(&path)[0], future);
    assert_eq!(database.prune(1).unwrap(), 0);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left beside it");

    assert_eq!(in_memory.prune(2).unwrap(), 2);
    let medians: Vec<_> = in_memory.records_of(PROGRAM).filter_map(Record::median_ns).collect();
    assert_eq!(medians, [3.0, 4.0, 9.0]);
}

proptest! {
    /// Whatever bytes a file holds, reading it ends, and appending to it works.
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let directory = tempdir().unwrap();
        fs::write(directory.path().join("matmul.jsonl"), &bytes).unwrap();
        let mut database = Database::open(directory.path()).unwrap();
        prop_assert_eq!(database.records().len(), 0);
        database.append(record(shape(1, 1), "cpu;threads=1", 1.0)).unwrap();
        prop_assert_eq!(Database::open(directory.path()).unwrap().records().len(), 1);
    }

    /// A line with a few changed bytes is read as some record or reported; it never brings the reader down.
    #[test]
    fn mutated_lines_are_survived(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let directory = tempdir().unwrap();
        let mut original = Database::open(directory.path()).unwrap();
        original.append(record(shape(64, 64), "cpu;avx2;threads=2", 1.5)).unwrap();
        let mut text = fs::read(directory.path().join("matmul.jsonl")).unwrap();
        for (position, byte) in changes {
            let position = position.index(text.len());
            text[position] = byte;
        }
        let mut database = Database::in_memory();
        database.add_text("mutated", &text);
        let here = machine(&["avx2"], 128, 2);
        prop_assert!(database.records().len() <= 1);
        database.nearest(PROGRAM, &shape(3, 3), &here);
    }

    /// Every record that can be made survives the way through its text, to the bit.
    #[test]
    fn records_round_trip(
        median in 1e-3..1e15f64,
        error in 0.0..1e3f64,
        dims in proptest::collection::btree_map("[A-Z][A-Z0-9_]{0,3}", 0..i64::MAX, 0..4),
        params in proptest::collection::btree_map("[a-z]{1,6}", 0..100i64, 0..3),
        program in any::<u64>(),
        cpu in ".*",
        reason in proptest::option::of(".*"),
    ) {
        let outcome = match reason {
            Some(reason) => Outcome::Failed(reason),
            None => Outcome::Measured(Measurement { median_ns: median, spread: error, max_rel_err: error, is_confirmed: false }),
        };
        let mut written = Record {
            program,
            shape: Shape { dims, params },
            outcome,
            ..record(shape(1, 1), "cpu;avx;threads=3", 1.0)
        };
        written.provenance.cpu = cpu;
        let directory = tempdir().unwrap();
        Database::open(directory.path()).unwrap().append(written.clone()).unwrap();
        let read = Database::open(directory.path()).unwrap();
        prop_assert_eq!(read.problems(), []);
        prop_assert_eq!(read.records().next(), Some(&written));
    }
}

fn confirmed(mut record: Record) -> Record {
    if let Outcome::Measured(measurement) = &mut record.outcome {
        measurement.is_confirmed = true;
    }
    record
}

/// A record of the schedule that makes the given loop parallel.
fn of_loop(number: u32, median_ns: f64) -> Record {
    let text = format!("trace v1\n%0 = get_block \"c\"\n%1, %2, %3 = get_loops %0\nparallel %{number}\n");
    Record { trace: text.parse().expect("a trace"), ..record(shape(8, 8), "cpu;threads=1", median_ns) }
}

#[test]
fn a_confirmed_winner_is_chosen_over_times_that_were_lucky() {
    let directory = tempdir().unwrap();
    let mut database = Database::open(directory.path()).unwrap();
    let best = |database: &Database| {
        let target = machine(&[], 128, 1);
        database.best(PROGRAM, &shape(8, 8), &target).and_then(Record::median_ns).expect("a record")
    };
    for (number, median) in [(1, 10.0), (2, 11.0), (3, 10.5)] {
        database.append(of_loop(number, median)).unwrap();
    }
    assert_eq!(best(&database), 10.0, "nothing is confirmed yet");
    database.append(of_loop(1, 12.5)).unwrap();
    database.append(confirmed(of_loop(2, 12.0))).unwrap();
    assert_eq!(best(&database), 12.0, "the winner of the comparison, not the luckiest time");
    assert_eq!(best(&Database::open(directory.path()).unwrap()), 12.0, "the same after reading");

    let mut pruned = database.clone();
    assert_eq!(pruned.prune(1).unwrap(), 4);
    assert_eq!(best(&pruned), 12.0, "pruning keeps the winner");

    let mut database = Database::open(directory.path()).unwrap();
    database.append(of_loop(3, 13.0)).unwrap();
    assert_eq!(best(&database), 12.0, "a later trial that is slower");
    database.append(of_loop(3, 11.5)).unwrap();
    assert_eq!(
        best(&database),
        12.0,
        "a later trial that is faster, of a run that could not compare: it may be luck"
    );
    database.append(of_loop(2, 14.0)).unwrap();
    database.append(confirmed(of_loop(3, 13.5))).unwrap();
    assert_eq!(best(&database), 13.5, "the next run compares with the earlier winner");
}

#[test]
fn a_resumed_run_does_not_push_the_confirmed_winner_out() {
    let mut database = Database::in_memory();
    for (number, median) in [(1, 10.0), (2, 11.0), (3, 10.5)] {
        database.append(of_loop(number, median)).unwrap();
    }
    database.append(of_loop(1, 12.5)).unwrap();
    database.append(confirmed(of_loop(2, 12.0))).unwrap();
    // The run is resumed and stopped before it can compare.
    database.append(of_loop(3, 9.0)).unwrap();
    let here = machine(&[], 128, 1);
    let medians = |records: Vec<&Record>| -> Vec<f64> {
        records.into_iter().map(|record| record.median_ns().expect("a time")).collect()
    };
    let all: Vec<&Record> = database.records().collect();
    let in_order = medians(ranked(&all).iter().map(|ranked| ranked.record).collect());
    assert_eq!(in_order, [12.0, 9.0, 12.5, 10.0, 10.5, 11.0], "the winner, then others, then earlier times");
    assert_eq!(best_of(&all), database.best(PROGRAM, &shape(8, 8), &here));
    assert_eq!(best_of(&all), database.nearest(PROGRAM, &shape(9, 8), &here).map(|(record, _)| record));

    // Merging may put later records before earlier ones.
    let mut later = Database::in_memory();
    let mut newer = confirmed(of_loop(3, 13.0));
    newer.provenance.time += 60;
    later.append(newer).unwrap();
    later.merge(&database).unwrap();
    assert_eq!(later.best(PROGRAM, &shape(8, 8), &here).and_then(Record::median_ns), Some(13.0));

    assert_eq!(database.prune(2).unwrap(), 4);
    assert_eq!(medians(database.records().collect()), [12.0, 9.0]);
}
